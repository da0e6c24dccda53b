package rules_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/tool"
)

// What tools say of themselves is not known before their server has run, so a
// rule for it has no effect only if other tools say something else.
func TestIdleByAnnotations(t *testing.T) {
	const rule = `toolRules: [{annotations: {readOnlyHint: true}, enabled: true}, {default: allow}]`
	tests := []struct {
		definition string
		want       string
	}{
		{`{"name":"x"}`, ""},
		{`{"name":"x","annotations":{"readOnlyHint":false}}`, "matches no known tool"},
		{`{"name":"x","annotations":{"readOnlyHint":true}}`, ""},
	}
	for _, tt := range tests {
		got := ""
		for _, idle := range read(t, rule).Idle(func(yield func(string, tool.Definition) bool) {
			yield("s", tool.Definition{Name: "x", JSON: json.RawMessage(tt.definition)})
		}) {
			got += idle.Why
		}
		if got != tt.want {
			t.Errorf("Idle(%s) = %q, want %q", tt.definition, got, tt.want)
		}
	}
}
