package owner_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestKilledGateway(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := owner.Options{Options: reach.Options{Host: os.Getenv("DOCKER_HOST"), ConfigDir: t.TempDir()}, Dir: t.TempDir(), State: "test-" + filepath.Base(t.TempDir()) + t.Name()}
	t.Run("a good server goes by itself", func(t *testing.T) {
		dockertest.Goes(t, c, dockertest.KilledGateway(t, options, dockertest.Spec(image, probe.Echo)))
	})
	t.Run("a stubborn one goes with the next gateway", func(t *testing.T) {
		id := dockertest.KilledGateway(t, options, dockertest.Spec(image, probe.Stubborn))
		if !dockertest.Exists(t, c, id) {
			t.Fatal("the stubborn container is gone before the sweep")
		}
		stranger := dockertest.Connect(t, owner.Options{})
		if _, err := stranger.Sweep(t.Context()); err != nil {
			t.Errorf("Sweep() of a stranger = %v", err)
		}
		if !dockertest.Exists(t, c, id) {
			t.Error("a gateway of another state folder has removed it")
		}
		swept, err := dockertest.Connect(t, options).Sweep(t.Context())
		if err != nil {
			t.Errorf("Sweep() = %v", err)
		}
		if !slices.ContainsFunc(swept, func(s owner.Swept) bool { return s.ID == id && s.Server == "probe" }) {
			t.Errorf("Sweep() = %+v, want container %s", swept, id)
		}
		if dockertest.Exists(t, c, id) {
			t.Errorf("container %s is left", id)
		}
	})
	entries, err := os.ReadDir(filepath.Join(options.Dir, "owners"))
	if err != nil || len(entries) > 0 {
		t.Errorf("lock files = %v, %v, want none", entries, err)
	}
}

func TestSweepSparesTheLiving(t *testing.T) {
	_, image := dockertest.Probe(t)
	options := owner.Options{Dir: t.TempDir(), State: "test-" + t.Name() + filepath.Base(t.TempDir())}
	one, other := dockertest.Connect(t, options), dockertest.Connect(t, options)
	p, err := one.Start(t.Context(), dockertest.Spec(image, probe.Echo))
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []*docker.Engine{one, other} {
		if swept, err := engine.Sweep(t.Context()); err != nil || len(dockertest.Of(options.State, swept)) > 0 {
			t.Errorf("Sweep() = %+v, %v, want nothing", swept, err)
		}
	}
	if _, err := io.WriteString(p, "alive\n"); err != nil {
		t.Errorf("Write() = %v", err)
	}
	if got, err := bufio.NewReader(p).ReadString('\n'); err != nil || got != "alive\n" {
		t.Errorf("Read() = %q, %v", got, err)
	}
	running, err := other.Running(t.Context())
	if err != nil || len(running) != 1 || running[0].ID != p.ID() {
		t.Fatalf("Running() of the other gateway = %+v, %v, want container %s", running, err, p.ID())
	}
	// What one gateway runs, another may be told to stop.
	if err := other.Stop(t.Context(), p.ID()); err != nil {
		t.Errorf("Stop() = %v", err)
	}
	<-p.Done()
	if got := p.Exit(); !got.Stopped {
		t.Errorf("Exit() = %+v, want that it was stopped from outside", got)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := other.Stop(t.Context(), p.ID()); !errors.Is(err, owner.ErrNotOurs) {
		t.Errorf("Stop() again = %v, want ErrNotOurs", err)
	}
}

func TestSweepByLabels(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	dir := t.TempDir()
	state := "test-" + strings.ToLower(filepath.Base(dir)) + t.Name()
	engine := dockertest.Connect(t, owner.Options{Dir: dir, State: state})
	// Started once, so that it has an owner of its own.
	p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Exit, "0"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := engine.Running(t.Context())
	if err != nil || len(running) != 1 {
		t.Fatalf("Running() = %+v, %v, want one", running, err)
	}
	own := running[0].Owner
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
	past, future := in(-time.Hour), in(time.Hour)
	tests := []struct {
		name                  string
		state, owner, expires string
		stays                 bool
	}{
		{"owner is gone", state, "0123456789abcdef", future, false},
		{"own stray", state, own, future, false},
		{"owner is no name", state, "../../etc/passwd", future, true},
		{"other state", state + "-other", "0123456789abcdef", future, true},
		{"other state, expired", state + "-other", "0123456789abcdef", past, false},
		{"other state, expired by this clock", state + "-other", "0123456789abcdef", in(-time.Minute), true},
		{"other state, no date", state + "-other", "0123456789abcdef", "soon", true},
	}
	ids := make(map[string]string)
	for _, tt := range tests {
		labels := map[string]string{
			"dockgate.state": tt.state, "dockgate.owner": tt.owner, "dockgate.server": "x", "dockgate.expires": tt.expires,
		}
		created, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: image.Pin.Digest, Cmd: []string{"echo"}, Labels: labels},
		})
		if err != nil {
			t.Fatal(err)
		}
		ids[tt.name] = created.ID
		t.Cleanup(func() {
			_, _ = c.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
	}
	labels := map[string]string{
		"dockgate.state": state, "dockgate.owner": "0123456789abcdef", "dockgate.server": "x", "dockgate.expires": future,
	}
	network, err := c.NetworkCreate(t.Context(), state, client.NetworkCreateOptions{Driver: "bridge", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: state, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	swept, err := engine.Sweep(t.Context())
	if err != nil {
		t.Errorf("Sweep() = %v", err)
	}
	for _, tt := range tests {
		if got := dockertest.Exists(t, c, ids[tt.name]); got != tt.stays {
			t.Errorf("%s: exists after the sweep = %v, want %v", tt.name, got, tt.stays)
		}
	}
	for _, want := range []owner.Swept{
		{Kind: owner.ContainerObject, ID: ids["own stray"], Server: "x", Owner: own, State: state},
		{Kind: owner.NetworkObject, ID: network.ID, Server: "x", Owner: "0123456789abcdef", State: state},
		{Kind: owner.VolumeObject, ID: state, Server: "x", Owner: "0123456789abcdef", State: state},
	} {
		if !slices.Contains(swept, want) {
			t.Errorf("Sweep() = %+v, want %+v among them", swept, want)
		}
	}
	if again, err := engine.Sweep(t.Context()); err != nil || len(dockertest.Of(state, again)) > 0 {
		t.Errorf("Sweep() again = %+v, %v, want nothing", again, err)
	}
}

func TestSweepRemovesOldLocks(t *testing.T) {
	dockertest.Require(t)
	dir := t.TempDir()
	engine := dockertest.Connect(t, owner.Options{Dir: dir})
	if err := os.MkdirAll(filepath.Join(dir, "owners"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"abcdef", "README.txt"} {
		if err := os.WriteFile(filepath.Join(dir, "owners", file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := engine.Sweep(t.Context()); err != nil {
		t.Errorf("Sweep() = %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "owners"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{"README.txt"}, names); diff != "" {
		t.Errorf("lock files (-want +got):\n%s", diff)
	}
}

func TestKeep(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := owner.Options{Options: reach.Options{Host: os.Getenv("DOCKER_HOST"), ConfigDir: t.TempDir()}, Dir: t.TempDir(), State: "test-" + filepath.Base(t.TempDir()) + t.Name()}
	id := dockertest.KilledGateway(t, options, dockertest.Spec(image, probe.Stubborn))
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- dockertest.Connect(t, options).Keep(ctx) }()
	dockertest.Goes(t, c, id)
	cancel()
	if err := <-kept; err != nil {
		t.Errorf("Keep() = %v, want nil when its context ends", err)
	}
}

func TestLeftovers(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	dir := t.TempDir()
	state := "test-" + strings.ToLower(filepath.Base(dir)) + t.Name()
	engine := dockertest.Connect(t, owner.Options{Dir: dir, State: state})
	p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Echo))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now().Add(-time.Minute)
	tests := []struct {
		name, state, owner string
		expires            time.Duration
		want               owner.Standing
	}{
		{"gone", state, "0123456789abcdef", time.Hour, owner.Gone},
		{"other", state + "-other", "0123456789abcdef", time.Hour, owner.Unknown},
	}
	made := make(map[string]string) // volumes by their names
	for _, tt := range tests {
		name := state + "-" + tt.name
		labels := map[string]string{
			"dockgate.state": tt.state, "dockgate.owner": tt.owner, "dockgate.server": "x",
			"dockgate.expires": time.Now().Add(tt.expires).Format(time.RFC3339),
		}
		if _, err := c.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: name, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = c.VolumeRemove(context.WithoutCancel(t.Context()), name, client.VolumeRemoveOptions{})
		})
		made[name] = tt.name
	}
	found := make(map[string]owner.Leftover)
	leftovers, err := engine.Leftovers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range leftovers {
		if left.ID == p.ID() {
			t.Errorf("the container of a gateway that lives is a leftover: %+v", left)
		}
		if name, ok := made[left.ID]; ok {
			found[name] = left
		}
	}
	for _, tt := range tests {
		left, ok := found[tt.name]
		if !ok {
			t.Errorf("%s is no leftover", tt.name)
			continue
		}
		if left.Standing != tt.want || left.Server != "x" || left.Created.Before(begun) || !left.Expires.After(begun) {
			t.Errorf("%s = %+v, want a volume of x just made, and its owner %s", tt.name, left, tt.want)
		}
	}
	removed, err := engine.Discard(t.Context(), []owner.Leftover{found["other"], found["gone"]})
	if err != nil || len(removed) != 2 {
		t.Errorf("Discard() = %+v, %v, want both", removed, err)
	}
	again, err := engine.Discard(t.Context(), removed)
	if err != nil || len(again) != 2 {
		t.Errorf("Discard() again = %+v, %v, want both, which are gone", again, err)
	}
	volumes, err := c.VolumeList(t.Context(), client.VolumeListOptions{Filters: make(client.Filters).Add("name", state)})
	if err != nil || len(volumes.Items) > 0 {
		t.Errorf("volumes = %+v, %v, want none", volumes.Items, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// Gateways of other state folders run for as long as they are used; one that
// never ran expires as everything does.
func TestSweepOfForeignGateways(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	engine := dockertest.Connect(t, owner.Options{Dir: t.TempDir(), State: "test-" + filepath.Base(t.TempDir()) + t.Name()})
	create := func() string {
		created, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: image.Pin.Digest, Cmd: []string{probe.Deaf}, Labels: map[string]string{
				"dockgate.state": t.Name() + filepath.Base(t.TempDir()), "dockgate.owner": "0123456789abcdef", "dockgate.role": "gateway",
				"dockgate.expires": time.Now().Add(-time.Hour).Format(time.RFC3339),
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = c.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true})
		})
		return created.ID
	}
	ids := map[bool]string{false: create(), true: create()}
	for {
		_, err := c.ContainerStart(t.Context(), ids[true], client.ContainerStartOptions{})
		if err == nil {
			break
		}
		if !cerrdefs.IsNotFound(err) {
			t.Fatal(err)
		}
		ids[true] = create() // another gateway of this engine was faster
	}
	if _, err := engine.Sweep(t.Context()); err != nil {
		t.Errorf("Sweep() = %v", err)
	}
	for runs, id := range ids {
		if got := dockertest.Exists(t, c, id); got != runs {
			t.Errorf("an expired gateway that runs: %v; exists after the sweep: %v", runs, got)
		}
	}
}
