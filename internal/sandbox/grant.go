package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A Grant is what a person approves: everything that decides what a server is
// and what it may do, in plain data. Settings that a model chose are in it by
// their effect on Command, Env and Mounts. Secrets are in it by name only.
type Grant struct {
	Server string `json:"server"`
	// Source is who wrote the entry: "built-in", "local" or "project".
	Source    catalog.OriginKind `json:"source"`
	Transport string             `json:"transport"`
	// URL, Headers and Addresses are of a remote server; what a container has
	// is then empty. Headers are their names, and which secrets are in them.
	URL       string   `json:"url,omitempty"`
	Headers   []string `json:"headers,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Port is where a server in a container listens, if it does.
	Port int `json:"port,omitempty"`
	// Exec is a container that the user runs, in which the server is a process.
	Exec  string `json:"exec,omitempty"`
	Image string `json:"image,omitempty"`
	Pin   Pin    `json:"pin,omitzero"`
	// Command is the whole command line, entrypoint included.
	Command []string `json:"command,omitempty"`
	// User is the user the server runs as; empty is root.
	User    string              `json:"user"`
	Limits  Limits              `json:"limits"`
	Network catalog.NetworkMode `json:"network"`
	// Requested is the network right that the entry asked for, where the
	// engine cannot enforce it yet and Network is wider.
	Requested catalog.Network `json:"requested,omitzero"`
	Mounts    []Mount         `json:"mounts,omitempty"`
	// ExtraHosts are names that the entry gives addresses.
	ExtraHosts []string `json:"extra_hosts,omitempty"`
	// WorkingDir is set where the entry names another than the image's.
	WorkingDir string     `json:"working_dir,omitempty"`
	Env        []Variable `json:"env,omitempty"`
	// Secrets are "VARIABLE" or "VARIABLE from OTHER", and say which are files.
	Secrets []string `json:"secrets,omitempty"`
	// Runs are the tools of a server that has a container for each call; the
	// fields of one container are then empty. LeftOut are its tools that are not
	// offered, and Settings what its templates are filled in with.
	Runs     []RunGrant `json:"runs,omitempty"`
	LeftOut  []LeftOut  `json:"left_out,omitempty"`
	Settings []string   `json:"settings,omitempty"`
	// Helpers are containers beside the server.
	Helpers []HelperGrant `json:"helpers,omitempty"`
	// Unenforced are limits that this engine does not enforce, in its words.
	Unenforced []string `json:"unenforced,omitempty"`
}

// NewGrant derives the grant from an entry and its compiled Spec. Unenforced
// are the engine's own words for limits that it cannot enforce.
func NewGrant(entry catalog.Server, spec Spec, unenforced []string) Grant {
	grant := Grant{
		Server: entry.Name, Source: entry.Origin.Kind, Transport: "stdio",
		Exec: spec.Exec, Image: spec.Image.Ref, Pin: spec.Image.Pin,
		Command: slices.Concat(spec.Entrypoint, spec.Command),
		User:    spec.User, Limits: spec.Limits, Network: spec.Network,
		Mounts: spec.Mounts, ExtraHosts: spec.ExtraHosts, WorkingDir: entry.WorkingDir, Unenforced: unenforced,
	}
	if spec.HTTP != nil {
		grant.Transport, grant.Port = spec.HTTP.Transport, spec.HTTP.Port
	}
	for _, v := range spec.Env { // what every server gets says nothing of this one
		if !contains(writableHome(), v) {
			grant.Env = append(grant.Env, v)
		}
	}
	if spec.Exec != "" { // the container's own rights, whatever they are
		grant.Unenforced = nil
	} else if entry.Network.Mode != spec.Network && entry.Network.Mode != "" {
		grant.Requested = entry.Network
	}
	for _, s := range spec.Secrets {
		name := s.Env
		if s.From != s.Env {
			name += " from " + s.From
		}
		if s.File {
			name += " (a file, mounted read only)"
		}
		grant.Secrets = append(grant.Secrets, name)
	}
	grant.Helpers = helperGrants(entry, spec)
	if len(spec.Runs)+len(spec.LeftOut) > 0 {
		grant.describeRuns(entry, spec)
	}
	if spec.Remote != nil {
		grant.describe(*spec.Remote)
	}
	return grant
}

// Digest identifies the grant; it is part of every approval.
func (g Grant) Digest() string { return digest(g) }

// Lines describes the grant for a person, one right a line.
func (g Grant) Lines() []string {
	if g.URL != "" {
		return g.remoteLines()
	}
	if len(g.Runs)+len(g.LeftOut) > 0 {
		return g.runLines()
	}
	if g.Exec != "" {
		return g.execLines()
	}
	lines := []string{
		"source:    " + string(g.Source) + ", transport " + g.transport(),
		"image:     " + g.Image,
		"pinned:    " + pinned(g.Pin),
		"command:   " + quoted(g.Command),
		"user:      " + userName(g.User),
		g.limits(),
		"network:   " + g.network(),
	}
	for _, m := range g.Mounts {
		lines = append(lines, m.line(""))
	}
	for _, line := range g.ExtraHosts {
		lines = append(lines, "host:      "+line)
	}
	lines = append(lines, g.inside()...)
	for _, h := range g.Helpers {
		lines = append(lines, h.lines()...)
	}
	return lines
}

// line describes a mount; of names what it belongs to, if there are several.
func (m Mount) line(of string) string {
	mode := "read and write"
	if m.ReadOnly {
		mode = "read only"
	}
	if m.Volume != "" {
		return fmt.Sprintf("volume:    %s%s at %s (%s)", of, m.Volume, m.Target, mode)
	}
	return fmt.Sprintf("mount:     %s%s at %s (%s)", of, m.Source, m.Target, mode)
}

func pinned(p Pin) string {
	text := p.Digest + ", " + p.Platform
	if p.Kind == LocalID {
		text += " (local image, not from a registry)"
	}
	return text
}

func userName(user string) string {
	if user == "" || user == "0" || user == "root" || strings.HasPrefix(user, "0:") {
		return "root (without capabilities)"
	}
	return user
}

func (g Grant) limits() string {
	return fmt.Sprintf("limits:    memory %s, shared memory %s, %.4g cpus, %d processes", units.BytesSize(float64(g.Limits.Memory)),
		units.BytesSize(float64(g.Limits.Shm)), float64(g.Limits.NanoCPUs)/1e9, g.Limits.PIDs)
}

// execLines describes a process in a container that the user runs.
func (g Grant) execLines() []string {
	user := g.User
	if user == "" {
		user = "the container's"
	}
	lines := []string{
		"source:    " + string(g.Source) + ", transport " + g.Transport,
		"container: " + g.Exec + ", which is yours: NOT sandboxed by us, it has the container's own rights and limits",
		"pinned:    " + pinned(g.Pin),
		"command:   " + quoted(g.Command),
		"user:      " + user,
	}
	return append(lines, g.inside()...)
}

// inside describes what the server's process finds.
func (g Grant) inside() []string {
	var lines []string
	if g.WorkingDir != "" {
		lines = append(lines, "folder:    "+g.WorkingDir)
	}
	for _, v := range g.Env {
		lines = append(lines, fmt.Sprintf("variable:  %s=%s", v.Name, v.Value))
	}
	for _, s := range g.Secrets {
		lines = append(lines, "secret:    "+s)
	}
	for _, u := range g.Unenforced {
		lines = append(lines, "warning:   "+u)
	}
	return lines
}

// contains reports whether a variable is among others, with its value.
func contains(others []Variable, v Variable) bool {
	return slices.ContainsFunc(others, func(o Variable) bool { return o.Name == v.Name && o.Value == v.Value })
}

// quoted joins words so that a person sees where each of them ends.
func quoted(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
			word = strconv.Quote(word)
		}
		b.WriteString(word)
	}
	return b.String()
}

func (g Grant) transport() string {
	if g.Port == 0 {
		return g.Transport
	}
	return g.Transport + " on port " + strconv.Itoa(g.Port) + " (not published)"
}

func (g Grant) network() string {
	text := "none"
	if g.Network == catalog.NetworkFull {
		text = "full"
	}
	if len(g.Helpers) > 0 {
		text += ", and one that only its helpers share"
	}
	switch g.Requested.Mode {
	case catalog.NetworkAllow:
		text += " (list not yet enforced: " + strings.Join(g.Requested.Allow, ", ") + ")"
	case catalog.NetworkPublic:
		text += " (private addresses not yet kept out)"
	case catalog.NetworkNone, catalog.NetworkFull:
	}
	return text
}

// DiffGrants returns what changed between two grants of a server, as the
// lines that went, marked "-", and the lines that came, marked "+".
func DiffGrants(before, after Grant) []string {
	was, is := before.Lines(), after.Lines()
	var changed []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			changed = append(changed, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			changed = append(changed, "+ "+line)
		}
	}
	return changed
}
