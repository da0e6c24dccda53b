package twin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/docker/twin"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

// model makes a container that is never started, as people start the gateway's.
func model(t *testing.T, c *client.Client, image sandbox.Image, binds ...string) string {
	t.Helper()
	created, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image.Pin.Digest, Cmd: []string{probe.Echo}, Env: []string{"PROXY=here", "TOKEN=secret"}},
		HostConfig: &container.HostConfig{
			Binds: binds, NetworkMode: "none", CapDrop: []string{"ALL"}, ReadonlyRootfs: true,
			SecurityOpt: []string{"no-new-privileges"}, Resources: container.Resources{Memory: 64 << 20},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	return created.ID
}

// twins returns an engine whose gateways are in containers, and their model.
func twins(t *testing.T, c *client.Client, image sandbox.Image) (*docker.Engine, owner.Options, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	options := owner.Options{
		Options: reach.Options{Host: os.Getenv("DOCKER_HOST"), ConfigDir: t.TempDir()},
		Dir:     dir, State: "test-" + filepath.Base(dir) + t.Name(),
	}
	return dockertest.Connect(t, options), options, model(t, c, image, dir+":"+dir)
}

// open takes a container as the model until the test ends.
func open(t *testing.T, o owner.Options, id string, variables ...string) (*twin.Twin, error) {
	t.Helper()
	model, err := twin.Open(t.Context(), o, id, variables)
	if err == nil {
		t.Cleanup(func() {
			if err := model.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return model, err
}

func TestTwin(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	engine, options, id := twins(t, c, image)
	gateway, err := open(t, options, id, "PROXY")
	if err != nil {
		t.Fatal(err)
	}
	starting, started := context.WithCancel(t.Context())
	defer started()
	ended, err := gateway.Start(starting, "/probe", probe.Deaf)
	if err != nil {
		t.Fatal(err)
	}
	gateways := func() []owner.Gateway {
		t.Helper()
		found, err := engine.Gateways(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := gateways()
	if len(found) != 1 || !found[0].Lives || found[0].State != "running" {
		t.Fatalf("Gateways() = %+v, want one that lives and runs", found)
	}
	if running, err := engine.Running(t.Context()); err != nil || len(running) > 0 {
		t.Errorf("Running() = %+v, %v, want no container of a server", running, err)
	}
	made, err := c.ContainerInspect(t.Context(), found[0].ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := made.Container, map[string]any{
		"image": image.Pin.Digest, "restart": container.RestartPolicyDisabled, "remove": true, "memory": int64(64 << 20), "pids": int64(512),
		"network": container.NetworkMode("none"), "binds": []string{options.Dir + ":" + options.Dir}, "drop": []string{"ALL"}, "read only": true,
		"security": []string{"no-new-privileges"}, "args": []string{probe.Deaf, "--owner", found[0].Owner},
	}
	host := got.HostConfig
	if diff := cmp.Diff(want, map[string]any{
		"image": got.Image, "restart": host.RestartPolicy.Name, "remove": host.AutoRemove, "memory": host.Memory, "pids": *host.PidsLimit,
		"network": host.NetworkMode, "binds": host.Binds, "drop": host.CapDrop, "read only": host.ReadonlyRootfs,
		"security": host.SecurityOpt, "args": got.Args,
	}); diff != "" {
		t.Errorf("the gateway's container (-want +got):\n%s", diff)
	}
	if env := got.Config.Env; !slices.Contains(env, "PROXY=here") || slices.Contains(env, "TOKEN=secret") {
		t.Errorf("its environment = %q, want the variables that were named alone", env)
	}

	// Whoever started it protects it until it does so by itself.
	release, err := owner.Hold(options.Dir, found[0].Owner)
	if err != nil {
		t.Fatal(err)
	}
	started()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Start, ended = %v, want that it is not watched any more", err)
	}
	if swept, err := engine.Sweep(t.Context()); err != nil || len(dockertest.Of(options.State, swept)) > 0 || len(gateways()) != 1 {
		t.Errorf("Sweep() = %+v, %v, want it to stay: it lives", swept, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	left, err := engine.Leftovers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leftover := func(l owner.Leftover) bool {
		return l.Kind == owner.GatewayObject && l.ID == found[0].ID && l.Standing == owner.Gone
	}
	if now := gateways(); !slices.ContainsFunc(left, leftover) || len(now) != 1 || now[0].Lives {
		t.Errorf("Leftovers() = %+v, Gateways() = %+v, want it in both, as one that has ended", left, now)
	}
	if _, err := engine.Sweep(t.Context()); err != nil || dockertest.Exists(t, c, found[0].ID) {
		t.Errorf("Sweep() = %v, want what a gateway has left to go", err)
	}
	if _, err := owner.Hold(options.Dir, "../x"); err == nil {
		t.Error("Hold(../x) = nil, want an error")
	}
}

// What ends at once says how, and leaves nothing.
func TestTwinEnds(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	_, options, id := twins(t, c, image)
	gateway, err := open(t, options, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		program string
		code    int // 0 is that it does not start
	}{{"/probe", 3}, {"/nowhere", 0}} {
		ended, err := gateway.Start(t.Context(), tt.program, probe.Exit, "3")
		if err == nil {
			err = <-ended
		}
		var exit *twin.EndError
		if err == nil || errors.As(err, &exit) != (tt.code > 0) || exit != nil && exit.ExitCode() != tt.code {
			t.Errorf("Start(%s) = %v, want it to end with code %d", tt.program, err, tt.code)
		}
		list, err := c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "dockgate.state="+options.State)})
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range list.Items {
			dockertest.Goes(t, c, left.ID)
		}
	}
}

// Containers of the same kind share a gateway, and no others.
func TestTwinKey(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	_, options, id := twins(t, c, image)
	state, other := options.Dir+":"+options.Dir, t.TempDir()
	key := func(id string, variables ...string) string {
		t.Helper()
		gateway, err := open(t, options, id, variables...)
		if err != nil {
			t.Fatal(err)
		}
		return gateway.Key
	}
	first := key(id)
	both := []string{state, other + ":/x:ro"}
	more := key(model(t, c, image, both...))
	slices.Reverse(both)
	for name, same := range map[string]bool{
		key(model(t, c, image, state)):   true,
		more:                             false,
		key(id, "PROXY"):                 false,
		key(model(t, c, image, both...)): false,
	} {
		if got := name == first; got != same {
			t.Errorf("key %s, the first's is %s, want it the same: %v", name, first, same)
		}
	}
	if again := key(model(t, c, image, both...)); again != more {
		t.Errorf("key = %s with the mounts in another order, want %s", again, more)
	}
}

func TestTwinRefuses(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	_, options, _ := twins(t, c, image)
	var stranger *twin.StrangerError
	for _, id := range []string{"", strings.Repeat("0", 64)} {
		if _, err := open(t, options, id); !errors.As(err, &stranger) {
			t.Errorf("Twin(%q) = %v, want a StrangerError", id, err)
		}
	}
	var fleeting *twin.FleetingError
	for _, bind := range []string{options.Dir, "/x"} { // a volume without a name, and none
		binds := []string{}
		volumes := map[string]struct{}{bind: {}}
		created, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config:     &container.Config{Image: image.Pin.Digest, Cmd: []string{probe.Echo}, Volumes: volumes},
			HostConfig: &container.HostConfig{Binds: binds},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = c.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
		if _, err := open(t, options, created.ID); !errors.As(err, &fleeting) {
			t.Errorf("Twin of a container with a volume at %s = %v, want a FleetingError", bind, err)
		}
	}
}
