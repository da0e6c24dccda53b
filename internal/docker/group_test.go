package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

// helper is the probe beside a server.
func helper(image sandbox.Image, name string, ready catalog.Ready, command ...string) sandbox.Helper {
	spec := dockertest.Spec(image, command...)
	spec.NoInput = true
	return sandbox.Helper{Name: name, Ready: ready, Spec: spec}
}

// standing lists the containers and networks of a state.
func standing(t *testing.T, c *client.Client, state string) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	ours := make(client.Filters).Add("label", "dockgate.state="+state)
	var found []string
	containers, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range containers.Items {
		found = append(found, "container "+item.Command)
	}
	networks, err := c.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range networks.Items {
		kind := "network"
		if item.Internal {
			kind = "internal network"
		}
		found = append(found, kind)
	}
	slices.Sort(found)
	return found
}

func stateOf(t *testing.T) owner.Options {
	t.Helper()
	dir := t.TempDir()
	return owner.Options{Options: reach.Options{ConfigDir: t.TempDir(), Host: os.Getenv("DOCKER_HOST")}, Dir: dir, State: "test-" + strings.ToLower(filepath.Base(filepath.Dir(dir)))}
}

func TestHelpers(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := stateOf(t)
	engine := dockertest.Connect(t, options)
	healthy := helper(image, "asked", catalog.ReadyHealthy, probe.Deaf)
	healthy.Health = &catalog.Health{Test: []string{"/probe", probe.Exit, "0"}}
	spec := dockertest.Spec(image, probe.Look)
	spec.Helpers = []sandbox.Helper{
		helper(image, "db", catalog.ReadyStarted, probe.Deaf),
		helper(image, "migrate", catalog.ReadyCompleted, probe.Look),
		healthy,
	}
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	var report probe.Report
	if err := json.NewDecoder(p).Decode(&report); err != nil {
		t.Fatal(err)
	}
	if len(report.Interfaces) != 2 || report.WritableRoot {
		t.Errorf("the server has the interfaces %v, want lo and one of the network", report.Interfaces)
	}
	if got := standing(t, c, options.State); !slices.Contains(got, "internal network") || len(got) < 3 {
		t.Errorf("the engine has %q, want the helpers and an internal network", got)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
	if got := standing(t, c, options.State); len(got) > 0 {
		t.Errorf("after Close the engine has %q, want nothing", got)
	}

	spec.Command, spec.Network = []string{probe.Echo}, catalog.NetworkFull
	if _, err := engine.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := standing(t, c, options.State); !slices.Contains(got, "network") {
		t.Errorf("the engine has %q, want a network that leads out", got)
	}
	if err := engine.Close(); err != nil {
		t.Errorf("Engine.Close() = %v", err)
	}
	if got := standing(t, c, options.State); len(got) > 0 {
		t.Errorf("after the engine's Close there is %q, want nothing", got)
	}
}

// Helpers are confined as servers are.
func TestHelpersAreConfined(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	engine := dockertest.Connect(t, stateOf(t))
	spec := dockertest.Spec(image, probe.Echo)
	spec.Helpers = []sandbox.Helper{helper(image, "db", catalog.ReadyStarted, probe.Deaf)}
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	running, err := engine.Running(t.Context())
	if err != nil || len(running) != 2 {
		t.Fatalf("Running() = %+v, %v, want two", running, err)
	}
	for _, r := range running {
		found, err := c.ContainerInspect(t.Context(), r.ID, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		host := found.Container.HostConfig
		if host.Privileged || !host.ReadonlyRootfs || !host.AutoRemove || !slices.Equal(host.CapDrop, []string{"ALL"}) || len(host.CapAdd) > 0 ||
			!slices.Contains(host.SecurityOpt, "no-new-privileges") || len(host.PortBindings) > 0 || host.Memory != spec.Limits.Memory ||
			len(found.Container.NetworkSettings.Networks) != 1 || len(host.DNS) != 1 || host.DNS[0].String() != "192.0.2.1" {
			t.Errorf("container %s is not confined: %+v", r.ID, host)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A helper that does not get ready fails the start, and nothing is left.
func TestHelpersFail(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := stateOf(t)
	engine := dockertest.Connect(t, options)
	gone := helper(image, "db", catalog.ReadyHealthy, probe.Exit, "4")
	gone.Health = &catalog.Health{Test: []string{"CMD-SHELL", "no shell here"}}
	missing := helper(image, "db", catalog.ReadyStarted, probe.Deaf)
	missing.Spec.Image.Pin.Digest = "sha256:" + strings.Repeat("0", 64)
	tests := []struct {
		name   string
		helper sandbox.Helper
		want   string
	}{
		{"does not complete", helper(image, "db", catalog.ReadyCompleted, probe.Exit, "3"), `its helper "db" exited with code 3: leaving`},
		{"exits", gone, `its helper "db" exited with code 4: leaving`},
		{"cannot be asked", helper(image, "db", catalog.ReadyHealthy, probe.Deaf), `its helper "db" has no health check`},
		{"has no image", missing, "no such image"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := dockertest.Spec(image, probe.Echo)
			tt.helper.Spec.Stop = time.Second
			spec.Helpers = []sandbox.Helper{helper(image, "first", catalog.ReadyStarted, probe.Deaf), tt.helper}
			_, err := engine.Start(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start() = %v, want %s", err, tt.want)
			}
			if got := standing(t, c, options.State); len(got) > 0 {
				t.Errorf("after a failed start the engine has %q, want nothing", got)
			}
		})
	}
	t.Run("the server has no image", func(t *testing.T) {
		spec := dockertest.Spec(image, probe.Echo)
		spec.Image.Pin = missing.Spec.Image.Pin
		spec.Helpers = []sandbox.Helper{helper(image, "first", catalog.ReadyStarted, probe.Deaf)}
		if _, err := engine.Start(t.Context(), spec); err == nil {
			t.Error("Start() = nil, want an error")
		}
		if got := standing(t, c, options.State); len(got) > 0 {
			t.Errorf("after a failed start the engine has %q, want nothing", got)
		}
	})
}

// A helper that is waited for when the time of the start ends fails it, and
// nothing is left.
func TestHelpersAreLate(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := stateOf(t)
	engine := dockertest.Connect(t, options)
	slow := helper(image, "slow", catalog.ReadyCompleted, probe.Deaf)
	never := helper(image, "never", catalog.ReadyHealthy, probe.Deaf)
	never.Health = &catalog.Health{Test: []string{"CMD-SHELL", "no shell here"}}
	for _, tt := range []struct {
		helper sandbox.Helper
		want   string
	}{
		{slow, `its helper "slow" has not completed in time`},
		{never, `its helper "never" is not healthy in time`},
	} {
		t.Run(tt.helper.Name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			spec := dockertest.Spec(image, probe.Echo)
			tt.helper.Spec.Stop, tt.helper.Spec.Server = time.Second, tt.helper.Name
			spec.Helpers = []sandbox.Helper{helper(image, "first", catalog.ReadyStarted, probe.Deaf), tt.helper}
			var waiting sync.WaitGroup
			waiting.Go(func() {
				// What it writes is kept from when its own start has ended.
				for line, err := range engine.Logs.Follow(ctx, tt.helper.Name, -1) {
					if line != "ready" || err != nil {
						t.Errorf("the helper says %q, %v, want that it is ready", line, err)
					}
					if tt.helper.Health != nil {
						checked(ctx, t, c, engine, tt.helper.Name)
					}
					end(context.DeadlineExceeded)
				}
			})
			_, err := engine.Start(ctx, spec)
			end(nil)
			waiting.Wait()
			var failed *docker.HelperError
			if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start() = %v, want a HelperError for the time: %s", err, tt.want)
			}
			if got := standing(t, c, options.State); len(got) > 0 {
				t.Errorf("after a failed start the engine has %q, want nothing", got)
			}
		})
	}
}

// checked waits until the engine has asked once whether the container of a
// server is healthy.
func checked(ctx context.Context, t *testing.T, c *client.Client, engine *docker.Engine, server string) {
	t.Helper()
	running, err := engine.Running(ctx)
	at := slices.IndexFunc(running, func(r owner.Container) bool { return r.Server == server })
	if err != nil || at < 0 {
		t.Errorf("Running() = %+v, %v, want one of %s", running, err, server)
		return
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		found, err := c.ContainerInspect(ctx, running[at].ID, client.ContainerInspectOptions{})
		if err != nil {
			t.Errorf("ContainerInspect() = %v", err)
			return
		}
		if health := found.Container.State.Health; health != nil && len(health.Log) > 0 {
			return
		}
		<-ticker.C
	}
}

// Without its helper a server ends, and says why.
func TestHelperEnds(t *testing.T) {
	_, image := dockertest.Probe(t)
	engine := dockertest.Connect(t, stateOf(t))
	spec := dockertest.Spec(image, probe.Echo)
	spec.Helpers = []sandbox.Helper{helper(image, "db", catalog.ReadyStarted, probe.Deaf)}
	p, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	running, err := engine.Running(t.Context())
	if err != nil || len(running) != 2 {
		t.Fatalf("Running() = %+v, %v, want two", running, err)
	}
	at := slices.IndexFunc(running, func(r owner.Container) bool { return r.ID != p.ID() })
	if err := engine.Stop(t.Context(), running[at].ID); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Exit().Reason; !strings.Contains(got, `its helper "db"`) {
		t.Errorf("Exit() = %q, want the helper's end", got)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// What a killed gateway leaves of a group goes with the next gateway, the
// network too.
func TestKilledGatewayWithHelpers(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	options := stateOf(t)
	spec := dockertest.Spec(image, probe.Stubborn)
	spec.Helpers = []sandbox.Helper{helper(image, "db", catalog.ReadyStarted, probe.Deaf)}
	id := dockertest.KilledGateway(t, options, spec)
	if got := standing(t, c, options.State); len(got) != 3 {
		t.Fatalf("the killed gateway has left %q, want two containers and a network", got)
	}
	swept, err := dockertest.Connect(t, options).Sweep(t.Context())
	if err != nil {
		t.Errorf("Sweep() = %v", err)
	}
	for _, kind := range []owner.Kind{owner.ContainerObject, owner.NetworkObject} {
		if !slices.ContainsFunc(swept, func(s owner.Swept) bool { return s.Kind == kind && s.Server == "probe" }) {
			t.Errorf("Sweep() = %+v, want a %s of %s", swept, kind, id)
		}
	}
	if got := standing(t, c, options.State); len(got) > 0 {
		t.Errorf("after the sweep the engine has %q, want nothing", got)
	}
}
