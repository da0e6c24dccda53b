package daemon_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// What a role says holds for its callers, narrowed by the project as
// everybody's is.
func TestShares(t *testing.T) {
	o := daemontest.Options(t, entries)
	config, err := policy.ParseConfig("config.yaml", []byte(`
quotas: {max_running: 4, max_call: 1m}
access: {default_role: reader, local_role: owner}
roles:
  reader: {servers: ["git*", "!github"], tools: [{pattern: ['*delete*'], enabled: false}], quotas: {max_running: 1}}
  quiet: {servers: []}
  busy: {approve: true, quotas: {max_running: 9, max_memory_per_server: 1GB}}
`))
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
