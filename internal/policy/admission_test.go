package policy_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/rules"
)

func loaded(t *testing.T, text string) (policy.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, text)
	config, err := policy.LoadConfig(path)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), path, "config.yaml"))
	}
	return config, err
}

const admission = `
http: {url: https://tools.example.com/mcp}
quotas: {max_running: 4, max_call: 1m}
access:
  default_role: reader
  local_role: owner
  issuers:
    - name: corp
      url: https://issuer.example.com
      scopes:
        - {scope: "tools:admin", role: owner}
        - {scope: "tools:use", role: reader}
roles:
  reader:
    catalogs: [built-in]
    servers: ["git*", "!github"]
    tools: [{pattern: ['*delete*'], enabled: false}]
    expose: [active]
    quotas: {max_running: 1}
  quiet:
    servers: []
`

func TestAdmission(t *testing.T) {
	config, err := loaded(t, admission)
	if err != nil {
		t.Fatal(err)
	}
	got := config.Admission
	want := []access.Issuer{{
		Name: "corp", URL: "https://issuer.example.com",
		Scopes: []access.ScopeRole{{Scope: "tools:admin", Role: "owner"}, {Scope: "tools:use", Role: "reader"}},
	}}
	if diff := cmp.Diff(want, got.Issuers); diff != "" {
		t.Errorf("issuers (-want +got):\n%s", diff)
	}
	reader, quiet := got.Roles.Each["reader"], got.Roles.Each["quiet"]
	if got.Roles.Default != "reader" || got.Roles.Local != "owner" || reader == nil || quiet == nil {
		t.Fatalf("roles = %+v", got.Roles)
	}
	if !reader.Servers.Has("gitlab") || reader.Servers.Has("github") || reader.Servers.Has("fetch") ||
		!reader.Catalogs.Has("built-in") || reader.Catalogs.Has("team.yaml") ||
		reader.Tools.Empty() || !cmp.Equal(reader.Expose, []string{"active"}) || !strings.HasSuffix(reader.Place, "config.yaml:14") {
		t.Errorf("the role reader = %+v", reader)
	}
	if quiet.Servers.Has("gitlab") || !quiet.Catalogs.Has("team.yaml") || quiet.Expose != nil {
		t.Errorf("the role quiet = %+v", quiet)
	}
	if max := got.Quotas["reader"].MaxRunning; max.Max != 1 || max.Place != reader.Place {
		t.Errorf("the quota of reader = %+v, want 1, from %s", max, reader.Place)
	}
}

// Every mistake is named with its line, and nothing that is empty by mistake
// allows everything.
func TestAdmissionRefuses(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"roles:\n", []string{"config.yaml:1: roles: is empty, want a mapping"}},
		{"roles: {}\n", []string{"config.yaml:1: roles: is empty, want a mapping"}},
		{"roles:\n  a:\n", []string{"config.yaml:2: roles.a: is empty, want a mapping"}},
		{"roles:\n  a: {servers: }\n", []string{"config.yaml:2: roles.a.servers: is empty, want a list"}},
		{"roles:\n  a: {servers: git}\n", []string{`config.yaml:2: roles.a.servers: is "git", want a list`}},
		{"roles:\n  a: {catalogs: }\n", []string{"config.yaml:2: roles.a.catalogs: is empty, want a list"}},
		{"roles:\n  a: {tools: }\n", []string{"config.yaml:2: roles.a.tools: is empty, want a list"}},
		{"roles:\n  a: {tools: []}\n", []string{"config.yaml:2: roles.a.tools: is empty, want a list"}},
		{"roles:\n  a: {approve: maybe}\n", []string{`config.yaml:2: roles.a.approve: is "maybe", want true or false`}},
		{"roles:\n  a: {expose: }\n", []string{"config.yaml:2: roles.a.expose: is empty, want a list"}},
		{"roles:\n  a: {server: [git]}\n", []string{"config.yaml:2: roles.a.server: unknown field; known: approve, catalogs, expose, quotas, servers, tools"}},
		{"roles:\n  a:\n    servers: [a]\n    servers: ['*']\n", []string{"config.yaml:4: roles.a.servers: is here again; it was on line 3 already"}},
		{"roles:\n  a:\n    servers: [a]\n  'b c': {servers: [a]}\n  owner: {servers: [a]}\n", []string{
			`config.yaml:4: roles.b c: "b c" is no name`, "config.yaml:5: roles.owner: is always there",
		}},
		{
			"roles:\n  a:\n    servers: ['[a']\n    tools: [{pattern: ['/(/']}]\n    expose: [everything]\n    quotas: {max_running: 0}\n",
			[]string{
				`config.yaml:3: roles.a.servers: "[a" has a "["`, "config.yaml:4: roles.a.tools[0].pattern[0]: ",
				`config.yaml:5: roles.a.expose: unknown group "everything"`, `config.yaml:6: roles.a.quotas.max_running: is "0", want a whole number above 0`,
			},
		},
		{"access: {default_role: gast}\n", []string{`config.yaml:1: access.default_role: there is no role "gast"; there are: owner`}},
		{"access: {resource: x}\n", []string{"config.yaml:1: access.resource: unknown field"}},
		{"access:\n", []string{"config.yaml:1: access: is empty, want a mapping"}},
		{"access:\n  issuers:\n    - {name: a, url: 'http://b.example'}\n", []string{"config.yaml:3: access.issuers[0]: url: "}},
		{"access:\n  issuers:\n    - {name: a, url: 'https://b.example', scopes: [{scope: x, role: y}]}\n", []string{`config.yaml:3: access.issuers[0].scopes[0].role: there is no role "y"`}},
		{"access:\n  issuers:\n    - {name: a, url: 'https://b.example', scopes: [{scope: x}]}\n", []string{"config.yaml:3: access.issuers[0]: scopes: role of x"}},
		{"access:\n  issuers:\n    - {name: a, url: 'https://b.example'}\n    - {name: b, url: 'https://b.example'}\n", []string{"config.yaml:4: access.issuers[1]: has the name or the URL of another"}},
		{"access:\n  issuers:\n    - {name: a, url: 'https://b.example'}\n", []string{`config.yaml: http.url: "" is no absolute URL`}},
		{"http: {url: 'http://tools.example.com'}\naccess:\n  issuers:\n    - {name: a, url: 'https://b.example'}\n", []string{"config.yaml:1: http.url: "}},
	}
	for _, tt := range tests {
		_, err := loaded(t, tt.text)
		if err == nil {
			t.Errorf("LoadConfig(%q) = nil, want %q", tt.text, tt.want)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("LoadConfig(%q) = %v, want it to have %q", tt.text, err, want)
			}
		}
	}
	_, err := policy.LoadConfig(filepath.Join("testdata", "nowhere"))
	var problems rules.Problems
	if errors.As(err, &problems) {
		t.Errorf("LoadConfig of no file = %v", err)
	}
}
