package docker_test

import (
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

// looks runs the probe and returns what it sees.
func looks(t *testing.T, engine *docker.Engine, spec sandbox.Spec) probe.Report {
	t.Helper()
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	var report probe.Report
	if err := json.NewDecoder(p).Decode(&report); err != nil {
		t.Errorf("report = %v; stderr %q", err, p.Stderr())
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	return report
}

func TestMounts(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	if !engine.Local() {
		t.Skip("the engine does not see this machine's files")
	}
	spec := dockertest.Spec(image, probe.Look)
	spec.Mounts = []sandbox.Mount{
		{Source: t.TempDir(), Target: "/in", ReadOnly: true},
		{Source: t.TempDir(), Target: "/out"},
	}
	report := looks(t, engine, spec)
	for target, want := range map[string]string{"/in": "ro", "/out": "rw"} {
		if got, _, _ := strings.Cut(report.Mounts[target], ","); got != want {
			t.Errorf("mount %s has %q, want %s", target, report.Mounts[target], want)
		}
	}
	// The image declares them as volumes, which would have no limit.
	for _, target := range []string{"/a", "/b"} {
		if got := report.Mounts[target]; !strings.Contains(got, "size=1024k") {
			t.Errorf("mount %s has %q, want a file system in memory of 1 MiB", target, got)
		}
	}
}

func TestFullNetwork(t *testing.T) {
	_, image := dockertest.Probe(t)
	spec := dockertest.Spec(image, probe.Look)
	spec.Network = catalog.NetworkFull
	report := looks(t, dockertest.Require(t), spec)
	if !slices.ContainsFunc(report.Interfaces, func(name string) bool { return strings.HasPrefix(name, "eth") }) {
		t.Errorf("interfaces = %q, want one that leads out", report.Interfaces)
	}
}

// The engine's own words win: nothing of the image's command is added.
func TestEmptyCommand(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	spec := dockertest.Spec(image)
	spec.Entrypoint, spec.Command = nil, []string{"/probe", probe.Look}
	report := looks(t, engine, spec)
	if want := []string{probe.Look}; !slices.Equal(report.Args, want) {
		t.Errorf("arguments = %q, want %q", report.Args, want)
	}
	if report.Env["FROM_IMAGE"] != "yes" {
		t.Errorf("environment = %v, want the image's own too", report.Env)
	}
}

// A cutter passes connections on to the engine until it is told to cut them.
type cutter struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
}

func newCutter(t *testing.T) *cutter {
	t.Helper()
	socket, ok := strings.CutPrefix(dockertest.Require(t).Host(), "unix://")
	if !ok {
		t.Skip("the engine under test has no socket to stand in front of")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: listener.Addr().String()}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("unix", socket)
			if err != nil {
				_ = front.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, front, back)
			c.mu.Unlock()
			group.Go(func() {
				_, _ = io.Copy(back, front)
				_ = back.(*net.UnixConn).CloseWrite()
			})
			group.Go(func() {
				_, _ = io.Copy(front, back)
				_ = front.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		group.Wait()
	})
	return c
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func TestConnectionLost(t *testing.T) {
	_, image := dockertest.Probe(t)
	front := newCutter(t)
	engine := dockertest.Connect(t, owner.Options{Options: reach.Options{Host: "tcp://" + front.address}, Dir: t.TempDir()})
	p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Stubborn))
	if err != nil {
		t.Fatal(err)
	}
	front.cut()
	if _, err := io.ReadAll(p); err != nil {
		t.Errorf("Read() = %v, want io.EOF", err)
	}
	<-p.Done()
	if got, want := p.Exit(), (sandbox.Exit{Lost: true}); got != want {
		t.Errorf("Exit() = %+v, want %+v", got, want)
	}
	// The container still runs; with the connection back, Close removes it.
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if names, err := dockertest.Left(engine)(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("left = %q, %v, want nothing", names, err)
	}
	// Events are listened to again, even if the engine misses some.
	for range 5 {
		hungry, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Hungry))
		if err != nil {
			t.Fatal(err)
		}
		<-hungry.Done()
		heard := hungry.Exit().OutOfMemory
		if err := hungry.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if heard {
			return
		}
	}
	t.Error("none of 5 exits is out of memory, want one")
}
