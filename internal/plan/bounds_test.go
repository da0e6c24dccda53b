package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// planned returns the plan of an entry with these limits and timeouts.
func planned(t *testing.T, bounds plan.Bounds, limits catalog.Limits, timeouts catalog.Timeouts) (plan.Plan, error) {
	t.Helper()
	d := newDesk(t)
	d.Bounds = func(principal.Principal) plan.Bounds { return bounds }
	servers, _ := catalog.Merge(catalog.File{Servers: []catalog.Server{{
		Name: "one", Image: "mcp/one:1", Limits: limits, Timeouts: timeouts,
	}}})
	d.Catalog = func() *catalog.Catalog { return servers }
	d.known["mcp/one:1"] = imageOf("mcp/one:1")
	return d.Plan(t.Context(), principal.Local, "one")
}

func TestMemoryBounds(t *testing.T) {
	const mb = 1 << 20
	tests := []struct {
		name                     string
		entry, preset, most, got int64 // got 0 is a refusal
	}{
		{"nobody says anything", 0, 0, 0, sandbox.DefaultMemory},
		{"the entry does", 2000 * mb, 0, 0, 2000 * mb},
		{"the configuration does", 0, 300 * mb, 0, 300 * mb},
		{"both do", 2000 * mb, 300 * mb, 0, 2000 * mb},
		{"a quota below the default", 0, 0, 100 * mb, 100 * mb},
		{"a quota above the default", 0, 0, 1000 * mb, sandbox.DefaultMemory},
		{"a quota below what the configuration says", 0, 300 * mb, 100 * mb, 100 * mb},
		{"an entry within the quota", 100 * mb, 0, 100 * mb, 100 * mb},
		{"an entry beyond the quota", 101 * mb, 0, 100 * mb, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bounds := plan.Bounds{Limits: catalog.Limits{Memory: tt.preset}, MaxMemory: tt.most, MaxMemoryPlace: "limits.yaml"}
			made, err := planned(t, bounds, catalog.Limits{Memory: tt.entry}, catalog.Timeouts{})
			var tooMuch *plan.MemoryError
			if errors.As(err, &tooMuch) != (tt.got == 0) || made.Spec.Limits.Memory != tt.got || made.Grant.Limits.Memory != tt.got {
				t.Fatalf("Plan() = %d bytes, %v, want %d", made.Spec.Limits.Memory, err, tt.got)
			}
			if tooMuch == nil {
				return
			}
			text := `QUOTA_EXCEEDED: server "one" asks for 101MiB of memory, and no server may have more than 100MiB`
			hint := "raise quotas.max_memory_per_server in limits.yaml, or lower limits.memory of one"
			if err.Error() != text || tooMuch.Hint() != hint {
				t.Errorf("Plan() = %v (%s), want %s (%s)", err, tooMuch.Hint(), text, hint)
			}
		})
	}
}

func TestPresets(t *testing.T) {
	preset := plan.Bounds{
		Limits: catalog.Limits{CPUs: 2, PIDs: 64, Shm: 1 << 20, Tmp: 2 << 20},
		Timeouts: catalog.Timeouts{
			Start: 1 * time.Second, List: 2 * time.Second, Call: 3 * time.Second, CallMax: 4 * time.Second,
			Idle: 5 * time.Second, Stop: 6 * time.Second,
		},
	}
	own := catalog.Timeouts{
		Start: 11 * time.Second, List: 12 * time.Second, Call: 13 * time.Second, CallMax: 14 * time.Second,
		Idle: 15 * time.Second, Stop: 16 * time.Second,
	}
	made, err := planned(t, preset, catalog.Limits{}, catalog.Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(preset.Timeouts, made.Entry.Timeouts); diff != "" {
		t.Errorf("timeouts of an entry without (-want +got):\n%s", diff)
	}
	l := made.Spec.Limits
	if l.NanoCPUs != 2e9 || l.PIDs != 64 || l.Shm != 1<<20 || made.Spec.Tmpfs[0].Size != 2<<20 || made.Spec.Stop != 6*time.Second {
		t.Errorf("Spec = %+v, want the configuration's limits", made.Spec)
	}
	made, err = planned(t, preset, catalog.Limits{CPUs: 3, PIDs: 65, Shm: 3 << 20, Tmp: 4 << 20}, own)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(own, made.Entry.Timeouts); diff != "" {
		t.Errorf("timeouts of an entry with its own (-want +got):\n%s", diff)
	}
	l = made.Spec.Limits
	if l.NanoCPUs != 3e9 || l.PIDs != 65 || l.Shm != 3<<20 || made.Spec.Tmpfs[0].Size != 4<<20 || made.Spec.Stop != 16*time.Second {
		t.Errorf("Spec = %+v, want the entry's limits", made.Spec)
	}
}

// A default never contradicts what an entry says itself.
func TestCallTimeouts(t *testing.T) {
	tests := []struct{ entry, preset, want catalog.Timeouts }{
		{catalog.Timeouts{Call: time.Hour}, catalog.Timeouts{CallMax: time.Minute}, catalog.Timeouts{Call: time.Hour, CallMax: time.Hour}},
		{catalog.Timeouts{CallMax: time.Second}, catalog.Timeouts{Call: time.Minute}, catalog.Timeouts{Call: time.Second, CallMax: time.Second}},
		{catalog.Timeouts{Call: time.Second}, catalog.Timeouts{Call: time.Minute}, catalog.Timeouts{Call: time.Second}},
	}
	for _, tt := range tests {
		made, err := planned(t, plan.Bounds{Timeouts: tt.preset}, catalog.Limits{}, tt.entry)
		if err != nil || made.Entry.Timeouts != tt.want {
			t.Errorf("Plan() of %+v with the defaults %+v = %+v, %v, want %+v", tt.entry, tt.preset, made.Entry.Timeouts, err, tt.want)
		}
	}
}
