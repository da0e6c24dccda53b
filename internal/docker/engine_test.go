package docker_test

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

func TestEngineKeepsTheContract(t *testing.T) {
	_, image := dockertest.Probe(t)
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Subject {
		engine := dockertest.Require(t)
		return sandboxtest.Subject{
			Engine:   engine,
			Spec:     dockertest.Spec(image),
			Left:     dockertest.Left(engine),
			Enforces: sandboxtest.Enforced,
		}
	})
}

// An engine that is closed takes its containers along.
func TestCloseStopsContainers(t *testing.T) {
	_, image := dockertest.Probe(t)
	dir := t.TempDir()
	engine := dockertest.Connect(t, owner.Options{Dir: dir, State: "test-" + t.Name() + time.Now().Format(time.RFC3339Nano)})
	p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Echo))
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
	if p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Echo)); err == nil {
		_ = p.Close()
		t.Error("Start() after Close = nil, want an error")
	}
}

func TestLogs(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	if files, err := engine.Logs.Files("probe"); err != nil || len(files) > 0 {
		t.Errorf("Logs() before a start = %v, %v, want none", files, err)
	}
	// About 13 MB: more than two files, less than what is kept.
	for _, lines := range []string{"2", "1100000"} {
		p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Chatter, lines))
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
	files, err := engine.Logs.Files("probe")
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
