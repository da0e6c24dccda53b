package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestListable(t *testing.T) {
	for _, tt := range []struct{ definition, want string }{
		{`{ "name":"a", "inputSchema": {"type":"object","x":1.0}, "vendor":null}`, `{ "name":"a", "inputSchema": {"type":"object","x":1.0}, "vendor":null}`},
		{`{"name":"a"}`, `{"name":"a","inputSchema":{"type":"object"}}`},
		{`{"inputSchema":null,"name":"a"}`, `{"name":"a","inputSchema":{"type":"object"}}`},
		{`{"inputSchema":{},"name":"a"}`, `{"name":"a","inputSchema":{"type":"object"}}`},
		{`{"name":"a","inputSchema":{"required":["x"]}}`, `{"name":"a","inputSchema":{"required":["x"],"type":"object"}}`},
		{`{"name":"a","inputSchema":{"type":["null","object"],"x":1}}`, `{"name":"a","inputSchema":{"type":"object","x":1}}`},
		{
			`{"name":"a","title":null,"description":null,"annotations":null,"outputSchema":null,"inputSchema":{"type":"object"}}`,
			`{"name":"a","inputSchema":{"type":"object"}}`,
		},
		{`{"name":"a","inputSchema":true}`, "error: inputSchema is not an object"},
		{`{"name":"a","inputSchema":"object"}`, "error: inputSchema is not an object"},
		{`{"name":"a","inputSchema":[]}`, "error: inputSchema is not an object"},
		{`{"name":"a","inputSchema":{"type":"string"}}`, "error: inputSchema is of a type that arguments never have"},
		{`{"name":"a","inputSchema":{"type":["string"]}}`, "error: inputSchema is of a type that arguments never have"},
		{`{"name":"a","inputSchema":{"type":17}}`, "error: inputSchema is of a type that arguments never have"},
		{`{"name":"a","inputSchema":{"type":"object"},"description":17}`, "error: description is of another kind than it must be"},
		{`{"name":"a","inputSchema":{"type":"object"},"annotations":"none"}`, "error: annotations is of another kind than it must be"},
		{`{"name":"a","inputSchema":{"type":"object"},"inputSchema":7}`, "error: inputSchema is not an object"},
		{`[]`, "error: unexpected character at byte 0"},
	} {
		listed, err := gateway.Listable(json.RawMessage(tt.definition))
		got := string(listed)
		if err != nil {
			got = "error: " + err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("listable(%s) (-want +got):\n%s", tt.definition, diff)
		}
	}
}

// Whatever a definition is, what is listed of it has a schema of an object, and
// listing it again changes nothing.
func FuzzListable(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":["object"]},"title":null,"icons":[]}`))
	f.Add([]byte(`{"name":"a","name":"b","inputSchema":null,"inputSchema":{}}`))
	f.Fuzz(func(t *testing.T, definition []byte) {
		if !json.Valid(definition) {
			return
		}
		once, err := gateway.Listable(definition)
		if err != nil {
			return
		}
		twice, err := gateway.Listable(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("listable(%s) = %s, and of that %s, %v", definition, once, twice, err)
		}
		if kind := jsonrpc.Lookup(jsonrpc.Lookup(once, "inputSchema"), "type"); string(kind) != `"object"` {
			t.Errorf("listable(%s) = %s, want an input schema of type object", definition, once)
		}
	})
}

func TestBounds(t *testing.T) {
	many := func(s *mcp.Server) {
		for _, name := range []string{"a", "b", "c"} {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
		}
	}
	for _, tt := range []struct {
		bounds gateway.Bounds
		want   []string
	}{
		{gateway.Bounds{}, []string{"one__a", "one__b", "one__c", "two__promised"}},
		{gateway.Bounds{Tools: 3}, []string{"one__a", "one__b", "one__c"}},
		{gateway.Bounds{Tools: 2}, []string{"one__a", "one__b"}},
		{gateway.Bounds{Servers: 1}, []string{"one__a", "one__b", "one__c"}},
	} {
		h := build(t, options{mode: approval.ModeAll, expose: []meta.Group{gateway.Active}, active: []string{"one", "two"}},
			map[string]sandboxtest.Server{"test/one": sdkServer(many)})
		h.Bounds = tt.bounds
		client := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil))
		invoke(t, client, "one__a", map[string]any{}) // starts and lists it
		h.Changed(t.Context())
		if diff := cmp.Diff(tt.want, names(t, client)); diff != "" {
			t.Errorf("with %+v (-want +got):\n%s", tt.bounds, diff)
		}
	}
}
