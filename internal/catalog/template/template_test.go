package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog/template"
)

func TestExpand(t *testing.T) {
	root := map[string]any{
		"config": map[string]any{
			"url": "u", "empty": "", "n": 5, "big": 1e6, "half": 0.5, "huge": int64(1) << 60, "yes": true, "null": nil,
			"num": json.Number("1.50"), "list": []any{"a", "b"}, "numbers": []any{1, 2.0}, "strings": []string{"c", "d"},
			"none": []any{}, "deep": map[string]any{"er": "v"}, "mixed": []any{"a", []any{}},
		},
		"file-system": map[string]any{"paths": []any{"/a", "/b"}},
	}
	tests := []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"plain", []string{"plain"}},
		{`{"a":{"b":1}}`, []string{`{"a":{"b":1}}`}},
		{"{{config.url}}", []string{"u"}},
		{"{{ config.url }}", []string{"u"}},
		{"--url={{config.url}}!", []string{"--url=u!"}},
		{"{{config.url}}{{config.n}}", []string{"u5"}},
		{"{{config.deep.er}}", []string{"v"}},
		{"{{config.big}}/{{config.half}}/{{config.huge}}/{{config.yes}}/{{config.num}}", []string{"1000000/0.5/1152921504606846976/true/1.50"}},

		{"{{config.missing}}", nil},
		{"{{config.null}}", nil},
		{"{{nobody.at.home}}", nil},
		{"{{config.missing|into}}", nil},
		{"{{config.missing|volume}}", nil},
		{"--x={{config.missing}}", []string{"--x="}},
		{"{{config.empty}}", []string{""}},

		{"{{config.list|into}}", []string{"a", "b"}},
		{"{{config.numbers|into}}", []string{"1", "2"}},
		{"{{config.strings|into}}", []string{"c", "d"}},
		{"{{config.none|into}}", nil},
		{"{{config.url|into}}", []string{"u"}},
		{"{{config.list|first}}", []string{"a"}},
		{"{{config.list|last}}", []string{"b"}},
		{"x{{config.list|last}}", []string{"xb"}},
		{"{{config.none|first}}", nil},
		{"{{config.none|last}}", nil},
		{"{{config.url|first}}", []string{"u"}},

		{"{{config.missing|or:x}}", []string{"x"}},
		{"{{config.empty|or:x}}", []string{"x"}},
		{"{{config.none|or:x}}", []string{"x"}},
		{"{{config.url|or:x}}", []string{"u"}},
		{"{{config.missing|or:a:b}}/{{config.missing|or:}}c", []string{"a:b/c"}},
		{"{{config.none|first|or:x}}", []string{"x"}},

		{"{{file-system.paths|volume|into}}", []string{"/a:/a", "/b:/b"}},
		{"{{file-system.paths|volume-target|into}}", []string{"/a", "/b"}},
		{"{{config.url|volume}}", []string{"u:u"}},
		{"{{config.url|mount_as:/t}}", []string{"u:/t"}},
		{"{{config.url|mount_as:/t:ro}}", []string{"u:/t:ro"}},
		{"{{config.list|mount_as:/t|into}}", []string{"a:/t", "b:/t"}},
	}
	for _, tt := range tests {
		got, err := template.Expand(tt.in, root)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
	failures := []struct{ in, want string }{
		{"{{config.url", "{{ without }}"},
		{"{{}}", `"" is not the name of a setting`},
		{"{{config..url}}", `"config..url" is not the name of a setting`},
		{"{{a b}}", `"a b" is not the name of a setting`},
		{"{{ {{config.url}}", `"{{config.url" is not the name of a setting`},
		{"{{config.url|}}", `unknown function ""`},
		{"{{config.url|shout}}", `unknown function "shout"`},
		{"{{config.url|into:x}}", `function "into" takes no argument`},
		{"{{config.url|or}}", `function "or" needs an argument`},
		{"{{config.url|mount_as:t}}", `function "mount_as" needs an absolute path`},
		{"{{config.list}}", "config.list is a list; add |into, |first or |last"},
		{"{{config.list|volume}}", "config.list is a list"},
		{"-{{config.list|into}}", "config.list is a list, which must stand alone"},
		{"{{config.deep}}", "config.deep is neither text"},
		{"{{config.mixed|into}}", "config.mixed is neither text"},
		{"{{config.url.x}}", "config.url is not an object"},
	}
	for _, tt := range failures {
		got, err := template.Expand(tt.in, root)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Expand(%q) = %q, %v, want an error with %s", tt.in, got, err, tt.want)
		}
	}
}

// Expanding twice gives the same: values of the root are never changed.
func TestExpandKeepsRoot(t *testing.T) {
	list := []string{"/a"}
	root := map[string]any{"config": map[string]any{"paths": list}}
	for range 2 {
		got, err := template.Expand("{{config.paths|volume|into}}", root)
		if err != nil || len(got) != 1 || got[0] != "/a:/a" {
			t.Fatalf("Expand = %q, %v, want /a:/a", got, err)
		}
	}
	if list[0] != "/a" {
		t.Errorf("the setting became %q, want /a", list[0])
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "{{config.a}}", "x{{config.a|or:b}}y", "{{config.l|volume|into}}", "{{config.l|mount_as:/t:ro|first}}", "{{", "}}{{", "{{a.b|into|last}}"} {
		f.Add(seed, "value")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		root := map[string]any{"config": map[string]any{"a": value, "l": []any{value, "second"}}}
		got, err := template.Expand(text, root)
		switch {
		case err != nil && got != nil:
			t.Errorf("Expand(%q) = %q and the error %v", text, got, err)
		case err == nil && !strings.Contains(text, "{{") && (len(got) != 1 || got[0] != text):
			t.Errorf("Expand(%q) = %q, want it unchanged", text, got)
		case len(got) > 2:
			t.Errorf("Expand(%q) = %q, more results than the list has elements", text, got)
		}
	})
}
