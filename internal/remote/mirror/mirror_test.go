package mirror_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/remote/mirror"
)

// What a tool says of headers must be something that a header can be: a client
// leaves other tools out.
func TestJudge(t *testing.T) {
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
		if err := mirror.Judge(json.RawMessage(`{"name":"t","inputSchema":{"type":"object","properties":` + tt.properties + `}}`)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Judge(%s) = %q, want %q", tt.properties, got, tt.want)
		}
	}
}
