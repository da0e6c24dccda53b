package docker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dockgate/dockgate/internal/docker"
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
		engine := connect(t, docker.Options{Host: tt.host})
		calls := map[string]func() error{
			"Info":    func() error { _, err := engine.Info(t.Context()); return err },
			"Resolve": func() error { _, err := engine.Resolve(t.Context(), "x", nil); return err },
			"Latest":  func() error { _, err := engine.Latest(t.Context(), "x", nil); return err },
			"Start":   func() error { _, err := engine.Start(t.Context(), probeSpec(image)); return err },
			"Running": func() error { _, err := engine.Running(t.Context()); return err },
			"Sweep":   func() error { _, err := engine.Sweep(t.Context()); return err },
			"Stop":    func() error { return engine.Stop(t.Context(), "x") },
			"Stats":   func() error { _, err := engine.Stats(t.Context(), "x"); return err },
		}
		for name, call := range calls {
			err := call()
			var down *docker.EngineError
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
	_, image := probeImage(t)
	engine := require(t)
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
		{"image", func(s *sandbox.Spec) { s.Image = missing }, docker.ErrImageNotFound, true},
		{"platform", func(s *sandbox.Spec) { s.Image.Pin.Platform = "linux/s390x" }, docker.ErrNoPlatform, true},
		{"tag instead of a pin", func(s *sandbox.Spec) { s.Image.Pin = sandbox.Pin{} }, docker.ErrReference, true},
		{"network", func(s *sandbox.Spec) { s.Network = "allow" }, nil, false},
		{"name", func(s *sandbox.Spec) { s.Server = "../evil" }, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := probeSpec(image, probe.Echo)
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
			if names, err := left(engine)(t.Context()); err != nil || len(names) > 0 {
				t.Errorf("left = %q, %v, want nothing", names, err)
			}
		})
	}
}

// The init process is there even if the server's program is not.
func TestMissingProgram(t *testing.T) {
	_, image := probeImage(t)
	engine := require(t)
	spec := probeSpec(image)
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

// What engines say of failures that cannot be caused here, in their own words.
func TestPullSymptoms(t *testing.T) {
	tests := []struct {
		said   string
		reason error
	}{
		{"failed to register layer: Error processing tar file(exit status 1): write /usr/bin/node: no space left on device", docker.ErrDiskFull},
		{"write /var/lib/docker/tmp/GetImageBlob123: no space left on device", docker.ErrDiskFull},
		{"toomanyrequests: You have reached your pull rate limit.", docker.ErrRateLimited},
		{"unexpected EOF", docker.ErrInterrupted},
		{"read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer", docker.ErrInterrupted},
		{`Get "https://registry.test/v2/": dial tcp: lookup registry.test: no such host`, docker.ErrUnreachable},
		{`Get "https://registry.test/v2/": net/http: TLS handshake timeout`, docker.ErrUnreachable},
		{"filesystem layer verification failed for digest sha256:00", docker.ErrDigestMismatch},
		{"pull access denied for x, repository does not exist or may require 'docker login'", docker.ErrImageNotFound},
		{"denied: requested access to the resource is denied", docker.ErrUnauthorized},
		{"no matching manifest for linux/arm64/v8 in the manifest list entries", docker.ErrNoPlatform},
		{"something nobody has thought of", nil},
	}
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			engine := connect(t, docker.Options{Host: scripted(t, tt.said)})
			_, err := engine.Resolve(t.Context(), "registry.test/x:1", nil)
			var failed *docker.ImageError
			if !errors.As(err, &failed) || !errors.Is(failed.Reason, tt.reason) || !strings.Contains(err.Error(), tt.said) {
				t.Errorf("Resolve() = %#v, want reason %v and the words", err, tt.reason)
			}
		})
	}
}

// scripted is an engine whose pulls fail in the middle.
func scripted(t *testing.T, said string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/_ping":
		case strings.HasSuffix(r.URL.Path, "/images/create"):
			message, err := json.Marshal(map[string]any{"errorDetail": map[string]string{"message": said}, "error": said})
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "{\"status\":\"Pulling from x\",\"id\":\"1\"}\n%s\n", message)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"message":"No such image"}`)
		}
	}))
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}
