package remote_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// engine returns an engine with a state folder of its own, and the images of
// the relay and of the server of these tests.
func engine(t *testing.T) (e *docker.Engine, relay, web sandbox.Image) {
	t.Helper()
	e = dockertest.Connect(t, owner.Options{})
	return e, dockertest.Image(t, e, "dockgate/relay"), dockertest.Image(t, e, "dockgate-test/web")
}

// webSpec is a server on a port, without any network.
func webSpec(image sandbox.Image, transport string, command ...string) sandbox.Spec {
	path := "/mcp"
	if transport == catalog.SSE {
		path = "/sse"
	}
	return sandbox.Spec{
		Server: "web", Image: image, Entrypoint: []string{"/web"}, Command: command, User: "65532:65532",
		Network: catalog.NetworkNone, HTTP: &sandbox.HTTP{Port: 8080, Path: path, Transport: transport},
		Limits: sandbox.Limits{Memory: 64 << 20, NanoCPUs: 1_000_000_000, CPUShares: 512, PIDs: 64, Shm: 8 << 20, Files: 1024},
	}
}

// run starts a server in a container, closes it at the end of the test, and
// checks that nothing is left.
func run(t *testing.T, ctx context.Context, e *docker.Engine, relay sandbox.Image, spec sandbox.Spec) sandbox.Process { //nolint:revive // t first, as in all helpers
	t.Helper()
	runner := &remote.Runner{Containers: e, Relay: func(context.Context) (sandbox.Image, error) { return relay, nil }}
	p, err := runner.Start(ctx, spec)
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		left, err := e.Running(context.WithoutCancel(t.Context()))
		if err != nil || len(left) > 0 {
			t.Errorf("after Close the engine has %v, %v, want nothing", left, err)
		}
	})
	return p
}

func TestServerInContainer(t *testing.T) {
	e, relay, image := engine(t)
	tests := []struct {
		name      string
		transport string
		command   []string
		era       upstream.Era
	}{
		{"both eras", catalog.StreamableHTTP, []string{"-after", "500ms"}, upstream.Modern},
		{"legacy", catalog.StreamableHTTP, []string{"-legacy", ":8080"}, upstream.Legacy},
		{"sse", catalog.SSE, []string{"-sse", ":8080"}, ""},
		{"deaf", catalog.StreamableHTTP, []string{"-deaf"}, upstream.Modern},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := webSpec(image, tt.transport, tt.command...)
			spec.Stop = time.Second
			s := converse(t, run(t, t.Context(), e, relay, spec), upstream.Options{})
			if tt.era != "" && s.Era() != tt.era {
				t.Errorf("Era() = %s, want %s", s.Era(), tt.era)
			}
			if got := call(t, s, `{"name":"echo","arguments":{"a":1}}`, nil); got != `{"a":1}` {
				t.Errorf("echo = %s, want its arguments", got)
			}
			running, err := e.Running(t.Context())
			if err != nil || len(running) != 2 {
				t.Errorf("Running() = %d containers, %v, want the server and its relay", len(running), err)
			}
		})
	}
}

// The relay is confined as every container, but for the one capability that it
// needs; and nothing is published.
func TestRelayIsConfined(t *testing.T) {
	e, relay, image := engine(t)
	run(t, t.Context(), e, relay, webSpec(image, catalog.StreamableHTTP))
	running, err := e.Running(t.Context())
	if err != nil || len(running) != 2 {
		t.Fatalf("Running() = %v, %v, want the server and its relay", running, err)
	}
	api, err := client.New(client.WithHost(cmp.Or(os.Getenv("DOCKER_HOST"), client.DefaultDockerHost)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	// The server is the one that has a network of its own, which is none.
	containers := make([]container.InspectResponse, len(running))
	for i, c := range running {
		found, err := api.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		containers[i] = found.Container
	}
	slices.SortFunc(containers, func(a, b container.InspectResponse) int {
		return strings.Compare(string(b.HostConfig.NetworkMode), string(a.HostConfig.NetworkMode))
	})
	for i, want := range []struct {
		network, pid string
		added        []string
	}{
		{"none", "", nil},
		{"container:" + containers[0].ID, "container:" + containers[0].ID, []string{"KILL"}},
	} {
		got := containers[i].HostConfig
		added := make([]string, 0, len(got.CapAdd))
		for _, name := range got.CapAdd {
			added = append(added, strings.TrimPrefix(name, "CAP_"))
		}
		if string(got.NetworkMode) != want.network || string(got.PidMode) != want.pid || !slices.Equal(added, want.added) {
			t.Errorf("container %d: network %s, processes %s, capabilities %v, want %+v", i, got.NetworkMode, got.PidMode, added, want)
		}
		if got.Privileged || !got.ReadonlyRootfs || !got.AutoRemove || !slices.Equal(got.CapDrop, []string{"ALL"}) ||
			!slices.Contains(got.SecurityOpt, "no-new-privileges") || len(got.PortBindings) > 0 || got.Memory == 0 || got.PidsLimit == nil {
			t.Errorf("container %d is not confined: %+v", i, got)
		}
	}
}

// A server that does not get to listen is told apart by its exit and its last
// words, as any other.
func TestServerInContainerFails(t *testing.T) {
	e, relay, image := engine(t)
	t.Run("exits at once", func(t *testing.T) {
		p := run(t, t.Context(), e, relay, webSpec(image, catalog.StreamableHTTP, "-fail", "no licence"))
		_, err := upstream.Connect(t.Context(), p, upstream.Options{})
		var lost *upstream.LostError
		if !errors.As(err, &lost) {
			t.Errorf("Connect() = %v, want a lost connection", err)
		}
		<-p.Done()
		if p.Exit().Code != 3 || !strings.Contains(p.Stderr(), "no licence") {
			t.Errorf("Exit() = %v, Stderr() = %q, want code 3 and its words", p.Exit(), p.Stderr())
		}
	})
	t.Run("exits later", func(t *testing.T) {
		p := run(t, t.Context(), e, relay, webSpec(image, catalog.StreamableHTTP))
		s := converse(t, p, upstream.Options{})
		_, err := s.Call(t.Context(), "tools/call", []byte(`{"name":"exit"}`), nil)
		if err == nil {
			t.Error("a call that ends the server = nil, want an error")
		}
		select {
		case <-s.Done():
		case <-time.After(20 * time.Second):
			t.Fatal("the session goes on without its server")
		}
		<-p.Done()
		if p.Exit().Code != 4 || !strings.Contains(p.Stderr(), "asked to exit") || !strings.Contains(p.Stderr(), "listening on") {
			t.Errorf("Exit() = %v, Stderr() = %q, want code 4, its words and its stdout", p.Exit(), p.Stderr())
		}
	})
	t.Run("listens elsewhere", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		p := run(t, ctx, e, relay, webSpec(image, catalog.StreamableHTTP, "127.0.0.1:9090"))
		if _, err := upstream.Connect(ctx, p, upstream.Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Connect() = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
