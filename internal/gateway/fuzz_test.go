package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/tool"
)

// quiet keeps a house from logging into a fuzz target.
type quiet struct{ testing.TB }

// Log drops what it is told.
func (quiet) Log(...any) {}

// FuzzLines holds that nothing a client writes, before or after its
// initialize, breaks or blocks its session: a last ping is answered, all that
// comes back is JSON-RPC, and the session ends with its stream.
func FuzzLines(f *testing.F) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{"a":1},"_meta":{"progressToken":1}}}`
	for _, lines := range []string{
		call,
		call + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		call + "\n" + call,
		hello,
		`[` + hello + `,` + call + `]`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_add","arguments":{"name":"two"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"one.echo","requestState":"dockgate:x","inputResponses":{"approval":{}}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt"},"argument":null}}`,
		`{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"x:"}}` + "\n" + `{"jsonrpc":"2.0","id":6,"method":"prompts/get"}`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":[]}` + "\n" + `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\r\n\r\n" + `{"id":1e3}` + "\x00\xff",
	} {
		f.Add(false, []byte(lines))
		f.Add(true, []byte(lines))
	}
	h := build(quiet{f}, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	f.Fuzz(func(t *testing.T, first bool, lines []byte) {
		in, client := io.Pipe()
		answers, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- h.Serve(context.WithoutCancel(t.Context()), in, out, principal.Local) }()
		last := `"` + rand.Text() + `"`
		said := []string{hello, string(lines), `{"jsonrpc":"2.0","id":` + last + `,"method":"ping"}`}
		if first {
			said[0], said[1] = said[1], said[0]
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			for _, text := range said {
				if _, err := io.WriteString(client, text+"\n"); err != nil {
					t.Errorf("the gateway reads no further than %.200q: %v", text, err)
					return
				}
			}
		}()
		// What blocks ends here, with the messages that say what did.
		patience := time.AfterFunc(20*time.Second, func() {
			_ = answers.CloseWithError(context.DeadlineExceeded)
			_ = client.CloseWithError(context.DeadlineExceeded)
		})
		defer patience.Stop()
		received := bytes.NewBuffer(nil)
		reader := jsonrpc.NewReader(io.TeeReader(answers, received), jsonrpc.ReaderOptions{Dropped: func(line []byte, reason string) {
			t.Errorf("the gateway says %q, which is no message: %s", line, reason)
		}})
		for {
			m, err := reader.Read()
			if err != nil {
				t.Fatalf("after %q the ping is not answered: %v; received\n%s", lines, err, received)
			}
			if m.Kind() == jsonrpc.Response && string(m.ID) == last {
				break
			}
		}
		<-written
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, answers)
		}()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("after %q Serve = %v, want nil when the client leaves", lines, err)
		}
		<-drained
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
		renamed, err := gateway.Rename(definition, name)
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
	check(f, err)
	servers, _ := catalog.Merge(file)
	f.Fuzz(func(t *testing.T, bare bool, s1, n1, s2, n2, asked string) {
		prefix := gateway.PrefixServer
		if bare {
			prefix = gateway.PrefixNone
		}
		listing := gateway.NewListing(prefix)
		refs := []tool.Ref{{Server: s1, Name: n1}, {Server: s2, Name: n2}, {Server: "one", Name: "echo"}, {Server: "two", Name: "echo"}}
		var want []tool.Ref
		seen := map[tool.Ref]bool{}
		for _, ref := range refs {
			if seen[ref] { // a server's second tool of one name never comes here
				continue
			}
			seen[ref] = true
			if err := listing.Add(ref, json.RawMessage(`{}`), "mcp_find"); err != nil {
				t.Fatalf("Add(%q) = %v", ref, err)
			}
			want = append(want, ref)
		}
		var list []struct{ Name string }
		if err := json.Unmarshal(listing.Tools(), &list); err != nil || len(list) != len(want) {
			t.Fatalf("list of %d tools = %s, %v", len(want), listing.Tools(), err)
		}
		for i, listed := range list {
			if got, ok := listing.Resolve(listed.Name, servers); !ok || got != want[i] {
				t.Errorf("%q is listed as %q, which leads to %q, %t", want[i], listed.Name, got, ok)
			}
		}
		ref, ok := listing.Resolve(asked, servers)
		if _, err := servers.Server(ref.Server); ok && err != nil && !seen[ref] {
			t.Errorf("%q leads to %q, which is neither listed nor in a catalog", asked, ref)
		}
	})
}
