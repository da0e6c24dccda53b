package setup_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/setup"
)

const mb = 1 << 20

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
			in := inputs(t)
			var log strings.Builder
			for name, content := range map[string]string{
				"config.yaml": tt.user, ".dockgate/mcp-limits.yaml": tt.dockgate, ".go-ent/mcp-limits.yaml": tt.goEnt,
			} {
				if content != "" {
					write(t, filepath.Join(in.Dir, name), content)
				}
			}
			if tt.user != "" {
				config, err := policy.LoadConfig(filepath.Join(in.Dir, "config.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				in.Config.Quotas = config.Quotas
			}
			s := read(t, in)
			s.Log(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			got := s.Quotas
			remote := tt.remote
			if remote == 0 {
				remote = policy.DefaultMaxRemote
			}
			place := tt.place
			if place != "" {
				place = filepath.Join(in.Dir, place)
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
		in := inputs(t)
		path := filepath.Join(in.Dir, ".dockgate", "mcp-limits.yaml")
		write(t, path, tt.content)
		_, err := setup.Read(t.Context(), in, nil)
		var mistake *policy.ConfigError
		if !errors.As(err, &mistake) || !strings.HasPrefix(mistake.Place, path) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Read() with %.40q = %v, want %s", tt.content, err, tt.want)
		}
	}
	in := inputs(t)
	if err := os.MkdirAll(filepath.Join(in.Dir, ".dockgate", "mcp-limits.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.Read(t.Context(), in, nil); err == nil {
		t.Errorf("Read() with a folder for a file = nil, want an error")
	}
}
