package menu

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/yosida95/uritemplate/v3"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// A Writer makes a Menu. What is added first has the first choice of a name.
type Writer struct {
	menu   Menu
	prefix Prefix
	arrays map[string]*bytes.Buffer
}

// NewWriter returns a Writer of an empty menu.
func NewWriter(prefix Prefix) *Writer {
	return &Writer{
		menu: Menu{
			own: map[string]bool{}, tools: map[string]tool.Ref{}, prompts: map[string]tool.Ref{}, resources: map[string]string{},
			lists: map[string]json.RawMessage{}, mirrored: map[tool.Ref][]mirrored{},
		},
		prefix: prefix,
		arrays: map[string]*bytes.Buffer{tools: {}, prompts: {}, resources: {}, templates: {}},
	}
}

func (w *Writer) add(method string, entry json.RawMessage) {
	array := w.arrays[method]
	if array.Len() > 0 {
		array.WriteByte(',')
	}
	array.Write(entry)
}

// Own lists a tool of the gateway itself, as it is.
func (w *Writer) Own(name string, definition json.RawMessage) {
	w.menu.own[name] = true
	w.add(tools, definition)
}

// Tool lists a server's tool under the name that clients see.
func (w *Writer) Tool(ref tool.Ref, definition json.RawMessage) error {
	name := w.prefix.Name(ref, func(name string) bool {
		_, other := w.menu.tools[name]
		return w.menu.own[name] || other
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
	w.menu.tools[name] = ref
	if found := mirroredIn(definition); len(found) > 0 {
		w.menu.mirrored[ref] = found
	}
	if len(forLegacy) != len(renamed) && w.arrays[legacyTools] == nil { // from here on the lists differ
		w.arrays[legacyTools] = bytes.NewBuffer(bytes.Clone(w.arrays[tools].Bytes()))
	}
	w.add(tools, renamed)
	if w.arrays[legacyTools] != nil {
		w.add(legacyTools, forLegacy)
	}
	return nil
}

// Prompt lists a server's prompt under the name that clients see.
func (w *Writer) Prompt(server string, entry json.RawMessage) error {
	var head struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(entry, &head); err != nil {
		return err
	}
	ref := tool.Ref{Server: server, Name: head.Name}
	name := w.prefix.Name(ref, func(name string) bool { _, other := w.menu.prompts[name]; return other })
	renamed, err := rename(entry, name)
	if err != nil {
		return err
	}
	w.menu.prompts[name] = ref
	w.add(prompts, renamed)
	return nil
}

// Resource lists a resource. URIs are not renamed: they stand in results too.
// Where two servers have one URI, the first keeps it.
func (w *Writer) Resource(server string, entry json.RawMessage) error {
	var uri string
	if err := json.Unmarshal(jsonrpc.Lookup(entry, "uri"), &uri); err != nil {
		return err
	}
	w.keep(resources, uri, server, entry)
	return nil
}

// Template lists a template of resources, in the same way.
func (w *Writer) Template(server string, entry json.RawMessage) error {
	var uri string
	if err := json.Unmarshal(jsonrpc.Lookup(entry, "uriTemplate"), &uri); err != nil {
		return err
	}
	pattern, err := uritemplate.New(uri)
	if err != nil {
		return err
	}
	if w.keep(templates, uri, server, entry) {
		w.menu.templates = append(w.menu.templates, template{pattern: pattern, server: server})
	}
	return nil
}

// keep lists an entry unless its URI is taken.
func (w *Writer) keep(method, uri, server string, entry json.RawMessage) bool {
	if _, other := w.menu.resources[uri]; other {
		return false
	}
	w.menu.resources[uri] = server
	w.add(method, entry)
	return true
}

// Tools returns how many tools of servers are listed by now.
func (w *Writer) Tools() int { return len(w.menu.tools) }

// Menu returns what was written. Nothing is added after it.
func (w *Writer) Menu() *Menu {
	for method, array := range w.arrays {
		w.menu.lists[method] = slices.Concat([]byte("["), array.Bytes(), []byte("]"))
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
