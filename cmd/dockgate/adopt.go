package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/native"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/client"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
)

// An adoption is what becomes of the servers that a client has itself.
type adoption struct {
	// Moved are the client's names of those that move behind the gateway.
	Moved []string `json:"moved,omitempty"`
	// Left are those that stay where they are.
	Left []leftServer `json:"left,omitempty"`

	// active are the catalog's names of all that have moved by now.
	active []string
	// env has the values of their secrets, which stay in the client's file.
	env map[string]string
}

// A leftServer is one that does not move.
type leftServer struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// A candidate is a server that may move.
type candidate struct {
	client.Server
	entry catalog.Server
	env   map[string]string
}

// adopt takes over what a client has itself, if that is asked for, and looks
// up what it has taken over before.
func (f *flags) adopt(cmd *cobra.Command, own connectFlags, c client.Client, path string) (adoption, error) {
	servers, err := c.Servers(path)
	if err != nil {
		return adoption{}, err
	}
	if !own.adopt {
		servers = slices.DeleteFunc(servers, func(s client.Server) bool { return !s.Moved })
	}
	if len(servers) == 0 {
		return adoption{}, nil
	}
	options, err := f.options()
	if err != nil {
		return adoption{}, err
	}
	if own.docker && filepath.Dir(options.OwnCatalog) != filepath.Join(options.Home, ".config", "dockgate") {
		return adoption{}, fmt.Errorf("the gateway's image does not see your own catalog, %s: it looks in ~/.config", options.OwnCatalog)
	}
	files, err := setup.LoadFiles(cmd.Context(), options.Inputs)
	if err != nil {
		return adoption{}, err
	}
	adopted := adoption{env: make(map[string]string)}
	var candidates []candidate
	for _, s := range servers {
		found, err := weigh(cmd, path, s, options.Around(files), adopted.env)
		if err != nil {
			adopted.Left = append(adopted.Left, leftServer{s.Name, err.Error()})
			continue
		}
		maps.Copy(adopted.env, found.env)
		candidates = append(candidates, found)
	}
	candidates, err = adopted.intoCatalog(options, candidates)
	if err != nil {
		return adoption{}, err
	}
	if own.docker {
		adopted.take(candidates)
		return adopted, nil
	}
	return adopted, f.activate(cmd, &adopted, candidates)
}

// take notes what moves.
func (a *adoption) take(candidates []candidate) {
	for _, found := range candidates {
		a.active = append(a.active, found.entry.Name)
		if !found.Moved {
			a.Moved = append(a.Moved, found.Name)
		}
	}
}

// activate makes servers active for the user. Those that cannot be stay with
// the client.
func (f *flags) activate(cmd *cobra.Command, adopted *adoption, candidates []candidate) error {
	return f.use(cmd.Context(), func(d *daemon.Daemon) error {
		for _, found := range candidates {
			if _, err := d.Configure(cmd.Context(), principal.Local, found.entry.Name, nil); err != nil {
				adopted.Left = append(adopted.Left, leftServer{found.Name, err.Error()})
				continue
			}
			adopted.take([]candidate{found})
		}
		return nil
	})
}

// weigh returns what a client's server becomes, or why it has to stay. Taken
// are the variables that other servers have by now.
func weigh(cmd *cobra.Command, path string, s client.Server, around catalog.Surroundings, taken map[string]string) (candidate, error) {
	document, err := json.Marshal(map[string]any{"mcpServers": map[string]any{s.Name: s.Entry}, "inputs": s.Inputs})
	if err != nil {
		return candidate{}, err
	}
	if s.Inputs == nil {
		document = bytes.Replace(document, []byte(`"inputs":null,`), nil, 1)
	}
	file, err := source.Parse(cmd.Context(), catalog.Origin{Catalog: path, Kind: catalog.User}, document, around)
	if err != nil {
		return candidate{}, err
	}
	if len(file.Servers) != 1 || file.Enabled != nil && len(file.Enabled) == 0 {
		return candidate{}, errors.New("is switched off")
	}
	found := candidate{Server: s, entry: file.Servers[0]}
	if err := plan.Supported(found.entry); err != nil {
		return candidate{}, err
	}
	if err := found.entry.CheckSettings(nil); err != nil {
		return candidate{}, err
	}
	found.env, err = secretsOf(s, found.entry, around)
	if err != nil {
		return candidate{}, err
	}
	for name, value := range found.env {
		if other, ok := taken[name]; ok && other != value {
			return candidate{}, fmt.Errorf("another server has another value for %s", name)
		}
	}
	return found, nil
}

// secretsOf returns the values of secrets that the client's entry holds, by
// the variables in which the gateway looks for them. A value that would be
// lost is an error.
func secretsOf(s client.Server, entry catalog.Server, around catalog.Surroundings) (map[string]string, error) {
	theirs, _ := s.Entry["env"].(map[string]any)
	text, err := json.Marshal(s.Entry)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for _, secret := range entry.Secrets {
		name := secret.Variable()
		if value, ok := theirs[name].(string); ok && value != "" && value != "${"+name+"}" && value != "${env:"+name+"}" {
			values[name] = value
			continue
		}
		_, set := around.Env(name)
		refers := strings.Contains(string(text), "{"+name+"}") || strings.Contains(string(text), ":"+name+"}")
		if !set && !refers && secret.Required {
			return nil, fmt.Errorf("its entry holds a value for the secret %s, which would be lost; set the variable %s first", secret.Name, name)
		}
	}
	return values, nil
}

// intoCatalog adds servers to the user's own catalog. One whose name another
// server has there stays with the client.
func (a *adoption) intoCatalog(options daemon.Options, candidates []candidate) ([]candidate, error) {
	entries := make([]catalog.Server, len(candidates))
	for i, found := range candidates {
		entries[i] = found.entry
	}
	after, _, err := addToOwn(options.OwnCatalog, entries)
	if err != nil {
		return nil, err
	}
	now, err := catalog.Parse(ownOrigin(options.OwnCatalog), after)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(candidates, func(found candidate) bool {
		at := slices.IndexFunc(now.Servers, func(s catalog.Server) bool { return s.Name == found.entry.Name })
		if at >= 0 && alike(now.Servers[at], found.entry) {
			return false
		}
		a.Left = append(a.Left, leftServer{found.Name, "your own catalog has another server of this name"})
		return true
	}), nil
}

// alike reports whether two entries are written alike.
func alike(a, b catalog.Server) bool {
	one, err := native.Encode([]catalog.Server{a})
	other, failed := native.Encode([]catalog.Server{b})
	return err == nil && failed == nil && bytes.Equal(one, other)
}

// tellAdopted says what has become of the client's other servers.
func tellAdopted(cmd *cobra.Command, adopted adoption) {
	if len(adopted.Moved) > 0 {
		tell(cmd, "moved behind the gateway: %s; each asks for your approval on its first call", strings.Join(adopted.Moved, ", "))
	}
	for _, left := range adopted.Left {
		tell(cmd, "left in the client: %s: %s", left.Name, strings.ReplaceAll(left.Reason, "\n", "; "))
	}
}
