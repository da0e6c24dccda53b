package docker_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

// users starts a container as a user would, without any label of ours, and
// returns its name.
func users(t *testing.T) string {
	t.Helper()
	_, pin := dockertest.Probe(t)
	api := dockertest.API(t)
	name := "dockgate-test-users-" + strings.ToLower(rand.Text()[:8])
	created, err := api.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name:       name,
		Config:     &container.Config{Image: pin.Pin.Digest, Cmd: []string{probe.Stubborn}, OpenStdin: true},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := api.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.ContainerStart(t.Context(), created.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// A process in a container of the user speaks over its stdio, says how it
// ended, and leaves the container alone.
func TestExec(t *testing.T) {
	engine := dockertest.Require(t)
	name := users(t)
	image, err := engine.Inside(t.Context(), name)
	if err != nil {
		t.Fatalf("Inside(%s) = %v", name, err)
	}
	if _, pin := dockertest.Probe(t); image.Pin.Digest != pin.Pin.Digest {
		t.Errorf("Inside(%s) is of %s, want %s", name, image.Pin.Digest, pin.Pin.Digest)
	}
	spec := func(command ...string) sandbox.Spec {
		return sandbox.Spec{Server: "inside", Exec: name, Image: image, Entrypoint: []string{"/probe"}, Command: command, Stop: time.Hour}
	}
	p, err := engine.Start(t.Context(), spec(probe.Echo))
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	if _, err := io.WriteString(p, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(p).ReadString('\n'); err != nil || got != "hello\n" {
		t.Errorf("the process says %q, %v, want hello", got, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	<-p.Done()
	if got := p.Exit(); got != (sandbox.Exit{}) {
		t.Errorf("Exit() = %v, want code 0", got)
	}
	if _, err := engine.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := dockertest.API(t).ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
	if err != nil || !found.Container.State.Running {
		t.Errorf("the user's container does not run any more: %v", err)
	}

	var failed *docker.StartError
	if _, err := engine.Start(t.Context(), sandbox.Spec{Server: "inside", Exec: name + "-not", Command: []string{"/probe"}}); !errors.As(err, &failed) || !errors.Is(err, docker.ErrNotRunning) {
		t.Errorf("Start() in a container that is not there = %v, want ErrNotRunning", err)
	}
	if _, err := engine.Inside(t.Context(), name+"-not"); !errors.Is(err, docker.ErrNotRunning) {
		t.Errorf("Inside() a container that is not there = %v, want ErrNotRunning", err)
	}
	q, err := engine.Start(t.Context(), sandbox.Spec{Server: "inside", Exec: name, Command: []string{"/there-is-none"}})
	if err == nil { // engines differ in when they say so
		<-q.Done()
		if q.Exit().Code == 0 {
			t.Error("a command that is not there ended with code 0")
		}
		_ = q.Close()
	}
}
