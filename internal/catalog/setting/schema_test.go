package setting_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog/setting"
)

// deep is a schema within a schema, and so on.
func deep(before, after string, levels int) string {
	return strings.Repeat(before, levels) + `{}` + strings.Repeat(after, levels)
}

// hostile are schemas that the validator would follow for ever, or until its
// stack runs over, and what is said of them.
func hostile() map[string]string {
	const reference, depth = "uses a reference", "nests deeper"
	return map[string]string{
		`{"$ref":"#"}`:        reference,
		`{"$REF":"#"}`:        reference, // which the decoder takes for the same
		`{"$dynamicRef":"#"}`: reference,
		`{"$dYnAmiCref":"#"}`: reference,
		`{"properties":{"a":{"ANYOF":[{"$Ref":"#/properties/a"}]}}}`:                                                  reference,
		`{"$anchor":"a","allOf":[{"$ref":"#a"}]}`:                                                                     reference,
		`{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`:                                                       reference,
		`{"$id":"https://example.com/y","not":{"$ref":"https://example.com/y"}}`:                                      reference,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`:                            reference,
		`{"x-defs":{"a":{"$ref":"#/x-defs/a"}},"$ref":"#/x-defs/a"}`:                                                  reference,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`:                     reference,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#"}],"additionalItems":{"$ref":"#"}}`: reference,
		`{"contentSchema":{"$ref":"#"}}`:                                                                              reference,
		deep(`{"not":`, `}`, 5000):                                                                                    depth,
		deep(`{"anyOf":[`, `]}`, 4000):                                                                                depth,
		deep(`{"properties":{"a":`, `}}`, 3000):                                                                       depth,
		`{"default":` + deep(`[`, `]`, 5000) + `}`:                                                                    depth,
		`{"const":"[[[\"` + strings.Repeat(`[`, 100) + `"}`:                                                           "",
		deep(`{"properties":{"a":`, `}}`, 20):                                                                         "",
	}
}

func TestHostile(t *testing.T) {
	for config, want := range hostile() {
		_, problems := setting.Compile(json.RawMessage(config))
		if got := problems.Error(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("Compile(%.100s) = %.200q, want %q", config, got, want)
		}
		var own *setting.Error
		err := setting.Check("x", json.RawMessage(config), map[string]any{"a": map[string]any{"a": 1.0}})
		if want != "" && (err == nil || errors.As(err, &own)) {
			t.Errorf("Check(%.100s) = %.200v, want that the schema is refused", config, err)
		}
	}
}

// FuzzCheck holds every schema to an end.
func FuzzCheck(f *testing.F) {
	for config := range hostile() {
		if len(config) < 1000 {
			f.Add([]byte(config), []byte(`{"a":{"a":1}}`))
		}
	}
	f.Add([]byte(`{"properties":{"a":{"type":["array","null"],"items":{"enum":[1]}}},"required":["a"]}`), []byte(`{"a":[1]}`))
	f.Fuzz(func(t *testing.T, config, settings []byte) {
		var values map[string]any
		if json.Unmarshal(settings, &values) != nil {
			return
		}
		schema, problems := setting.Compile(config)
		err := setting.Check("x", config, values)
		if problems != nil && err == nil {
			t.Errorf("Check(%q, %q) takes what Compile refuses: %v", config, settings, problems)
		}
		if schema.Empty() && len(values) > 0 && err == nil {
			t.Errorf("Check(%q, %q) = nil, want an error: there are no settings", config, settings)
		}
	})
}
