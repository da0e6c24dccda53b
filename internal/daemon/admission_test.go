package daemon_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/access/accesstest"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
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

// What a role says holds for its callers, narrowed by the project as
// everybody's is.
func TestShares(t *testing.T) {
	o := options(t)
	config, err := loaded(t, admission+`
  busy: {approve: true, quotas: {max_running: 9, max_memory_per_server: 1GB}}
`)
	if err != nil {
		t.Fatal(err)
	}
	config.Catalogs = o.Config.Catalogs
	o.Config = config
	write(t, filepath.Join(o.Dir, "dockgate.yaml"), "quotas: {max_running: 3}\ndiscovery: {toolRules: [{pattern: [purge], enabled: false}]}\n")
	d, err := daemon.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	caller := func(role string) principal.Principal { return principal.Principal{ID: "ann", Role: role} }
	for role, want := range map[string]int64{"owner": 3, "reader": 1, "": 1, "quiet": 3, "busy": 3} {
		quota, maxCall := d.Caller.Bound(caller(role))
		if quota.Running.Max != want || maxCall != time.Minute {
			t.Errorf("the role %q has %d servers and %v, want %d and a minute", role, quota.Running.Max, maxCall, want)
		}
	}
	if got := d.Planner.Bounds(caller("busy")); got.MaxMemory != 1<<30 {
		t.Errorf("memory for busy = %d, want 1 GiB", got.MaxMemory)
	}
	if got := d.Planner.Bounds(principal.Local); got.MaxMemory != 0 {
		t.Errorf("memory for the local user = %d, want no bound", got.MaxMemory)
	}
	for role, want := range map[string]bool{"owner": true, "busy": true, "quiet": false, "": false, "gone": false} {
		if got := d.Caller.Approver(caller(role)); got != want {
			t.Errorf("the role %q may approve: %v, want %v", role, got, want)
		}
	}
	var denied *access.DeniedError
	if err := d.Caller.MayUse(caller("quiet"), "notes"); !errors.As(err, &denied) {
		t.Errorf("MayUse(notes) with the role quiet = %v, want a DeniedError", err)
	}
	if err := d.Caller.MayUse(principal.Local, "notes"); err != nil {
		t.Errorf("MayUse(notes) by the local user = %v", err)
	}
	for _, tt := range []struct {
		role, tool string
		want       bool
	}{
		{"owner", "delete_all", true},
		{"reader", "delete_all", false},
		{"", "delete_all", false},
		{"reader", "list", true},
		{"owner", "purge", false},
		{"reader", "purge", false},
		{"busy", "purge", false},
	} {
		if got := d.Caller.Decide(caller(tt.role), "gitlab", definition(tt.tool)).Enabled(); got != tt.want {
			t.Errorf("%s with the role %q = %v, want %v", tt.tool, tt.role, got, tt.want)
		}
	}
}

func definition(name string) tool.Definition { return tool.Definition{Name: name} }

func TestExamineCallers(t *testing.T) {
	o := options(t)
	examine := func(text string) (got []string) {
		t.Helper()
		config, err := loaded(t, text)
		if err != nil {
			t.Fatal(err)
		}
		o.Config.Admission, o.Config.HTTP = config.Admission, config.HTTP
		for _, f := range daemon.Examine(t.Context(), o) {
			if f.Subject == "access" {
				got = append(got, string(f.Health)+": "+f.Text)
				if f.Health != daemon.Good && f.Hint == "" {
					t.Errorf("%s has no hint", f.Text)
				}
			}
		}
		return got
	}
	if got := examine(""); got != nil {
		t.Errorf("a gateway without callers: %q, want nothing", got)
	}
	d := open(t, o)
	for name, role := range map[string]string{"good": "", "old": ""} {
		expires := time.Time{}
		if name == "old" {
			expires = time.Now()
		}
		if _, _, err := d.NewToken(t.Context(), name, role, expires); err != nil {
			t.Fatal(err)
		}
	}
	var unknown *access.RoleError
	if _, _, err := d.NewToken(t.Context(), "bad", "reader", time.Time{}); !errors.As(err, &unknown) {
		t.Errorf("NewToken with a role that is not configured = %v, want a RoleError", err)
	}
	there := accesstest.NewIssuer(t)
	issuer := "http: {url: 'https://a.example/mcp'}\naccess:\n  issuers: [{name: a, url: '" + there.URL + "'}]\n"
	want := []string{
		"good: 2 tokens, 1 issuers of others, 0 roles of the configuration",
		"poor: tokens that have expired, or whose role is not configured: old",
		"poor: whoever has a token of " + there.URL + " for this gateway may use everything that is approved",
	}
	if diff := cmp.Diff(want, examine(issuer)); diff != "" {
		t.Errorf("examined (-want +got):\n%s", diff)
	}
	want = []string{
		"good: 2 tokens, 1 issuers of others, 1 roles of the configuration",
		"poor: tokens that have expired, or whose role is not configured: good, old",
	}
	if diff := cmp.Diff(want, examine(issuer+"roles: {reader: {servers: [fetch]}}\n")); diff != "" {
		t.Errorf("examined (-want +got):\n%s", diff)
	}
	there.Break()
	if got := examine(issuer); len(got) != 4 || !strings.HasPrefix(got[2], "poor: keys of issuer "+there.URL+": ") {
		t.Errorf("an issuer that does not answer: %q, want it named", got)
	}
}
