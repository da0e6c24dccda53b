// Package menu is what one client sees: the lists, as the bytes it is sent, and
// what each name on them stands for.
//
// It decides under which name a tool or prompt is listed, and which of two
// servers keeps a URI. It refuses what would make a client refuse the whole
// list. It guarantees that no name stands for two things, and that a definition
// passes as the bytes it is, but for its name and what listable mends.
package menu

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/tool"
)

// A Prefix says how tools are named.
type Prefix string

// The prefixes. The zero value is [PrefixServer].
const (
	// PrefixServer names a tool "server__tool".
	PrefixServer Prefix = "server"
	// PrefixNone keeps a tool's own name. Where two servers have a tool of one
	// name, the first by name keeps it and the others get the prefix. So does
	// one that reads like another server's with its prefix.
	PrefixNone Prefix = "none"
)

// Name returns the name of a tool or prompt that clients see, if others are
// taken.
func (p Prefix) Name(ref tool.Ref, taken func(name string) bool) string {
	if p == PrefixNone {
		if bare := ref.Bare(); !taken(bare) && !strings.Contains(ref.Name, "__") {
			return bare
		}
	}
	return ref.Exposed()
}

// The methods that a menu answers.
const (
	tools     = "tools/list"
	prompts   = "prompts/list"
	resources = "resources/list"
	templates = "resources/templates/list"
	// legacyTools is the list of tools for clients with sessions, if it is another.
	legacyTools = "tools/list for clients with sessions"
)

// A Menu is what one client sees. It does not change.
type Menu struct {
	lists     map[string]json.RawMessage // by method: the array
	own       map[string]bool            // the names of the gateway's own tools
	tools     map[string]tool.Ref
	prompts   map[string]tool.Ref
	resources map[string]string // URI, of templates too, to server
	templates []template
	mirrored  map[tool.Ref][]mirrored
}

type template struct {
	pattern *uritemplate.Template
	server  string
}

// List returns the array that answers a list method of a client without
// sessions.
func (m *Menu) List(method string) json.RawMessage { return m.lists[method] }

// ListForSessions returns the one for a client with sessions.
func (m *Menu) ListForSessions(method string) json.RawMessage {
	if other := m.lists[legacyTools]; method == tools && other != nil {
		return other
	}
	return m.lists[method]
}

// Changed returns the list methods whose answer is another one than before.
func (m *Menu) Changed(before *Menu) []string {
	var changed []string
	for method, list := range m.lists {
		if !bytes.Equal(list, before.lists[method]) {
			changed = append(changed, method)
		}
	}
	return changed
}

// Tool returns the tool that a client means: by its listed name, or, of a
// server that is not listed, by "server__tool" or "server.tool".
func (m *Menu) Tool(name string, servers *catalog.Catalog) (tool.Ref, bool) {
	if ref, ok := m.tools[name]; ok {
		return ref, true
	}
	for _, separator := range []string{"__", "."} {
		server, own, ok := strings.Cut(name, separator)
		if !ok || own == "" {
			continue
		}
		if _, err := servers.Server(server); err == nil {
			return tool.Ref{Server: server, Name: own}, true
		}
	}
	return tool.Ref{}, false
}

// Prompt returns the prompt of a listed name.
func (m *Menu) Prompt(name string) (tool.Ref, bool) {
	ref, ok := m.prompts[name]
	return ref, ok
}

// Resource returns the server that a URI belongs to.
func (m *Menu) Resource(uri string) (server string, ok bool) {
	if server, ok := m.resources[uri]; ok {
		return server, true
	}
	for _, t := range m.templates {
		if t.pattern.Match(uri) != nil {
			return t.server, true
		}
	}
	return "", false
}

// Name returns the name under which a tool is listed.
func (m *Menu) Name(ref tool.Ref) (string, bool) {
	for name, other := range m.tools {
		if other == ref {
			return name, true
		}
	}
	return "", false
}

// Tools returns the names of the tools that are listed, the gateway's own last.
func (m *Menu) Tools() []string {
	return append(slices.Sorted(maps.Keys(m.tools)), slices.Sorted(maps.Keys(m.own))...)
}

// Prompts returns the names of the prompts that are listed.
func (m *Menu) Prompts() []string { return slices.Sorted(maps.Keys(m.prompts)) }

// Resources returns the URIs, and templates of URIs, that are listed.
func (m *Menu) Resources() []string { return slices.Sorted(maps.Keys(m.resources)) }
