package menu_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
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
		listed, err := menu.Listable(json.RawMessage(tt.definition))
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
		once, err := menu.Listable(definition)
		if err != nil {
			return
		}
		twice, err := menu.Listable(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("listable(%s) = %s, and of that %s, %v", definition, once, twice, err)
		}
		if kind := jsonrpc.Lookup(jsonrpc.Lookup(once, "inputSchema"), "type"); string(kind) != `"object"` {
			t.Errorf("listable(%s) = %s, want an input schema of type object", definition, once)
		}
	})
}

// FuzzRename holds that a tool is listed as its server defined it, but for its
// name.
func FuzzRename(f *testing.F) {
	for _, definition := range []string{
		`{"name":"a","x":[1e400, "\u2028"]}`, `{}`, `{"n\u0061me":1,"name":2}`, `{"x":{"name":"b"}}`, `{`, `[]`, `{"a":1,}`, `{"NAME":"a"}`,
	} {
		f.Add([]byte(definition), "listed")
	}
	f.Fuzz(func(t *testing.T, definition []byte, name string) {
		renamed, err := menu.Rename(definition, name)
		var before map[string]json.RawMessage
		wasObject := json.Unmarshal(definition, &before) == nil && before != nil
		switch {
		case err != nil && wasObject:
			t.Errorf("Rename(%q) = %v", definition, err)
			return
		case err != nil:
			return
		}
		var after map[string]json.RawMessage
		if err := json.Unmarshal(renamed, &after); err != nil {
			t.Fatalf("Rename(%q) = %q, which is no object: %v", definition, renamed, err)
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(after["name"], quoted) {
			t.Errorf("Rename(%q, %q) names it %s", definition, name, after["name"])
		}
		delete(before, "name")
		delete(after, "name")
		if fmt.Sprintf("%q", before) != fmt.Sprintf("%q", after) {
			t.Errorf("Rename(%q) = %q, which changes other members", definition, renamed)
		}
	})
}

// FuzzListing holds that every listed name is another one and leads to its
// tool, whatever servers call their tools, and that no other name leads to a
// server that is in no catalog.
func FuzzListing(f *testing.F) {
	f.Add(false, "one", "echo", "two", "echo", "one__echo")
	f.Add(true, "one", "echo", "two", "echo", "two.echo")
	f.Add(true, "a", "one__echo", "b", "echo", "echo")
	f.Add(true, "a__b", "c", "a", "b__c", "a__b__c")
	f.Add(true, "one", "mcp_find", "two", "ONE", "three__echo")
	f.Add(false, "one", "x\x00", "one", "x\x01", ".")
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(gatewaytest.Entries))
	if err != nil {
		f.Fatal(err)
	}
	servers, _ := catalog.Merge(file)
	f.Fuzz(func(t *testing.T, bare bool, s1, n1, s2, n2, asked string) {
		prefix := menu.PrefixServer
		if bare {
			prefix = menu.PrefixNone
		}
		w := menu.NewWriter(prefix)
		w.Own("mcp_find", json.RawMessage(`{"name":"mcp_find"}`))
		refs := []tool.Ref{{Server: s1, Name: n1}, {Server: s2, Name: n2}, {Server: "one", Name: "echo"}, {Server: "two", Name: "echo"}}
		var want []tool.Ref
		seen := map[tool.Ref]bool{}
		for _, ref := range refs {
			if seen[ref] { // a server's second tool of one name never comes here
				continue
			}
			seen[ref] = true
			if err := w.Tool(ref, json.RawMessage(`{}`)); err != nil {
				t.Fatalf("Tool(%q) = %v", ref, err)
			}
			want = append(want, ref)
		}
		listing := w.Menu()
		var list []struct{ Name string }
		if err := json.Unmarshal(listing.List("tools/list"), &list); err != nil || len(list) != 1+len(want) {
			t.Fatalf("list of %d tools = %s, %v", len(want), listing.List("tools/list"), err)
		}
		for i, listed := range list[1:] {
			if got, ok := listing.Tool(listed.Name, servers); !ok || got != want[i] {
				t.Errorf("%q is listed as %q, which leads to %q, %t", want[i], listed.Name, got, ok)
			}
		}
		ref, ok := listing.Tool(asked, servers)
		if _, err := servers.Server(ref.Server); ok && err != nil && !seen[ref] {
			t.Errorf("%q leads to %q, which is neither listed nor in a catalog", asked, ref)
		}
	})
}
