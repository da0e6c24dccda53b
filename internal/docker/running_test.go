package docker_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestRunningAndStats(t *testing.T) {
	_, image := probeImage(t)
	engine := require(t)
	spec := probeSpec(image, probe.Echo)
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
	want := docker.Container{ID: p.ID(), Server: "some.Server_1", Image: image.Pin.Digest, State: "running"}
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

// An engine that is closed takes its containers along.
func TestCloseStopsContainers(t *testing.T) {
	_, image := probeImage(t)
	dir := t.TempDir()
	engine := connect(t, docker.Options{Dir: dir, State: "test-" + t.Name() + time.Now().Format(time.RFC3339Nano)})
	p, err := engine.Start(t.Context(), probeSpec(image, probe.Echo))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := engine.Close(); err != nil {
			t.Errorf("Engine.Close() = %v", err)
		}
	}
	select {
	case <-p.Done():
	default:
		t.Error("the container runs on")
	}
	if entries, err := os.ReadDir(dir + "/owners"); err != nil || len(entries) > 0 {
		t.Errorf("lock files = %v, %v, want none", entries, err)
	}
	if p, err := engine.Start(t.Context(), probeSpec(image, probe.Echo)); err == nil {
		_ = p.Close()
		t.Error("Start() after Close = nil, want an error")
	}
}

func TestLogs(t *testing.T) {
	_, image := probeImage(t)
	engine := require(t)
	if files, err := engine.Logs("probe"); err != nil || len(files) > 0 {
		t.Errorf("Logs() before a start = %v, %v, want none", files, err)
	}
	// About 13 MB: more than two files, less than what is kept.
	for _, lines := range []string{"2", "1100000"} {
		p, err := engine.Start(t.Context(), probeSpec(image, probe.Chatter, lines))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			t.Error(err)
		}
		<-p.Done()
		if got, want := p.Exit(), (sandbox.Exit{}); got != want {
			t.Errorf("Exit() = %+v, want %+v", got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := engine.Logs("probe")
	if err != nil || len(files) != 3 {
		t.Fatalf("Logs() = %v, %v, want three files", files, err)
	}
	var count int
	var last string
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes and mode %v, want at most 5 MiB and 0600", file, info.Size(), info.Mode())
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		// A line may be cut in two where a file ends.
		for lines := bufio.NewScanner(f); lines.Scan(); count++ {
			last = lines.Text()
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if last != "line 1100000" || count < 1_100_002 || count > 1_100_004 {
		t.Errorf("logs have %d lines, the last %q, want 1100002 and the last one", count, last)
	}
}

func TestInfo(t *testing.T) {
	engine := require(t)
	info, err := engine.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.API == "" || info.EngineAPI == "" || info.Version == "" || info.CPUs == 0 || info.Memory == 0 ||
		info.Storage == "" || info.CgroupVersion == "" || !strings.HasPrefix(info.Platform, "linux/") {
		t.Errorf("Info() = %+v, want every field of an engine", info)
	}
	if info.Host != engine.Host() || info.Local != engine.Local() || (info.Socket != nil) != strings.HasPrefix(info.Host, "unix://") {
		t.Errorf("Info() = %+v, want host %s and its socket", info, engine.Host())
	}
}
