package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/rules"
)

func TestParse(t *testing.T) {
	r := read(t, `toolRules:
  - pattern: ['*github*', '/issue/i', '!*delete*']
    server: github
    enabled: true
    tags: [github, 8080]
  - {annotations: {destructiveHint: true, readOnlyHint: false}, action: ask}
  - default: deny
  - &off {pattern: ["*x*"], enabled: false}
  - *off
`)
	yes, no := true, false
	off := rules.Rule{Pattern: []string{"*x*"}, Enabled: &no, Place: "dockgate.yaml:8"}
	want := []rules.Rule{
		{Pattern: []string{"*github*", "/issue/i", "!*delete*"}, Server: "github", Enabled: &yes, Tags: []string{"github", "8080"}, Place: "dockgate.yaml:2"},
		{Annotations: rules.Annotations{Destructive: &yes, ReadOnly: &no}, Ask: true, Place: "dockgate.yaml:6"},
		off, off,
	}
	if diff := cmp.Diff(want, r.List()); diff != "" {
		t.Errorf("List() (-want +got):\n%s", diff)
	}
	var lines []string
	for _, rule := range r.List() {
		lines = append(lines, rule.String())
	}
	wantLines := []string{
		"server github, *github*, /issue/i, !*delete* → enabled, tags: [github, 8080]",
		"readOnlyHint: false, destructiveHint: true → ask",
		"*x* → disabled", "*x* → disabled",
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("String() (-want +got):\n%s", diff)
	}
}

func TestParseProblems(t *testing.T) {
	tests := []struct{ rule, want string }{
		{`{pattern: ['/(/'], tags: [t]}`, "toolRules[0].pattern[0]: \"/(/\" is no regular expression (RE2): missing closing ): `(`"},
		{`{pattern: [a, '/(?=x)/'], enabled: true}`, "toolRules[0].pattern[1]: \"/(?=x)/\" is no regular expression (RE2): invalid or unsupported Perl syntax: `(?=`"},
		{`{pattern: ['/x/g'], enabled: true}`, `toolRules[0].pattern[0]: "/x/g" has the flag 'g'; known: i, m, s`},
		{`{pattern: ['/x/ii'], enabled: true}`, `toolRules[0].pattern[0]: "/x/ii" has the flag 'i' twice`},
		{`{pattern: ['/x'], enabled: true}`, `toolRules[0].pattern[0]: "/x" begins with "/" like a regular expression and does not end with one`},
		{`{pattern: ['//'], enabled: true}`, `toolRules[0].pattern[0]: "//" is an empty regular expression`},
		{`{pattern: ['!'], enabled: true}`, `toolRules[0].pattern[0]: "!" is empty`},
		{`{pattern: ['!!x'], enabled: true}`, `toolRules[0].pattern[0]: "!!x" begins with "!" twice`},
		{`{pattern: ['[a'], enabled: true}`, `toolRules[0].pattern[0]: "[a" has a "[" without a "]"`},
		{`{pattern: ['[z-a]'], enabled: true}`, `toolRules[0].pattern[0]: "[z-a]" has the range z-a, which is empty`},
		{`{pattern: ['x\'], enabled: true}`, `toolRules[0].pattern[0]: "x\\" ends with a "\"`},
		{`{pattern: '*x*', enabled: true}`, `toolRules[0].pattern: is "*x*", want a list`},
		{`{pattern: [''], enabled: true}`, `toolRules[0].pattern[0]: is empty, want text`},
		{`{pattern: [[a]], enabled: true}`, `toolRules[0].pattern[0]: is a list, want text`},
		{`{pattern: [], enabled: true}`, `toolRules[0].pattern: is missing; every tool is ['*']`},
		{`{server: github, enabled: false}`, `toolRules[0].pattern: is missing; every tool is ['*']`},
		{`{pattern: [], annotations: {readOnlyHint: true}, enabled: true}`, `toolRules[0].pattern: is empty; every tool is ['*']`},
		{`{pattern: [a]}`, `toolRules[0]: does nothing; say enabled, action or tags`},
		{`{pattern: [a], enabled: "true"}`, `toolRules[0].enabled: is "true", want true or false`},
		{`{pattern: [a], enabled: 1}`, `toolRules[0].enabled: is "1", want true or false`},
		{`{pattern: [a], tags: x}`, `toolRules[0].tags: is "x", want a list`},
		{`{pattern: [a], server: {}, tags: [x]}`, `toolRules[0].server: is a mapping, want text`},
		{`{pattern: [a], action: allow}`, `toolRules[0].action: is "allow", want ask`},
		{`{pattern: [a], action: ask, enabled: false}`, `toolRules[0].action: is ask, and enabled is false: nobody is asked about a disabled tool`},
		{`{pattern: [a], annotations: {}, enabled: false}`, `toolRules[0].annotations: is a mapping, want readOnlyHint or destructiveHint`},
		{`{pattern: [a], annotations: {idempotentHint: true}, enabled: false}`, `toolRules[0].annotations.idempotentHint: unknown field; known: readOnlyHint, destructiveHint`},
		{`{patern: [a], enabled: true}`, `toolRules[0].patern: unknown field; known: pattern, server, enabled, tags, action, annotations, default`},
		{`{pattern: [a], enabled: true, enabled: false}`, `toolRules[0].enabled: is here again; it was on line 2 already`},
		{`{default: maybe}`, `toolRules[0].default: is "maybe", want allow or deny`},
		{`{default: deny, pattern: [a]}`, `toolRules[0].default: stands beside other fields; write an entry of its own, - default: deny`},
		{`'*x*'`, `toolRules[0]: is "*x*", want a rule such as {pattern: ['*delete*'], enabled: false}`},
	}
	for _, tt := range tests {
		_, err := parse("toolRules:\n  - " + tt.rule)
		if want := "dockgate.yaml:2: " + tt.want; err == nil || err.Error() != want {
			t.Errorf("Parse(%s) = %v, want %s", tt.rule, err, want)
		}
	}
	_, err := parse("toolRules:\n- {pattern: ['/(/'], enabled: true}\n- {pattern: [a], enabled: true}\n- {pattern: ['[', 'b', '!'], enabled: true}")
	var problems rules.Problems
	if !errors.As(err, &problems) || len(problems) != 3 || problems[0].Line != 2 || problems[1].Line != 4 || problems[2].Field != "toolRules[2].pattern[2]" {
		t.Errorf("Parse of three mistakes = %v, want all three with their lines", err)
	}
	if _, err := parse("toolRules: {pattern: [a]}"); err == nil || !strings.Contains(err.Error(), "dockgate.yaml:1: toolRules: is a mapping, want a list") {
		t.Errorf("Parse(mapping) = %v, want it refused", err)
	}
	if _, err := parse("toolRules:\n- {default: deny}\n- {default: allow}"); err == nil || !strings.Contains(err.Error(), "it was at dockgate.yaml:2 already") {
		t.Errorf("Parse of two defaults = %v, want it refused", err)
	}
}

// FuzzParse holds every list of rules to this: it is refused with the lines of
// its mistakes, or its decisions can be explained, and whatever is narrowed by
// it is not widened.
func FuzzParse(f *testing.F) {
	for _, list := range []string{sample, ofServers, selective, byExpression, `toolRules: [{default: deny}, {pattern: ['*'], action: ask}]`, `toolRules: [{pattern: ['/(/', '[z-a]', '!']}]`} {
		f.Add(list, "github", "create_issue")
		f.Add(list, "filesystem", "readFile")
	}
	f.Add("toolRules: [{annotations: {readOnlyHint: true}, enabled: false}, {pattern: ['![!a-ß]*\\*'], tags: [1]}]", "s", "\xff\u0130")
	narrow := read(f, severalSources)
	f.Fuzz(func(t *testing.T, text, server, name string) {
		var content struct {
			ToolRules yaml.Node `yaml:"toolRules"`
		}
		if yaml.Unmarshal([]byte(text), &content) != nil {
			return
		}
		r, err := rules.Parse("f", "toolRules", content.ToolRules)
		var problems rules.Problems
		if err != nil {
			if !errors.As(err, &problems) || len(problems) == 0 || strings.Contains(err.Error(), "f:0:") {
				t.Errorf("Parse(%q) = %v, want problems with lines", text, err)
			}
			return
		}
		got, explained := r.Decide(server, named(name)), r.Explain(server, named(name))
		if diff := cmp.Diff(got, explained.Decision); diff != "" || len(explained.Why) == 0 {
			t.Errorf("Explain(%q, %q) by %q: %v (-Decide +Explain)\n%s", server, name, text, explained.Why, diff)
		}
		both := narrow.Narrowed(r).Decide(server, named(name))
		if both.Enabled() && (!got.Enabled() || !narrow.Decide(server, named(name)).Enabled()) {
			t.Errorf("Narrowed by %q enables %q", text, name)
		}
	})
}

// FuzzPattern holds what is looked for before an expression is tried to the
// expression itself.
func FuzzPattern(f *testing.F) {
	f.Add("(delete|remove)", "i", "reMOVE_x")
	f.Add(`\b(read|list)\b`, "", "listFiles")
	f.Add("^(create|up(date)+)_", "s", "updatedate_")
	f.Add("(?i:K)ey[a-z]{2,}", "m", "\u212aeyxx")
	f.Fuzz(func(t *testing.T, source, flags, name string) {
		if strings.Contains(flags, "/") { // what is before it is then a part of the expression
			return
		}
		quick, err := rules.Compile([]rules.Rule{{Pattern: []string{"/" + source + "/" + flags}, Tags: []string{"hit"}}}, rules.Default{})
		if err != nil {
			return
		}
		// An alternative without any text leaves nothing to look for.
		slow, err := rules.Compile([]rules.Rule{{Pattern: []string{"/(?:" + source + ")|[^\\s\\S]/" + flags}, Tags: []string{"hit"}}}, rules.Default{})
		if err != nil {
			return
		}
		a, b := quick.Decide("s", named(name)).Tags, slow.Decide("s", named(name)).Tags
		if len(a) != len(b) {
			t.Errorf("/%s/%s on %q: %v, and %v without looking first", source, flags, name, a, b)
		}
	})
}
