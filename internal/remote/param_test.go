package remote_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/upstream"
)

// What a tool says of headers must be something that a header can be: a client
// leaves other tools out. The older transport has no such headers.
func TestJudge(t *testing.T) {
	type judge interface {
		Judge(tool json.RawMessage) error
	}
	p := dial(t, remote.Address{URL: "https://mcp.example.com/mcp"}, remote.Options{})
	tests := []struct {
		properties string
		want       string // the error
	}{
		{`{}`, ""},
		{`{"a":{"type":"object"},"b":true}`, ""},
		{`{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"integer","x-mcp-header":"Zone"},"c":{"type":"boolean","x-mcp-header":"D.e!"}}`, ""},
		{`{"a":{"type":["string","null"],"x-mcp-header":"Region"}}`, ""},
		{`{"a":{"properties":{"b":{"type":"string","x-mcp-header":"City"}}}}`, ""},
		{`{"a":{"type":"string","x-mcp-header":""}}`, `tool "t": parameter a: x-mcp-header "" is not a name of a header`},
		{`{"a":{"type":"string","x-mcp-header":null}}`, `tool "t": parameter a: x-mcp-header null is not a name of a header`},
		{`{"a":{"type":"string","x-mcp-header":1}}`, `tool "t": parameter a: x-mcp-header 1 is not a name of a header`},
		{`{"a":{"type":"string","x-mcp-header":"My Region"}}`, `tool "t": parameter a: x-mcp-header "My Region" is not a name of a header`},
		{`{"a":{"type":"string","x-mcp-header":"a:b"}}`, `tool "t": parameter a: x-mcp-header "a:b" is not a name of a header`},
		{`{"a":{"type":"string","x-mcp-header":"Région"}}`, `tool "t": parameter a: x-mcp-header "Région" is not a name of a header`},
		{`{"a":{"type":"number","x-mcp-header":"A"}}`, `tool "t": parameter a: x-mcp-header on what is not a string, an integer or a boolean`},
		{`{"a":{"type":["string","array"],"x-mcp-header":"A"}}`, `tool "t": parameter a: x-mcp-header on what is not a string, an integer or a boolean`},
		{`{"a":{"type":"null","x-mcp-header":"A"}}`, `tool "t": parameter a: x-mcp-header on what is not a string, an integer or a boolean`},
		{`{"a":{"x-mcp-header":"A"}}`, `tool "t": parameter a: x-mcp-header on what is not a string, an integer or a boolean`},
		{`{"a":{"properties":{"b":{"type":"array","x-mcp-header":"A"}}}}`, `tool "t": parameter a.b: x-mcp-header on what is not a string, an integer or a boolean`},
		{`{"a":{"type":"string","x-mcp-header":"Field"},"b":{"type":"string","x-mcp-header":"field"}}`, `tool "t": x-mcp-header "field" twice`},
	}
	for _, tt := range tests {
		got := ""
		if err := p.(judge).Judge(json.RawMessage(`{"name":"t","inputSchema":{"type":"object","properties":` + tt.properties + `}}`)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Judge(%s) = %q, want %q", tt.properties, got, tt.want)
		}
	}
	older := dial(t, remote.Address{URL: newPlace(t, oldSSE(newServer())).URL, Transport: catalog.SSE}, remote.Options{})
	if err := older.(judge).Judge(json.RawMessage(`{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":""}}}}`)); err != nil {
		t.Errorf("Judge(over the older transport) = %v, want none", err)
	}
}

// A tool that cannot be called is not among those that a server offers.
func TestUncallableIsLeftOut(t *testing.T) {
	inner := streamable(newServer(), upstream.Modern)
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err != nil || json.Unmarshal(body, &request) != nil || request.Method != "tools/list" {
			r.Body = io.NopCloser(bytes.NewReader(body))
			inner.ServeHTTP(w, r)
			return
		}
		answer(w, http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":`+string(request.ID)+`,"result":{"resultType":"complete","tools":[
			{"name":"good","inputSchema":{"type":"object"}},
			{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a header"}}}}]}}`)
	}))
	offer, err := converse(t, dial(t, remote.Address{URL: p.URL}, remote.Options{}), upstream.Options{}).Offer(t.Context())
	if err != nil || len(offer.Tools) != 1 || offer.Tools[0].Name != "good" || len(offer.Refused) != 1 {
		t.Errorf("Offer() = %v, %v, want one tool and one refused", offer, err)
	}
}
