package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

func TestWith(t *testing.T) {
	for _, tt := range []struct{ object, want string }{
		{`{}`, `{"name":"x"}`},
		{`{"name":"a"}`, `{"name":"x"}`},
		{`{ "z": 1e400 , "name" : "a", "b":{"name":1} }`, `{"z": 1e400,"name":"x","b":{"name":1}}`},
		{`{"name":"a","q":1,"name":"b"}`, `{"name":"x","q":1}`},
		{`{"n\u0061me":"a"}`, `{"name":"x"}`},
		{"{\"\u2028\":\"<&>\"}", "{\"\u2028\":\"<&>\",\"name\":\"x\"}"},
	} {
		got, err := jsonrpc.With(json.RawMessage(tt.object), "name", json.RawMessage(`"x"`))
		if err != nil || string(got) != tt.want {
			t.Errorf("With(%s) = %s, %v, want %s", tt.object, got, err, tt.want)
		}
	}
	for _, bad := range []string{``, `[]`, `null`, `{"a"}`, `{"a":1`} {
		if got, err := jsonrpc.With(json.RawMessage(bad), "name", json.RawMessage(`1`)); err == nil {
			t.Errorf("With(%s) = %s, want an error", bad, got)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct{ object, want string }{
		{`{"a":1,"b":[2 ]}`, `[2 ]`},
		{`{"b":1,"b":2}`, `2`},
		{`{"a":{"b":1}}`, ``},
		{`[]`, ``},
		{``, ``},
	} {
		if got := jsonrpc.Lookup(json.RawMessage(tt.object), "b"); string(got) != tt.want {
			t.Errorf("Lookup(%s) = %s, want %s", tt.object, got, tt.want)
		}
	}
}
