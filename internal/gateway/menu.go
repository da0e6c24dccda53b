package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
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

// A menu is what one client sees, as the bytes it is sent, and what each name
// on it stands for.
type menu struct {
	lists     map[string]json.RawMessage // by method: the array
	own       map[string]bool            // the names of our own tools
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

// A menuWriter gathers entries.
type menuWriter struct {
	menu
	prefix Prefix
	who    principal.Principal
	arrays map[string]*bytes.Buffer
}

func newMenuWriter(prefix Prefix, who principal.Principal) *menuWriter {
	return &menuWriter{
		menu: menu{
			own: map[string]bool{}, tools: map[string]tool.Ref{}, prompts: map[string]tool.Ref{}, resources: map[string]string{},
			lists: map[string]json.RawMessage{}, mirrored: map[tool.Ref][]mirrored{},
		},
		prefix: prefix, who: who,
		arrays: map[string]*bytes.Buffer{
			"tools/list": {}, "prompts/list": {}, "resources/list": {}, "resources/templates/list": {},
		},
	}
}

func (w *menuWriter) add(method string, entry json.RawMessage) {
	array := w.arrays[method]
	if array.Len() > 0 {
		array.WriteByte(',')
	}
	array.Write(entry)
}

func (w *menuWriter) addOwn(tools []meta.Tool) {
	for _, t := range tools {
		w.own[t.Name] = true
		w.add("tools/list", t.JSON)
	}
}

// tool lists a server's tool under the name that clients see.
func (w *menuWriter) tool(ref tool.Ref, definition json.RawMessage) error {
	name := exposed(w.prefix, ref, func(name string) bool {
		_, other := w.tools[name]
		return w.own[name] || other
	})
	definition, err := listable(definition)
	if err != nil {
		return err
	}
	renamed, err := rename(definition, name)
	if err != nil {
		return err
	}
	forLegacy, err := era.ToolForLegacy(renamed)
	if err != nil {
		return err
	}
	w.tools[name] = ref
	if found := mirroredIn(definition); len(found) > 0 {
		w.mirrored[ref] = found
	}
	if len(forLegacy) != len(renamed) && w.arrays[legacyTools] == nil { // from here on the lists differ
		w.arrays[legacyTools] = bytes.NewBuffer(bytes.Clone(w.arrays["tools/list"].Bytes()))
	}
	w.add("tools/list", renamed)
	if w.arrays[legacyTools] != nil {
		w.add(legacyTools, forLegacy)
	}
	return nil
}

// legacyTools is the list of tools for clients with sessions, if it is another.
const legacyTools = "tools/list for clients with sessions"

func exposed(prefix Prefix, ref tool.Ref, taken func(string) bool) string {
	if prefix == PrefixNone {
		if bare := ref.Bare(); !taken(bare) && !strings.Contains(ref.Name, "__") {
			return bare
		}
	}
	return ref.Exposed()
}

func (w *menuWriter) prompt(server string, entry json.RawMessage) error {
	var head struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(entry, &head); err != nil {
		return err
	}
	ref := tool.Ref{Server: server, Name: head.Name}
	name := exposed(w.prefix, ref, func(name string) bool { _, other := w.prompts[name]; return other })
	renamed, err := rename(entry, name)
	if err != nil {
		return err
	}
	w.prompts[name] = ref
	w.add("prompts/list", renamed)
	return nil
}

// resource lists a resource or a template. URIs are not renamed: they stand in
// results too. Where two servers have one URI, the first by name keeps it.
func (w *menuWriter) resource(method, member, server string, entry json.RawMessage) error {
	var uri string
	if err := json.Unmarshal(jsonrpc.Lookup(entry, member), &uri); err != nil {
		return err
	}
	if _, other := w.resources[uri]; other {
		return nil
	}
	if member == "uriTemplate" {
		pattern, err := uritemplate.New(uri)
		if err != nil {
			return err
		}
		w.templates = append(w.templates, template{pattern: pattern, server: server})
	}
	w.resources[uri] = server
	w.add(method, entry)
	return nil
}

func (w *menuWriter) finish() *menu {
	for method, array := range w.arrays {
		w.lists[method] = slices.Concat([]byte("["), array.Bytes(), []byte("]"))
	}
	return &w.menu
}

func rename(definition json.RawMessage, name string) (json.RawMessage, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(definition, "name", quoted)
}

// resolve returns the tool that a client means: by its listed name, or, of a
// server that is not listed, by "server__tool" or "server.tool".
func (m *menu) resolve(name string, servers *catalog.Catalog) (tool.Ref, bool) {
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

// resource returns the server that a URI belongs to.
func (m *menu) resource(uri string) (string, bool) {
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

func (m *menu) names() []string { return append(keys(m.tools), keys(m.own)...) }

func keys[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for key := range m {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// scopePrivate says that nobody but its client may keep an answer: what a
// client sees depends on who it is (MCP 2026-07-28: server/utilities/caching).
const scopePrivate = "private"

// list answers the list methods, in one page: what a client asked for is here
// already, and some never ask for the second page.
func (g *Gateway) list(ctx context.Context, method string, req mcp.Request) (*rawResult, error) {
	menu, err := g.menu(ctx, req)
	if err != nil {
		return nil, err
	}
	member := strings.TrimSuffix(method, "/list")
	if member == "resources/templates" {
		member = "resourceTemplates"
	}
	list, isModern := menu.lists[method], modern(req)
	if other := menu.lists[legacyTools]; method == "tools/list" && other != nil && !isModern {
		list = other
	}
	body := slices.Concat([]byte(`{"`+member+`":`), list, []byte("}"))
	if isModern {
		body = fmt.Appendf(body[:len(body)-1], `,"resultType":"complete","ttlMs":%d,"cacheScope":%q}`, g.Fresh.Milliseconds(), scopePrivate)
	}
	return &rawResult{body: body}, nil
}
