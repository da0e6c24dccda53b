package rules_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// explained writes an explanation on lines: the verdict, each rule, the reasons.
func explained(e rules.Explanation) string {
	lines := []string{string(e.Verdict) + " " + strings.Join(e.Tags, ",")}
	for _, step := range e.Steps {
		mark := map[bool]string{true: "+", false: "-"}[step.Matched]
		if step.Decides {
			mark = "*"
		}
		lines = append(lines, fmt.Sprintf("%s %d %s", mark, step.Number, step.Why))
	}
	return strings.Join(append(lines, e.Why...), "\n")
}

func TestExplain(t *testing.T) {
	tests := []struct{ rules, tool, want string }{
		{selective, "github/delete_issue", `deny github,issues,dangerous
+ 1 *issue* fits
- 2 is for the server "filesystem"
* 3 *delete* fits
rule 3 (dockgate.yaml:4) disables it, which wins over rule 1 (dockgate.yaml:2)`},
		{selective, "github/fork", `deny 
- 1 no pattern fits
- 2 is for the server "filesystem"
- 3 no pattern fits
no rule decides, and rules that enable tools leave all others disabled`},
		{byExpression, "filesystem/readFile", `allow filesystem,read
- 1 is for the server "github"
* 2 /\b(read|list|get)\b/i fits the words "read File"
- 3 no pattern fits
rule 2 (dockgate.yaml:3) enables it`},
		{`toolRules: []`, "s/x", "allow \nthere are no rules, so every tool is enabled"},
		{`toolRules: [{pattern: [y], enabled: false}]`, "s/x", `allow 
- 1 no pattern fits
no rule decides, and no rule enables any tool, so others are enabled`},
		{"toolRules:\n- {pattern: ['!*y*'], enabled: true}\n- {pattern: ['*'], enabled: false}", "s/x", `allow 
* 1 nothing excludes it
+ 2 * fits
rule 1 (dockgate.yaml:2) enables it; rule 2 (dockgate.yaml:3) is a default, for tools that no rule before it decides`},
		{"toolRules:\n- {pattern: ['*', '!*x*'], enabled: true}\n- {default: deny}", "s/x", `deny 
- 1 !*x* excludes it
no rule decides, and the default (dockgate.yaml:3) is disabled`},
		{"toolRules:\n- {pattern: ['*'], enabled: true}\n- {annotations: {destructiveHint: true}, action: ask}", "s/x", `ask 
* 1 * fits
* 2 it has readOnlyHint: false (not said), destructiveHint: true (not said)
rule 1 (dockgate.yaml:2) enables it
rule 2 (dockgate.yaml:3) has a person confirm each call`},
		{"toolRules:\n- {annotations: {readOnlyHint: true}, enabled: false}", "s/x", `allow 
- 1 is for tools with readOnlyHint: true, and it has readOnlyHint: false (not said), destructiveHint: true (not said)
no rule decides, and no rule enables any tool, so others are enabled`},
	}
	for _, tt := range tests {
		server, name, _ := strings.Cut(tt.tool, "/")
		if diff := cmp.Diff(tt.want, explained(read(t, tt.rules).Explain(server, named(name)))); diff != "" {
			t.Errorf("Explain(%s) (-want +got):\n%s", tt.tool, diff)
		}
	}
}

func tools(refs ...string) iter.Seq2[string, tool.Definition] {
	return func(yield func(string, tool.Definition) bool) {
		for _, ref := range refs {
			if server, name, _ := strings.Cut(ref, "/"); !yield(server, named(name)) {
				return
			}
		}
	}
}

func TestIdle(t *testing.T) {
	tests := []struct {
		rules string
		tools []string
		want  []string
	}{
		{selective, []string{"github/create_issue", "filesystem/read_file", "filesystem/list", "github/delete_x", "github/remove_x", "github/rm"}, nil},
		{selective, []string{"github/create_issue", "github/delete_x"}, []string{
			`2 no tool of a server "filesystem" is known`,
			"3 the pattern *remove* fits no known tool that the rule is for", "3 the pattern *rm* fits no known tool that the rule is for",
		}},
		{`toolRules: [{pattern: ['*x*'], enabled: false}, {pattern: ['x', '!y'], enabled: true}]`, []string{"s/x"}, []string{
			"2 decides nothing; other rules decide all that it matches", "2 the pattern !y fits no known tool that the rule is for",
		}},
		{`toolRules: [{pattern: ['*'], enabled: false}, {pattern: ['r*'], enabled: true}]`, []string{"s/read"}, []string{"2 decides nothing; other rules decide all that it matches"}},
		{`toolRules: [{pattern: ['y'], tags: [t]}, {pattern: ['x'], tags: [t]}]`, []string{"s/x"}, []string{"1 matches no known tool"}},
		{`toolRules: [{pattern: ['x'], action: ask}]`, []string{"s/x"}, nil},
	}
	for _, tt := range tests {
		var got []string
		for _, idle := range read(t, tt.rules).Idle(tools(tt.tools...)) {
			got = append(got, fmt.Sprint(idle.Number, " ", idle.Why))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Idle(%v) of %s (-want +got):\n%s", tt.tools, tt.rules, diff)
		}
	}
}
