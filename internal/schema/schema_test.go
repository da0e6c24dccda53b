package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/schema"
)

func TestParameters(t *testing.T) {
	tests := []struct {
		property string
		want     string // type
	}{
		{`{"type":"string"}`, "string"},
		{`{"type":["string","null"]}`, "string|null"},
		{`{"type":"array","items":{"type":"string"}}`, "string[]"},
		{`{"type":"array","items":{"$ref":"#/$defs/point"}}`, "object[]"},
		{`{"type":"array"}`, "array"},
		{`{"enum":["open","closed"]}`, "open|closed"},
		{`{"type":"string","enum":["open","closed"]}`, "open|closed"},
		{`{"type":"string","enum":["` + strings.Repeat("long", 20) + `"]}`, "string"},
		{`{"enum":[1,2]}`, "any"},
		{`{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"integer"}]}`, "integer|null"},
		{`{"oneOf":[{"$ref":"#/$defs/point"},{"enum":["a"]}]}`, "object|string"},
		{`{"$ref":"#/$defs/point"}`, "object"},
		{`{"$ref":"#/$defs/a~1b"}`, "boolean"},
		{`{"$ref":"#/$defs/nowhere"}`, "any"},
		{`{"$ref":"https://example.com/x"}`, "any"},
		{`{"properties":{}}`, "object"},
		{`{}`, "any"},
		{`true`, "any"},
		{`{"type":7}`, "any"},
	}
	for _, tt := range tests {
		input := `{"type":"object","$defs":{"point":{"type":"object"},"a/b":{"type":"boolean"}},"properties":{"p":` + tt.property + `}}`
		got := schema.Parameters(json.RawMessage(input))
		if len(got) != 1 || got[0].Type != tt.want {
			t.Errorf("Parameters(%s) = %+v, want the type %s", tt.property, got, tt.want)
		}
	}
	got := schema.Parameters(json.RawMessage(`{"required":["z","b",1],"properties":{"a":{"description":" of\n two lines "},"z":{},"b":{}}}`))
	if len(got) != 3 || got[0].Name != "a" || got[0].Required || got[0].Description != "of two lines" {
		t.Errorf("Parameters = %+v, want a first, as nothing is required by a bad list", got)
	}
	want := []schema.Parameter{{Name: "z", Type: "any", Required: true}, {Name: "b", Type: "any", Required: true}, {Name: "a", Type: "any"}}
	if diff := cmp.Diff(want, schema.Parameters(json.RawMessage(`{"properties":{"a":{},"z":{},"b":{}},"required":["z","b"]}`))); diff != "" {
		t.Errorf("Parameters (-want +got):\n%s", diff)
	}
	for _, bad := range []string{``, `null`, `[]`, `{"properties":[]}`, `{"properties":`} {
		if got := schema.Parameters(json.RawMessage(bad)); len(got) != 0 || got == nil {
			t.Errorf("Parameters(%s) = %v, want none", bad, got)
		}
	}
}

func TestInstance(t *testing.T) {
	tests := []struct {
		schema string
		want   string
		own    bool
	}{
		{`{}`, `{}`, false},
		{`{"properties":{"a":{"type":"string"}}}`, `{}`, false},
		{`{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b","a"]}`, `{"a":"\u003ca\u003e","b":1}`, false},
		{`{"properties":{"a":{"examples":["x","y"]},"b":{"example":2}}}`, `{"a":"x","b":2}`, true},
		{`{"properties":{"a":{"examples":["x"]},"b":{"type":"boolean"}},"required":["b"]}`, `{"a":"x","b":true}`, false},
		{`{"properties":{"a":{"const":7},"b":{"default":[1]},"c":{"enum":["x","y"]},"d":{"type":"null"},"e":{"type":"number","minimum":3}},"required":["a","b","c","d","e"]}`, `{"a":7,"b":[1],"c":"x","d":null,"e":3}`, false},
		{`{"properties":{"a":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"},"y":{}},"required":["x"]}}},"required":["a"]}`, `{"a":[{"x":"\u003cx\u003e"}]}`, false},
		{`{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["a"]}`, `{"a":1}`, false},
		{`{"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}},"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"]}`, `{"a":{"n":{"n":{"n":{"n":{}}}}}}`, false},
	}
	for _, tt := range tests {
		got, own := schema.Instance(json.RawMessage(tt.schema))
		if string(got) != tt.want || own != tt.own {
			t.Errorf("Instance(%s) = %s, %t, want %s, %t", tt.schema, got, own, tt.want, tt.own)
		}
	}
	if got := schema.Examples(json.RawMessage(`{"examples":[{"a":1},2,{"b":3}]}`)); len(got) != 2 || string(got[1]) != `{"b":3}` {
		t.Errorf("Examples = %s, want the two objects", got)
	}
}

func TestCheck(t *testing.T) {
	const issue = `{"$id":"https://example.com/issue","type":"object","$defs":{"tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"},"n":{"type":"integer"}},"additionalProperties":false}},
		"properties":{"repo":{"type":"string","minLength":1},"tree":{"$ref":"#/$defs/tree"}},"required":["repo"]}`
	tests := []struct{ schema, arguments, problem string }{
		{issue, `{"repo":"a/b"}`, ""},
		{issue, `{}`, `missing properties: ["repo"]`},
		{issue, `{"repo":1}`, `1 has type "integer", want "string"`},
		{issue, `{"repo":""}`, "minLength"},
		{issue, `{"repo":"a","tree":{"next":{"next":{"n":1}}}}`, ""},
		{issue, `{"repo":"a","tree":{"next":{"next":{"n":"x"}}}}`, `"string", want "integer"`},
		{issue, `{"repo":"a","tree":{"next":{"other":1}}}`, "additional"},
		{issue, `{"repo":"a"`, "unexpected end"},
		{`{}`, `{"x":1}`, ""},
		{`true`, `{"x":1}`, ""},
		{`null`, `{"x":1}`, ""},
		{``, `{"x":1}`, ""},
		{`{"type":"str"}`, `{"x":1}`, ""},                                          // no type there is
		{`{"properties":{"x":{"pattern":"(?=a)"}}}`, `{"x":"b"}`, ""},              // no RE2
		{`{"$ref":"https://example.com/elsewhere"}`, `{"x":1}`, ""},                // not here
		{`{"properties":{"x":{"$id":"y","$ref":"#/z"}},"z":false}`, `{"x":1}`, ""}, // not to be followed
		{`{"required":["` + strings.Repeat("x", 300<<10) + `"]}`, `{}`, ""},        // too long
		{`{"properties":{"x":{"$ref":"#/$defs/%7E1"}},"$defs":{"/":{"type":"string"}}}`, `{"x":1}`, `want "string"`},
	}
	var c schema.Checker
	for _, tt := range tests {
		for range 2 { // the second time it is kept
			err := c.Check(json.RawMessage(tt.schema), json.RawMessage(tt.arguments))
			var mismatch *schema.MismatchError
			if (err == nil) != (tt.problem == "") || err != nil && (!errors.As(err, &mismatch) || !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("Check(%.200s, %s) = %v, want %q", tt.schema, tt.arguments, err, tt.problem)
			}
		}
	}
}

// hostile are schemas that would make a validator run for ever, or nearly.
func hostile() map[string]string {
	var doubling, wide strings.Builder
	for i := range 60 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for i := range 3000 {
		fmt.Fprintf(&wide, `{"$ref":"#/$defs/w%d"},`, i%2)
	}
	all := strings.TrimSuffix(wide.String(), ",")
	return map[string]string{
		"itself":       `{"$ref":"#"}`,
		"in a list":    `{"allOf":[{"$ref":"#"}]}`,
		"not":          `{"not":{"$ref":"#"}}`,
		"if":           `{"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"}}`,
		"by a part":    `{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}}}`,
		"by another":   `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`,
		"encoded":      `{"$ref":"#/%24defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}`,
		"escaped":      `{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/a~1b"}}}`,
		"dynamic":      `{"$dynamicRef":"#"}`,
		"disguised":    `{"$dYnAmiCref":"#"}`,
		"a disguise":   `{"properties":{"a":{"ANYOF":[{"$REF":"#/properties/a"}]}}}`,
		"an anchor":    `{"$anchor":"a","allOf":[{"$ref":"#a"}]}`,
		"dependent":    `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		"doubling":     `{"$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d60":{}}}`,
		"wide":         `{"allOf":[` + all + `],"$defs":{"w0":{"allOf":[` + all + `]},"w1":{}}}`,
		"in a pattern": `{"patternProperties":{".":{"$ref":"#/$defs/x"}},"$defs":{"x":{"oneOf":[{"$ref":"#/$defs/x"}]}}}`,
		"a tree":       `{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}},"required":["a","b"],"additionalProperties":{"$ref":"#"}}`,
	}
}

// No schema makes anything hang, or the stack run over.
func TestHostile(t *testing.T) {
	for name, text := range hostile() {
		began := time.Now()
		_, err := read(json.RawMessage(text), json.RawMessage(`{"a":{"a":{"b":[1,{"a":{}}]}},"b":{}}`))
		if err != nil && name != "a tree" {
			t.Errorf("%s: Check = %v, want nothing to be checked", name, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	var properties, required strings.Builder
	for i := range 100 {
		fmt.Fprintf(&properties, `"p%d":{"$ref":"#"},`, i)
		fmt.Fprintf(&required, `"p%d",`, i)
	}
	broad := json.RawMessage(`{"type":"object","properties":{` + strings.TrimSuffix(properties.String(), ",") + `},"required":[` + strings.TrimSuffix(required.String(), ",") + `]}`)
	if got, _ := schema.Instance(broad); len(got) > 64<<10 || !json.Valid(got) {
		t.Errorf("Instance of a broad schema has %d bytes, want few", len(got))
	}
}

// read does with a schema all that can be done.
func read(input, arguments json.RawMessage) (instance json.RawMessage, err error) {
	schema.Parameters(input)
	schema.Examples(input)
	instance, _ = schema.Instance(input)
	var c schema.Checker
	return instance, c.Check(input, arguments)
}

// FuzzSchema holds every schema to bounded time, and what is made of it to
// being JSON.
func FuzzSchema(f *testing.F) {
	for _, text := range hostile() {
		if len(text) < 2000 {
			f.Add([]byte(text), []byte(`{"a":{"b":[1]}}`))
		}
	}
	f.Add([]byte(`{"properties":{"a":{"type":["array","null"],"items":{"enum":[1]}}},"required":["a"]}`), []byte(`{"a":[1]}`))
	f.Fuzz(func(t *testing.T, input, arguments []byte) {
		instance, err := read(input, arguments)
		var mismatch *schema.MismatchError
		if err != nil && !errors.As(err, &mismatch) {
			t.Errorf("Check(%q, %q) = %v, want a MismatchError", input, arguments, err)
		}
		if json.Valid(input) && !json.Valid(instance) {
			t.Errorf("Instance(%q) = %q, which is not JSON", input, instance)
		}
	})
}
