package owner_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestOpenRefuses(t *testing.T) {
	for _, o := range []owner.Options{{}, {State: "test"}, {Dir: t.TempDir()}} {
		o.Options = reach.Options{Host: "unix:///run/x.sock"}
		if _, err := owner.Open(o); err == nil {
			t.Errorf("Open(%+v) = nil, want an error: there is no state folder", o)
		}
	}
}

// A sweep of the gateway itself spares what is being made and what is in the
// books, and removes what was struck out of them and is still there.
func TestSweepGoesByTheBooks(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	books, err := owner.Open(owner.Options{
		Options: reach.Options{Host: os.Getenv("DOCKER_HOST"), ConfigDir: t.TempDir()},
		State:   "test-" + strings.ToLower(t.Name()) + t.TempDir(), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := books.API.Close(); err != nil {
			t.Error(err)
		}
	})
	id, end, err := books.Begin()
	if err != nil {
		t.Fatal(err)
	}
	created, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image.Pin.Digest, Cmd: []string{probe.Echo}, Labels: books.Labels(id, "x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = c.ContainerRemove(context.WithoutCancel(t.Context()), created.ID, client.ContainerRemoveOptions{Force: true})
	})
	for _, step := range []struct {
		name  string
		do    func()
		swept bool
	}{
		{"begun", func() {}, false},
		{"entered", func() { books.Enter(created.ID); end() }, false},
		{"struck", func() { books.Strike(created.ID) }, true},
	} {
		step.do()
		swept, err := books.Objects().Sweep(t.Context())
		if err != nil {
			t.Errorf("Sweep() once it is %s: %v", step.name, err)
		}
		if got := slices.ContainsFunc(swept, func(s owner.Swept) bool { return s.ID == created.ID }); got != step.swept {
			t.Errorf("Sweep() once it is %s removes it: %v, want %v", step.name, got, step.swept)
		}
	}
	books.End()
	if _, _, err := books.Begin(); err == nil {
		t.Error("Begin() after End = nil, want an error")
	}
	if err := books.Release(); err != nil {
		t.Errorf("Release() = %v", err)
	}
}
