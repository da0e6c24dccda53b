package rules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/rules"
)

func TestListed(t *testing.T) {
	lists, err := rules.Listed(
		rules.Listing{Server: "files", Tools: []string{"read", "a.b*", "x/y", "!z"}, Place: "tools.yaml:1"},
		rules.Listing{Server: "quiet", Place: "tools.yaml:2"},
	)
	if err != nil {
		t.Fatal(err)
	}
	user := read(t, `toolRules: [{pattern: [read], action: ask}, {pattern: [write], enabled: true}, {default: allow}]`)
	tests := []struct {
		server, tool string
		want, both   rules.Verdict
	}{
		{"files", "read", "allow", "ask"},
		{"files", "Read", "deny", "deny"}, // a name, no pattern
		{"files", "write", "deny", "deny"},
		{"files", "a.b*", "allow", "allow"},
		{"files", "axb", "deny", "deny"},
		{"files", "x/y", "allow", "allow"},
		{"files", "!z", "allow", "allow"},
		{"files", "read\n", "deny", "deny"},
		{"quiet", "read", "deny", "deny"},
		{"other", "read", "allow", "ask"},
		{"other", "write", "allow", "allow"},
	}
	for _, tt := range tests {
		if got := lists.Decide(tt.server, named(tt.tool)).Verdict; got != tt.want {
			t.Errorf("Decide(%s, %q) = %s, want %s", tt.server, tt.tool, got, tt.want)
		}
		for _, r := range []rules.Rules{user.Narrowed(lists), lists.Narrowed(user)} {
			if got := r.Decide(tt.server, named(tt.tool)).Verdict; got != tt.both {
				t.Errorf("Decide(%s, %q) with rules = %s, want %s", tt.server, tt.tool, got, tt.both)
			}
		}
	}
	explanations := map[string]string{
		"files": `deny 
- 1 no pattern fits
* 2 * fits
rule 2 (tools.yaml:1) disables it`,
		"quiet": `deny 
* 1 * fits
rule 1 (tools.yaml:2) disables it`,
		"other": "allow \nthere are no rules, so every tool is enabled",
	}
	for server, want := range explanations {
		if diff := cmp.Diff(want, explained(lists.Explain(server, named("write")))); diff != "" {
			t.Errorf("Explain(%s) (-want +got):\n%s", server, diff)
		}
	}
	if idle := lists.Idle(tools("other/x")); idle != nil {
		t.Errorf("Idle = %v, want none: nobody wrote these as rules", idle)
	}
	again, err := rules.Listed(rules.Listing{Server: "files"})
	if err != nil || again.Equal(lists) || !lists.Equal(lists) {
		t.Errorf("Equal says the wrong thing of other lists: %v", err)
	}
}
