// Package dockertest gives tests of the packages beside it an engine, a small
// program in an image, and gateways that are killed.
//
// A test that needs an engine is skipped where none answers, and fails if
// TEST_ENGINE is "require". Every engine has a state folder of its own, so that
// tests of several packages may use one Docker engine at a time.
package dockertest

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/owner"
)

// Connect returns an engine with a state folder of its own.
func Connect(t *testing.T, options owner.Options) *docker.Engine {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if options.State == "" {
		options.State = "test-" + strings.ToLower(rand.Text())
	}
	if options.ConfigDir == "" {
		options.ConfigDir = t.TempDir()
	}
	if options.Host == "" && options.Context == "" {
		options.Host = os.Getenv("DOCKER_HOST")
	}
	engine, err := docker.Connect(t.Context(), options)
	if err != nil {
		t.Fatalf("Connect(%+v) = %v", options, err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("Engine.Close() = %v", err)
		}
	})
	return engine
}

// Require skips the test if no engine answers, or fails it if one is wanted.
func Require(t *testing.T) *docker.Engine {
	t.Helper()
	engine := Connect(t, owner.Options{})
	if _, err := engine.Info(t.Context()); err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("no engine answers: %v", err)
		}
		t.Skipf("no engine answers: %v", err)
	}
	return engine
}

// API returns a client of the engine under test, for what the product does not do.
func API(t *testing.T) *client.Client {
	t.Helper()
	options := []client.Opt{}
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		options = append(options, client.WithHost(host))
	}
	c, err := client.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Of returns what a sweep has removed of one state folder. Of others it may have
// removed what tests of other packages have left there to expire.
func Of(state string, swept []owner.Swept) []owner.Swept {
	return slices.DeleteFunc(slices.Clone(swept), func(s owner.Swept) bool { return s.State != state })
}

// Left returns what names the containers that an engine has for its state
// folder.
func Left(engine *docker.Engine) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		running, err := engine.Running(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, c := range running {
			names = append(names, c.Name+" "+c.State)
		}
		return names, nil
	}
}
