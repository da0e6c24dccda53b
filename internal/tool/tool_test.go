package tool_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/tool"
)

func TestExposed(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, test := range []struct{ server, name, want string }{
		{"demo", "echo", "demo__echo"},
		{"demo", "_echo", "demo___echo"},
		{"demo", "read-file", "demo__read-file"},
		{"demo", "read.file", "demo__read_file_9f542a62"},
		{"demo_", "echo", "demo___echo_64d0e122"},
		{"a__b", "c", "a__b__c_a92700ce"},
		{"a", "b__c", "a__b__c"},
		{"a.b", "c", "a_b__c_8b745bb4"},
		{"a", "", "a__"},
		{"a", "git_0a1b2c3d", "a__git_0a1b2c3d_66cc6690"},
		{"a", long, "a__" + strings.Repeat("x", 52) + "_56ba59da"},
		{"a", "naïve\x00", "a__na__ve__b939d087"},
	} {
		got := tool.Ref{Server: test.server, Name: test.name}.Exposed()
		if got != test.want {
			t.Errorf("Exposed(%q, %q) = %q, want %q", test.server, test.name, got, test.want)
		}
		if len(got) > tool.MaxExposed {
			t.Errorf("Exposed(%q, %q) has %d bytes, want at most %d", test.server, test.name, len(got), tool.MaxExposed)
		}
	}
}

func TestDigest(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b string
		same bool
	}{
		{"order of members", `{"name":"a","x":{"p":1,"q":2}}`, `{ "x":{"q":2,"p":1}, "name":"a"}`, true},
		{"order of elements", `{"name":"a","x":[1,2]}`, `{"name":"a","x":[2,1]}`, false},
		{"a description", `{"name":"a","description":"x"}`, `{"name":"a","description":"y"}`, false},
		{"the first of two members", `{"name":"a","x":1,"x":2}`, `{"name":"a","x":3,"x":2}`, false},
		{"the first of two inner members", `{"name":"a","y":[{"x":1,"x":2}]}`, `{"name":"a","y":[{"x":3,"x":2}]}`, false},
		{"whitespace", `{"name":"a","y":[ 1,null ,true, "s" ,{}]}`, `{"name":"a","y":[1,null,true,"s",{}]}`, true},
		{"big integers", `{"name":"a","x":9007199254740993}`, `{"name":"a","x":9007199254740992}`, false},
	} {
		a := tool.Definition{JSON: json.RawMessage(test.a)}.Digest()
		b := tool.Definition{JSON: json.RawMessage(test.b)}.Digest()
		if (a == b) != test.same {
			t.Errorf("%s: Digest(%s) == Digest(%s) = %t, want %t", test.name, test.a, test.b, a == b, test.same)
		}
	}
}

func TestParseDefinition(t *testing.T) {
	for _, raw := range []string{`{"name":"echo","vendor":1}`, `{"name":"echo","NAME":"other"}`, `{"Name":"other", "name":"echo"}`} {
		got, err := tool.ParseDefinition(json.RawMessage(raw))
		if err != nil || got.Name != "echo" || string(got.JSON) != raw {
			t.Errorf("ParseDefinition(%s) = %+v, %v; want echo with all its bytes", raw, got, err)
		}
	}
	for _, bad := range []string{`{}`, `[]`, `{"name":1}`, `{"name":""}`, ``} {
		if got, err := tool.ParseDefinition(json.RawMessage(bad)); err == nil {
			t.Errorf("ParseDefinition(%s) = %+v, want an error", bad, got)
		}
	}
}

// Names must be legal and distinct whatever servers call their tools.
func FuzzExposed(f *testing.F) {
	f.Add("demo", "echo", "demo", "echo2")
	f.Add("a", "b__c", "a__b", "c")
	f.Add("a_", "b", "a", "_b")
	f.Fuzz(func(t *testing.T, s1, n1, s2, n2 string) {
		a, b := tool.Ref{Server: s1, Name: n1}, tool.Ref{Server: s2, Name: n2}
		if a != b && a.Exposed() == b.Exposed() {
			t.Errorf("%q and %q are both exposed as %q", a, b, a.Exposed())
		}
		for _, name := range []string{a.Exposed(), a.Bare()} {
			if len(name) > tool.MaxExposed || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
				t.Errorf("%q is exposed as %q", a, name)
			}
		}
	})
}

// A definition is kept as it came, and has a digest of its own.
func FuzzParseDefinition(f *testing.F) {
	for _, raw := range []string{`{"name":"a","x":{"z":1,"a":[1e400,"\u2028"]}}`, `{"name":"a","name":"b"}`, `{"NAME":"a"}`, `{"name":"a","x":{"y":1,"y":2}}`, `{"name":"\ud800"}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := tool.ParseDefinition(raw)
		if err != nil {
			return
		}
		if d.Name == "" || !bytes.Equal(d.JSON, raw) {
			t.Errorf("ParseDefinition(%q) = %+v, want a name and all its bytes", raw, d)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		members["x-other"] = json.RawMessage(`"` + d.Digest() + `"`)
		changed, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		if (tool.Definition{JSON: changed}).Digest() == d.Digest() {
			t.Errorf("Digest(%q) is that of %q", raw, changed)
		}
	})
}
