// Package manifest reads manifests of installable MCP servers, version "1.0":
// servers with the commands that install and start them, command-line programs
// that may do instead, and the queue for what nobody had.
//
// Nothing is installed on the host. A server that a catalog read before knows
// by its name, with an image, runs as that entry says; the manifest keeps the
// word on what describes it, on its key, and on its start. Any other becomes
// what package launch makes of its command. Unknown fields are mistakes.
package manifest

import (
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// Parse reads a manifest. The error is [catalog.Problems], and then nothing of
// the file is returned.
func Parse(origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, around)
	})
}

// Matches reports whether a document is a manifest.
func Matches(root *yaml.Node) bool {
	version := document.Member(root, "version")
	return version != nil && version.Value == "1.0"
}

// Read reads a manifest that has been opened already; what is wrong with it is
// in the reader then.
func Read(r *document.Reader, root *yaml.Node, origin catalog.Origin, around catalog.Surroundings) catalog.File {
	p := parser{Reader: r, around: around, file: &catalog.File{Origin: origin}}
	r.Mapping(map[string]document.Read{
		"version": document.Ignore,
		"servers": r.Entries(p.server),
		"cli_alternatives": r.Entries(func(r *document.Reader, name string, line int, n *yaml.Node) {
			at := origin
			at.Line = line
			if cli, ok := catalog.ReadCLI(r, name, at, n); ok {
				p.file.CLIs = append(p.file.CLIs, cli)
			}
		}),
		"discovery_queue_path": r.Text(&p.file.DiscoveryQueue),
	})("", root)
	if queue := p.file.DiscoveryQueue; queue != "" && origin.Kind == catalog.Project && !filepath.IsLocal(queue) {
		r.ReportAt("discovery_queue_path", "leads out of the project, whose file this is")
	}
	return *p.file
}

// A parser reads one manifest.
type parser struct {
	*document.Reader
	around catalog.Surroundings
	file   *catalog.File
}

// A server is an entry of a manifest.
type server struct {
	install                     map[string][]string
	command, envVar, envContent string
	args                        []string
	needsKey, file              bool
}

func (p *parser) server(r *document.Reader, name string, line int, n *yaml.Node) {
	entry := catalog.Server{Name: name, Origin: p.file.Origin, Network: catalog.Network{Mode: catalog.NetworkNone}, Isolation: catalog.Shared}
	entry.Origin.Line = line
	s := server{install: make(map[string][]string)}
	system := func(field string, n *yaml.Node) {
		var words []string
		r.Texts(&words)(field, n)
		s.install[strings.TrimPrefix(field, "install.")] = words
	}
	r.Mapping(map[string]document.Read{
		"title": r.Text(&entry.Title), "description": r.Text(&entry.Description), "keywords": r.Texts(&entry.Keywords), "tags": r.Texts(&entry.Tags),
		"install": r.Mapping(map[string]document.Read{"mac": system, "wsl": system, "linux": system, "windows": system}),
		"command": r.Text(&s.command), "args": r.Texts(&s.args),
		"requires_api_key": r.Boolean(&s.needsKey), "env_var": r.Text(&s.envVar), "env_instructions": r.Text(&s.envContent),
		"env_file":   r.Boolean(&s.file),
		"auto_start": r.Boolean(&entry.AutoStart), "tools": catalog.ReadTools(r, &entry.Tools),
	})("", n)
	if r.BadAsWhole() {
		return
	}
	if s.needsKey && s.envVar == "" && !r.Bad("env_var") {
		r.ReportAt("env_var", "is missing; it names the variable of the key that requires_api_key asks for")
	}
	if s.command == "" && !r.Bad("command") {
		s.command, s.args = s.installed(p.around.OS)
	}
	if known, ok := p.around.Entry(name); ok && runs(known) {
		entry = s.known(entry, known)
	} else {
		if s.command == "" && !r.Bad("command") && !r.Bad("install") {
			r.ReportAt("", "has no command and no install, and no catalog knows it")
			return
		}
		entry = s.launched(entry, p.around)
	}
	catalog.ReportProblems(r, entry, func(field string) string {
		if strings.HasPrefix(field, "secrets") {
			return "env_var"
		}
		return field
	})
	p.file.Servers = append(p.file.Servers, entry)
}

// runs reports that an entry says how it is run.
func runs(s catalog.Server) bool { return s.Runs() != catalog.KindUnsupported }

// installed returns the command that installs and starts the server here, or
// else on another system: what is started is a package, which is the same.
func (s server) installed(system string) (command string, args []string) {
	order := []string{"linux", "wsl", "mac", "windows"}
	switch system {
	case "darwin":
		order = []string{"mac", "linux", "wsl", "windows"}
	case "windows":
		order = []string{"windows", "wsl", "linux", "mac"}
	}
	for _, name := range order {
		if words := s.install[name]; len(words) > 0 {
			return words[0], words[1:]
		}
	}
	return "", nil
}

// known returns the entry of another catalog with the words of this one.
func (s server) known(entry, known catalog.Server) catalog.Server {
	made := known
	made.Origin, made.AutoStart = entry.Origin, entry.AutoStart
	for _, text := range []struct{ to, from *string }{{&made.Title, &entry.Title}, {&made.Description, &entry.Description}} {
		if *text.from != "" {
			*text.to = *text.from
		}
	}
	if entry.Keywords != nil {
		made.Keywords = entry.Keywords
	}
	if entry.Tags != nil {
		made.Tags = entry.Tags
	}
	if entry.Tools != nil {
		made.Tools = entry.Tools
	}
	if s.command != "" && made.Image != "" {
		made.Remarks = append(slices.Clone(made.Remarks), "runs the image "+made.Image+" in place of "+strings.Join(append([]string{s.command}, s.args...), " "))
	}
	made.Secrets = s.secrets(made.Name, slices.Clone(made.Secrets))
	return made
}

// secrets are the known ones, of which one is the manifest's key: the one that
// is known by its variable, or the only one there is.
func (s server) secrets(name string, known []catalog.Secret) []catalog.Secret {
	if s.envVar == "" {
		return known
	}
	at := slices.IndexFunc(known, func(k catalog.Secret) bool { return k.Env == s.envVar || k.Variable() == s.envVar })
	if at < 0 && len(known) == 1 {
		at = 0
	}
	if at < 0 {
		known = append(known, catalog.Secret{Name: name + "." + strings.ToLower(s.envVar), Env: s.envVar})
		at = len(known) - 1
	}
	key := &known[at]
	key.From = ""
	if key.Env != s.envVar {
		key.From = s.envVar
	}
	key.Required = s.needsKey
	key.File = key.File || s.file || launch.NamesFile(s.envVar)
	if s.envContent != "" {
		key.Instructions = s.envContent
	}
	return known
}

// launched returns what the command becomes.
func (s server) launched(entry catalog.Server, around catalog.Surroundings) catalog.Server {
	entry = launch.Entry(entry, launch.Command{Program: s.command, Args: s.args}, around)
	if entry.Runs() != catalog.KindUnsupported {
		entry.Secrets = s.secrets(entry.Name, entry.Secrets)
	}
	return entry
}
