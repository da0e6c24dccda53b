package docker_test

import (
	"errors"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestEngineDown(t *testing.T) {
	dir := t.TempDir()
	// A socket that nobody listens on any more.
	dead := filepath.Join(dir, "dead.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	image := sandbox.Image{Ref: "x", Pin: sandbox.Pin{Kind: sandbox.LocalID, Digest: "sha256:" + strings.Repeat("0", 64)}}
	tests := []struct {
		host  string
		cause error
	}{
		{"unix://" + filepath.Join(dir, "missing.sock"), fs.ErrNotExist},
		{"unix://" + dead, syscall.ECONNREFUSED},
		{"tcp://127.0.0.1:1", nil},
	}
	for _, tt := range tests {
		engine := dockertest.Connect(t, owner.Options{Options: reach.Options{Host: tt.host}})
		calls := map[string]func() error{
			"Info":    func() error { _, err := engine.Info(t.Context()); return err },
			"Resolve": func() error { _, err := engine.Resolve(t.Context(), "x", nil); return err },
			"Latest":  func() error { _, err := engine.Latest(t.Context(), "x", nil); return err },
			"Start":   func() error { _, err := engine.Start(t.Context(), dockertest.Spec(image)); return err },
			"Running": func() error { _, err := engine.Running(t.Context()); return err },
			"Sweep":   func() error { _, err := engine.Sweep(t.Context()); return err },
			"Stop":    func() error { return engine.Stop(t.Context(), "x") },
			"Stats":   func() error { _, err := engine.Stats(t.Context(), "x"); return err },
		}
		for name, call := range calls {
			err := call()
			var down *reach.EngineError
			if !errors.As(err, &down) || down.Host != tt.host {
				t.Errorf("%s at %s = %v, want an EngineError", name, tt.host, err)
				continue
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("%s at %s = %v, want the cause %v", name, tt.host, err, tt.cause)
			}
			var hinted interface{ Hint() string }
			if !errors.As(err, &hinted) || hinted.Hint() == "" {
				t.Errorf("%s at %s = %v without a hint", name, tt.host, err)
			}
		}
	}
}

func TestStartErrors(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	missing := image
	missing.Pin.Digest = "sha256:" + strings.Repeat("0", 64)
	tests := []struct {
		name   string
		change func(*sandbox.Spec)
		reason error
		hint   bool
	}{
		{"mount source", func(s *sandbox.Spec) {
			s.Mounts = []sandbox.Mount{{Source: "/no/such/folder/of/dockgate", Target: "/data"}}
		}, docker.ErrMountSource, true},
		{"user", func(s *sandbox.Spec) { s.User = "nobody-of-that-name" }, docker.ErrCommand, true},
		{"image", func(s *sandbox.Spec) { s.Image = missing }, pull.ErrNotFound, true},
		{"platform", func(s *sandbox.Spec) { s.Image.Pin.Platform = "linux/s390x" }, pull.ErrNoPlatform, true},
		{"tag instead of a pin", func(s *sandbox.Spec) { s.Image.Pin = sandbox.Pin{} }, pull.ErrReference, true},
		{"network", func(s *sandbox.Spec) { s.Network = "allow" }, nil, false},
		{"name", func(s *sandbox.Spec) { s.Server = "../evil" }, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := dockertest.Spec(image, probe.Echo)
			tt.change(&spec)
			p, err := engine.Start(t.Context(), spec)
			if err == nil {
				_ = p.Close()
				t.Fatal("Start() = nil, want an error")
			}
			var failed *docker.StartError
			if !errors.As(err, &failed) || failed.Server != spec.Server {
				t.Fatalf("Start() = %v, want a StartError of %q", err, spec.Server)
			}
			if tt.reason != nil && !errors.Is(err, tt.reason) {
				t.Errorf("Start() = %v, want %v", err, tt.reason)
			}
			if got := failed.Hint() != ""; got != tt.hint {
				t.Errorf("Hint() = %q, want one: %v", failed.Hint(), tt.hint)
			}
			if names, err := dockertest.Left(engine)(t.Context()); err != nil || len(names) > 0 {
				t.Errorf("left = %q, %v, want nothing", names, err)
			}
		})
	}
}

// The init process is there even if the server's program is not.
func TestMissingProgram(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Require(t)
	spec := dockertest.Spec(image)
	spec.Entrypoint = []string{"/no-such-program"}
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got, want := p.Exit(), (sandbox.Exit{Code: 127}); got != want {
		t.Errorf("Exit() = %+v, want %+v", got, want)
	}
	if got := p.Stderr(); !strings.Contains(got, "/no-such-program") {
		t.Errorf("Stderr() = %q, want the program's name", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
