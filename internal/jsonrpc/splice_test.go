package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

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

// FuzzWith holds that one member is set, in every object there is, and that
// no other is touched.
func FuzzWith(f *testing.F) {
	for _, object := range []string{`{}`, `{"a":1,"name":[],"name":2}`, "{ \"n\\u0061me\" : 1 ,\n\"\xff\":{}}", `{"a"`, `[]`, `{"a":1}}`, `{,}`} {
		f.Add([]byte(object), "name", []byte(`"x"`))
	}
	f.Fuzz(func(t *testing.T, object []byte, name string, value []byte) {
		if !json.Valid(value) || !utf8.ValidString(name) { // both are ours
			return
		}
		got, err := jsonrpc.With(object, name, value)
		var before map[string]json.RawMessage
		if isObject := json.Unmarshal(object, &before) == nil && before != nil; isObject != (err == nil) {
			t.Fatalf("With(%q) = %q, %v", object, got, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("With(%q, %q, %q) = %q, which is no JSON", object, name, value, got)
		}
		if set := jsonrpc.Lookup(got, name); !bytes.Equal(set, bytes.Trim(value, " \t\r\n")) {
			t.Errorf("With(%q, %q, %q) = %q, in which it is %q", object, name, value, got, set)
		}
		if want, others := others(object, name), others(got, name); !slices.Equal(want, others) {
			t.Errorf("With(%q, %q) = %q, whose other members are %q, want %q", object, name, got, others, want)
		}
	})
}

// others returns the members of an object that have another name, as they
// were written.
func others(object []byte, name string) (all []string) {
	for m, err := range jsonrpc.Members(object) {
		switch {
		case err != nil:
			all = append(all, err.Error())
		case string(m.Name) != name:
			all = append(all, string(m.Raw))
		}
	}
	return all
}
