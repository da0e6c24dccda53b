package owner_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

func TestRunningAndStats(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	spec := dockertest.Spec(image, probe.Echo)
	spec.Server = "some.Server_1"
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	running, err := engine.Running(t.Context())
	if err != nil || len(running) != 1 {
		t.Fatalf("Running() = %+v, %v, want one", running, err)
	}
	got := running[0]
	if !strings.HasPrefix(got.Name, "dockgate-some.Server_1-") || got.Owner == "" || time.Since(got.Created) > time.Hour {
		t.Errorf("Running() = %+v, want a name, an owner and a time", got)
	}
	if until := time.Until(got.Expires); until < 23*time.Hour || until > 24*time.Hour {
		t.Errorf("expires in %v, want 24 h", until)
	}
	got.Name, got.Owner, got.Created, got.Expires = "", "", time.Time{}, time.Time{}
	want := owner.Container{ID: p.ID(), Server: "some.Server_1", Image: image.Pin.Digest, State: "running"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Running() (-want +got):\n%s", diff)
	}
	stats, err := engine.Stats(t.Context(), p.ID())
	if err != nil {
		t.Fatalf("Stats() = %v", err)
	}
	if stats.Memory == 0 || stats.MemoryLimit != uint64(spec.Limits.Memory) || stats.PIDs == 0 || stats.CPU < 0 || stats.CPU > 4 {
		t.Errorf("Stats() = %+v, want some memory of %d, some processes", stats, spec.Limits.Memory)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
