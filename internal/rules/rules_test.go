package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// read parses rules that are written as a YAML list.
func read(t testing.TB, text string) rules.Rules {
	t.Helper()
	r, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(text string) (rules.Rules, error) {
	var content struct {
		ToolRules yaml.Node `yaml:"toolRules"`
	}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		return rules.Rules{}, err
	}
	return rules.Parse("dockgate.yaml", "toolRules", content.ToolRules)
}

func named(name string) tool.Definition { return tool.Definition{Name: name} }

func TestPattern(t *testing.T) {
	tests := []struct {
		pattern string // of a YAML list
		match   string
		not     string
	}{
		{`'*github*'`, "github my_github_issue GitHub xGITHUBx", "git hub"},
		{`'github_*'`, "github_ github_create GITHUB_x", "xgithub_ github"},
		{`'*_issue'`, "_issue create_issue Create_Issue", "create_issues issue"},
		{`'!*delete*'`, "create_issue", "delete delete_issue undeleted DELETE_x"},
		{`'/github.*issue/i'`, "github_issue GitHub-Issues", "issue_github"},
		{`'/github.*issue/'`, "github_issue", "GitHub-Issues"},
		{`'/^fs_(read|write)$/'`, "fs_read fs_write", "fs_reads xfs_read fs_list"},
		{`'/\b(create|update)\b/'`, "create_issue issue.update updateIssue create", "created_issue recreate updates"},
		{`"/\\b(create|update)\\b/"`, "create_issue", "recreate"},
		{`'/\b(read|list|get)\b/i'`, "read_file readFile ReadFile file-list getHTTP", "reader target widget"},
		{`'*github*', '/issue/', '!*delete*'`, "github issue github_create_issue my_issue", "github_delete_issue deleteIssue other"},
		{`'!*delete*', '*github*', '/issue/'`, "github github_create_issue", "github_delete_issue"},
		{`'*delete*', '*rm*', '*remove*'`, "rm delete_file form", "read"},
		{`'/^(create|update)_/'`, "create_issue update_x", "recreate_issue create"},
		{`'/(delete|remove|destroy)/i'`, "deleteFile RemoveAll undestroyed", "del"},
		{`'read'`, "read READ", "read_file"},
		{`'read_?ile'`, "read_file read_Xile", "read_ile read_fiile"},
		{`'file[0-9]'`, "file1 FILE9", "filea file12"},
		{`'file[!0-9]'`, "filea", "file1"},
		{`'file[^0-9]*'`, "filea filexyz", "file1x"},
		{`'[A-C]*'`, "apple Banana cat", "dog Dog"},
		{`'[a-c]*[]x]'`, "ax BX c]", "ay dx"},
		{`'a*b*c'`, "abc axxbxxc abcbc", "ab abcd acb"},
		{`'*a?c*'`, "abc xxabcxx aabc", "ac"},
		{`'\*'`, "*", "x"},
		{`'\**'`, "* *x", "x*"},
		{`'ä*'`, "äb ÄB", "ab"},
		{`'?'`, "ä x", "xy"},
		{`'fs/*'`, "fs/read", "fs"},
		{`'/^a.b$/s'`, "axb a\nb", "ab"},
		{`'/^b$/m'`, "b a\nb", "ab"},
		{`'/\\bread/'`, `\bread`, "read_file"},
		{`'/a\/b/'`, "a/b", "ab"},
		{`'*'`, "x anything", ""},
	}
	for _, tt := range tests {
		r := read(t, "toolRules: [{pattern: ["+tt.pattern+"], tags: [hit]}]")
		for _, names := range []struct {
			list string
			want bool
		}{{tt.match, true}, {tt.not, false}} {
			for _, name := range strings.Split(names.list, " ") {
				if got := len(r.Decide("s", named(name)).Tags) > 0; got != names.want && name != "" {
					t.Errorf("[%s] matches %q: %t, want %t", tt.pattern, name, got, names.want)
				}
			}
		}
	}
}

const (
	sample = `toolRules:
  - {pattern: ['*github*', '/issue/'], enabled: true, tags: [github, issues]}
  - {pattern: ['*filesystem*', '/read/', '/write/'], enabled: true, tags: [filesystem]}
  - {pattern: ['*dangerous*', '*delete*'], enabled: false, tags: [dangerous]}`
	ofServers = `toolRules:
  - {server: github, pattern: ['*issue*', '*pr*'], enabled: true}
  - {server: filesystem, pattern: ['*delete*', '*rm*', '*remove*'], enabled: false}`
	basic     = `toolRules: [{pattern: ['*'], enabled: true}]`
	selective = `toolRules:
  - {server: github, pattern: ['*issue*'], enabled: true, tags: [github, issues]}
  - {server: filesystem, pattern: ['*read*', '*list*'], enabled: true, tags: [filesystem, safe]}
  - {pattern: ['*delete*', '*remove*', '*rm*'], enabled: false, tags: [dangerous]}`
	severalSources = `toolRules:
  - {pattern: ['*'], enabled: true}
  - {pattern: ['*delete*', '*destroy*'], enabled: false}`
	byExpression = `toolRules:
  - {server: github, pattern: ['/^(create|update)_/'], enabled: true, tags: [github, write]}
  - {server: filesystem, pattern: ["/\\b(read|list|get)\\b/i"], enabled: true, tags: [filesystem, read]}
  - {pattern: ['/(delete|remove|destroy)/i'], enabled: false, tags: [dangerous]}`
	advanced = `toolRules:
  - {pattern: ['*github*', '/issue/'], enabled: true, tags: [github, issues]}
  - {pattern: ['*delete*', '*remove*'], enabled: false, tags: [dangerous]}`
)

func TestDecide(t *testing.T) {
	tests := []struct {
		rules string
		tool  string // server/name
		want  string // verdict and tags
	}{
		{sample, "github/create_issue", "allow github issues"},
		{sample, "github/delete_issue", "deny github issues dangerous"},
		{sample, "fs/read_file", "allow filesystem"},
		{sample, "fs/read_issue", "allow github issues filesystem"},
		{sample, "fs/stat", "deny"},
		{sample, "fs/dangerous_thing", "deny dangerous"},

		{ofServers, "github/list_issues", "allow"},
		{ofServers, "github/create_pr", "allow"},
		{ofServers, "github/fork", "deny"},
		{ofServers, "filesystem/rm", "deny"},
		{ofServers, "filesystem/read", "deny"}, // a whitelist, of any server, is one
		{ofServers, "gitlab/list_issues", "deny"},

		{basic, "any/tool", "allow"},
		{basic, "any/delete_all", "allow"},

		{selective, "github/create_issue", "allow github issues"},
		{selective, "github/fork", "deny"},
		{selective, "github/delete_issue", "deny github issues dangerous"},
		{selective, "filesystem/read_file", "allow filesystem safe"},
		{selective, "filesystem/list_dir", "allow filesystem safe"},
		{selective, "filesystem/write_file", "deny"},
		{selective, "filesystem/rm", "deny dangerous"},
		{selective, "other/read_file", "deny"},

		{severalSources, "any/tool", "allow"},
		{severalSources, "any/delete_tool", "deny"},
		{severalSources, "any/destroy", "deny"},

		{byExpression, "github/create_issue", "allow github write"},
		{byExpression, "github/list_issues", "deny"},
		{byExpression, "github/create_or_delete", "deny github write dangerous"},
		{byExpression, "filesystem/read_file", "allow filesystem read"},
		{byExpression, "filesystem/getInfo", "allow filesystem read"},
		{byExpression, "filesystem/spread", "deny"},
		{byExpression, "filesystem/removeList", "deny filesystem read dangerous"},

		{advanced, "github/github_star", "allow github issues"},
		{advanced, "github/remove_issue", "deny github issues dangerous"},

		{`toolRules:`, "s/x", "allow"},
		{`toolRules: []`, "s/x", "allow"},
		{`toolRules: [{pattern: ['*x*'], enabled: false}]`, "s/y", "allow"},
		{`toolRules: [{pattern: ['*x*'], enabled: false}]`, "s/x", "deny"},
		{`toolRules: [{pattern: ['*x*'], tags: [a, b, a]}, {pattern: ['*'], tags: [b, c]}]`, "s/x", "allow a b c"},
		{`toolRules: [{pattern: ['*x*'], tags: [a], enabled: true}]`, "s/y", "deny"},
		{`toolRules: [{pattern: ['!*x*'], enabled: false}]`, "s/y", "deny"},
		{`toolRules: [{pattern: ['!*x*'], enabled: true}]`, "s/x", "deny"},

		// The first match decides where a default comes later or first.
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*'], enabled: false}]`, "s/read", "allow"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*'], enabled: false}]`, "s/write", "deny"},
		{`toolRules: [{pattern: ['*'], enabled: false}, {pattern: ['r*'], enabled: true}]`, "s/read", "deny"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['**', '*'], enabled: false}]`, "s/read", "allow"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*', 'x'], enabled: false}]`, "s/read", "deny"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*', '!x'], enabled: false}]`, "s/read", "deny"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {server: s, pattern: ['*'], enabled: false}]`, "s/read", "allow"},

		// The default entry stands anywhere, and makes or unmakes a whitelist.
		{`toolRules: [{pattern: ['r*'], enabled: true}, {default: allow}]`, "s/write", "allow"},
		{`toolRules: [{default: deny}, {pattern: ['x'], tags: [t]}]`, "s/x", "deny t"},
		{`toolRules: [{default: deny}]`, "s/x", "deny"},
		{`toolRules: [{default: allow}, {pattern: ['x'], enabled: false}]`, "s/x", "deny"},

		// A person is asked about what is enabled.
		{`toolRules: [{pattern: ['*delete*'], action: ask}]`, "s/delete", "ask"},
		{`toolRules: [{pattern: ['*delete*'], action: ask}]`, "s/read", "allow"},
		{`toolRules: [{pattern: ['*'], enabled: true}, {pattern: ['*delete*'], action: ask}]`, "s/delete", "ask"},
		{`toolRules: [{pattern: ['*delete*'], action: ask}, {pattern: ['d*'], enabled: false}]`, "s/delete", "deny"},
		{`toolRules: [{pattern: ['*delete*'], action: ask}, {pattern: ['r*'], enabled: true}]`, "s/delete", "deny"},
		{`toolRules: [{pattern: ['*delete*'], enabled: true, action: ask}]`, "s/delete", "ask"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*'], enabled: true, action: ask}]`, "s/read", "allow"},
		{`toolRules: [{pattern: ['r*'], enabled: true}, {pattern: ['*'], enabled: true, action: ask}]`, "s/write", "ask"},
		{`toolRules: [{pattern: ['*'], action: ask}]`, "s/x", "ask"},
	}
	for _, tt := range tests {
		server, name, _ := strings.Cut(tt.tool, "/")
		r := read(t, tt.rules)
		decision := r.Decide(server, named(name))
		got := strings.Join(append([]string{string(decision.Verdict)}, decision.Tags...), " ")
		if got != tt.want {
			t.Errorf("Decide(%s) = %q, want %q, by\n%s", tt.tool, got, tt.want, tt.rules)
		}
		if want := !strings.HasPrefix(tt.want, "deny"); decision.Enabled() != want {
			t.Errorf("Decide(%s).Enabled() = %t, want %t", tt.tool, !want, want)
		}
		if diff := cmp.Diff(decision, r.Explain(server, named(name)).Decision); diff != "" {
			t.Errorf("Explain(%s) decides otherwise (-Decide +Explain):\n%s", tt.tool, diff)
		}
	}
}

func TestZero(t *testing.T) {
	if (rules.Decision{}).Enabled() {
		t.Error("the zero Decision enables a tool")
	}
	if got := (rules.Rules{}).Decide("s", named("x")); got.Verdict != rules.Allow {
		t.Errorf("no rules say %q, want allow", got.Verdict)
	}
}

func TestAnnotations(t *testing.T) {
	tests := []struct {
		annotations string // of the tool
		destructive rules.Verdict
		writing     rules.Verdict
		readOnly    rules.Verdict
	}{
		{`{}`, "deny", "deny", "allow"}, // MCP's defaults: it may destroy
		{`{"readOnlyHint":true}`, "allow", "allow", "deny"},
		{`{"readOnlyHint":true,"destructiveHint":true}`, "allow", "allow", "deny"},
		{`{"destructiveHint":false}`, "allow", "deny", "allow"},
		{`{"destructiveHint":true}`, "deny", "deny", "allow"},
		{`{"readOnlyHint":"true","destructiveHint":0}`, "deny", "deny", "allow"},
		{`null`, "deny", "deny", "allow"},
		{`[]`, "deny", "deny", "allow"},
	}
	const list = `toolRules: [{annotations: {%s}, enabled: false}]`
	for _, tt := range tests {
		definition := tool.Definition{Name: "x", JSON: json.RawMessage(`{"name":"x","annotations":` + tt.annotations + `}`)}
		for hint, want := range map[string]rules.Verdict{
			"destructiveHint: true": tt.destructive, "readOnlyHint: false": tt.writing, "readOnlyHint: true": tt.readOnly,
			"readOnlyHint: true, destructiveHint: true": "allow",
		} {
			if got := read(t, fmt.Sprintf(list, hint)).Decide("s", definition).Verdict; got != want {
				t.Errorf("a rule that disables %s says %q of %s, want %q", hint, got, tt.annotations, want)
			}
		}
	}
	both := read(t, `toolRules: [{pattern: ['*delete*', '!*draft*'], annotations: {destructiveHint: true}, action: ask}]`)
	for name, want := range map[string]rules.Verdict{"delete": "ask", "delete_draft": "allow", "read": "allow"} {
		if got := both.Decide("s", named(name)).Verdict; got != want {
			t.Errorf("Decide(%s) = %q, want %q", name, got, want)
		}
	}
}

// What a project says can take tools away, and not give them back.
func TestNarrowed(t *testing.T) {
	user := read(t, `toolRules: [{pattern: ['*issue*'], enabled: true, tags: [issues]}, {pattern: ['*delete*'], action: ask}]`)
	tests := []struct {
		project string
		tool    string
		want    string
	}{
		{`toolRules:`, "list_issues", "allow issues"},
		{`toolRules: [{pattern: ['*'], enabled: true}]`, "fork", "deny"},
		{`toolRules: [{default: allow}]`, "fork", "deny"},
		{`toolRules: [{pattern: ['*'], enabled: true}]`, "delete_issue", "ask issues"},
		{`toolRules: [{pattern: ['list*'], enabled: true, tags: [mine]}]`, "list_issues", "allow issues mine"},
		{`toolRules: [{pattern: ['list*'], enabled: true}]`, "create_issue", "deny issues"},
		{`toolRules: [{pattern: ['list*'], action: ask}]`, "list_issues", "ask issues"},
	}
	for _, tt := range tests {
		decision := user.Narrowed(read(t, tt.project)).Decide("github", named(tt.tool))
		if got := strings.Join(append([]string{string(decision.Verdict)}, decision.Tags...), " "); got != tt.want {
			t.Errorf("Decide(%s) = %q, want %q, by the project's\n%s", tt.tool, got, tt.want, tt.project)
		}
	}
}

func TestEqual(t *testing.T) {
	lists := []string{sample, ofServers, basic, `toolRules: []`, `toolRules: [{default: deny}]`, basic + "\n# with another place\n"}
	for i, a := range lists {
		for j, b := range lists {
			want := i == j || min(i, j) == 2 && max(i, j) == 5
			if got := read(t, a).Equal(read(t, b)); got != want {
				t.Errorf("Equal(%q, %q) = %t, want %t", a, b, got, want)
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	r := read(b, sample+"\n"+strings.TrimPrefix(byExpression, "toolRules:\n"))
	names := make([]tool.Definition, 10_000)
	for i := range names {
		verb := []string{"create", "read", "list", "delete", "update", "getInfo"}[i%6]
		names[i] = named(fmt.Sprintf("%s_thing_%d", verb, i))
	}
	for b.Loop() {
		for _, definition := range names {
			r.Decide("filesystem", definition)
		}
	}
}
