package policy_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/policy"
)

// The file with the names of others, as it is published.
const limitsFile = `
quotas:
  max_concurrent_mcps: 5
  max_gateway_mcps: 2
  max_memory_per_mcp: "500MB"
  max_execution_time: "30s"
`

func FuzzQuotas(f *testing.F) {
	f.Add(strings.TrimPrefix(limitsFile, "\nquotas:"))
	f.Add("max_running: 2")
	f.Add("{max_call: 1h, max_total_memory: 1e9}")
	f.Fuzz(func(t *testing.T, text string) {
		var q policy.Quotas
		if err := yaml.Unmarshal([]byte(text), &q); err != nil {
			return
		}
		for _, bound := range []fleet.Bound{q.MaxRunning, q.MaxMemoryPerServer, q.MaxTotalMemory, q.MaxCall, q.MaxRemote} {
			if bound.Max < 0 || bound.Place != "" {
				t.Errorf("Unmarshal(%q) = %+v, want bounds above 0 that come from nowhere", text, q)
			}
		}
	})
}
