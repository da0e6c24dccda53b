package daemon_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
)

const mb = 1 << 20

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The file with the names of others, as it is published.
const limitsFile = `
quotas:
  max_concurrent_mcps: 5
  max_gateway_mcps: 2
  max_memory_per_mcp: "500MB"
  max_execution_time: "30s"
`

func TestProjectQuotas(t *testing.T) {
	tests := []struct {
		name                   string
		user, dockgate, goEnt  string
		running, memory, total int64
		remote                 int64 // 2 if zero
		call                   time.Duration
		place                  string // of what bounds the running servers, in the folder
		said                   []string
	}{
		{name: "nothing", running: 5},
		{name: "the file as published", goEnt: limitsFile, running: 5, memory: 500 * mb, call: 30 * time.Second, place: ".go-ent/mcp-limits.yaml"},
		{name: "fewer remote ones", dockgate: "quotas: {max_remote: 1}", running: 5, remote: 1},
		{name: "not more remote ones", dockgate: "quotas: {max_gateway_mcps: 3}", running: 5, said: []string{"quota=max_remote"}},
		{name: "lower", dockgate: "quotas: {max_running: 2, max_total_memory: 1GB}", running: 2, total: 1 << 30, place: ".dockgate/mcp-limits.yaml"},
		{name: "not higher than the default", dockgate: "quotas: {max_running: 50}", running: 5, said: []string{"quota=max_running"}},
		{
			name: "not higher than the user's", user: "quotas: {max_running: 3, max_call: 10s}",
			dockgate: "quotas: {max_running: 4, max_call: 20s}",
			running:  3, call: 10 * time.Second, place: "config.yaml", said: []string{"quota=max_running", "quota=max_call"},
		},
		{name: "the user may have more", user: "quotas: {max_concurrent_mcps: 50}", running: 50, place: "config.yaml"},
		{
			name: "both files", dockgate: "quotas: {max_running: 3, max_memory_per_server: 100MB}", goEnt: "quotas: {max_running: 2, max_memory_per_server: 200MB}",
			running: 2, memory: 100 * mb, place: ".go-ent/mcp-limits.yaml", said: []string{"quota=max_memory_per_server"},
		},
		{name: "an empty file", dockgate: "\n", running: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			var log strings.Builder
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for name, content := range map[string]string{
				"config.yaml": tt.user, ".dockgate/mcp-limits.yaml": tt.dockgate, ".go-ent/mcp-limits.yaml": tt.goEnt,
			} {
				if content != "" {
					write(t, filepath.Join(o.Dir, name), content)
				}
			}
			if tt.user != "" {
				config, err := policy.LoadConfig(filepath.Join(o.Dir, "config.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				o.Config.Quotas = config.Quotas
			}
			got := open(t, o).Quotas()
			remote := tt.remote
			if remote == 0 {
				remote = policy.DefaultMaxRemote
			}
			place := tt.place
			if place != "" {
				place = filepath.Join(o.Dir, place)
			}
			if got.MaxRunning != (fleet.Bound{Max: tt.running, Place: place}) || got.MaxMemoryPerServer.Max != tt.memory ||
				got.MaxTotalMemory.Max != tt.total || got.MaxCall.Max != int64(tt.call) || got.MaxRemote.Max != remote {
				t.Errorf("Quotas = %+v, want %d running by %s, %d bytes each, %d in all, calls of %v, %d remote",
					got, tt.running, place, tt.memory, tt.total, tt.call, remote)
			}
			if n := strings.Count(log.String(), " quota="); n != len(tt.said) {
				t.Errorf("said of %d quotas that they have no effect, want %q:\n%s", n, tt.said, log.String())
			}
			for _, said := range tt.said {
				if !strings.Contains(log.String(), said) {
					t.Errorf("did not say that %s has no effect:\n%s", said, log.String())
				}
			}
		})
	}
}

func TestProjectMistakes(t *testing.T) {
	tests := []struct{ content, want string }{
		{"quotas: {max_running: 0}", "want a whole number above 0"},
		{"limits: {memory: 1GB}", "limits: is the user's to say"},
		{"quotas: {max_execution_time: soon}", "want a duration"},
		{"#" + strings.Repeat("x", 65<<10), "is not a file of at most 64kB"},
	}
	for _, tt := range tests {
		o := options(t)
		path := filepath.Join(o.Dir, ".dockgate", "mcp-limits.yaml")
		write(t, path, tt.content)
		d, err := daemon.Open(t.Context(), o)
		if err == nil {
			_ = d.Close()
		}
		var mistake *policy.ConfigError
		if !errors.As(err, &mistake) || !strings.HasPrefix(mistake.Place, path) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open() with %.40q = %v, want %s", tt.content, err, tt.want)
		}
	}
	o := options(t)
	if err := os.MkdirAll(filepath.Join(o.Dir, ".dockgate", "mcp-limits.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if d, err := daemon.Open(t.Context(), o); err == nil {
		t.Errorf("Open() with a folder for a file = nil, want an error")
		_ = d.Close()
	}
}

// What the quotas say holds for plans, in the folder of the project too.
func TestPlanWithinQuotas(t *testing.T) {
	o := options(t)
	o.Config.Limits.PIDs = 7
	write(t, filepath.Join(o.Dir, ".dockgate", "mcp-limits.yaml"), "quotas: {max_memory_per_mcp: 100MB}")
	d := open(t, o)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	if _, err := d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	made, err := d.Planner.Plan(t.Context(), principal.Local, "notes")
	if err != nil || made.Spec.Limits.Memory != 100*mb || made.Spec.Limits.PIDs != 7 {
		t.Errorf("Plan() = %+v, %v, want 100 MB and 7 processes", made.Spec.Limits, err)
	}
	write(t, o.Config.Catalogs[0], strings.Replace(entries, "    config:\n", "    limits: {memory: 2GB}\n    config:\n", 1))
	o.State = filepath.Join(t.TempDir(), "state")
	d = open(t, o)
	pulled(t, d, "sha256:"+strings.Repeat("1", 64))
	var tooMuch *plan.MemoryError
	_, err = d.Configure(t.Context(), principal.Local, "notes", []string{"dirs=" + t.TempDir()})
	if !errors.As(err, &tooMuch) || !strings.HasSuffix(tooMuch.Place, "mcp-limits.yaml") {
		t.Errorf("Configure() = %v, want a MemoryError that names the file", err)
	}
	standing, err := d.Standing(t.Context(), principal.Local, "notes")
	if err != nil || standing.State != daemon.StateRefused {
		t.Errorf("Standing() = %+v, %v, want %s", standing, err, daemon.StateRefused)
	}
}
