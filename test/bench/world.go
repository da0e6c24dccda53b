package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/engine"
)

// A world is what a run of the benchmark makes: state folders, and containers
// with its label. Nothing of it outlives close but an image.
type world struct {
	id            string
	dir           string
	gateway       string
	engine        *client.Client
	engineVersion string
	// images are what was seen of each, by reference.
	images map[string]image
	states map[string]*state
}

func newWorld(ctx context.Context, gateway string) (_ *world, err error) {
	program, err := filepath.Abs(gateway)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the gateway is not there, run make build: %w", err)
	}
	w := &world{id: strings.ToLower(rand.Text()[:12]), gateway: program, images: map[string]image{}, states: map[string]*state{}}
	if w.engine, err = engine.Connect(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(context.WithoutCancel(ctx)))
		}
	}()
	version, err := w.engine.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return nil, err
	}
	w.engineVersion = version.Version
	if err := w.hasDemo(ctx); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "dockgate-bench-"); err != nil {
		return nil, err
	}
	return w, w.buildSized(ctx)
}

// close removes what the run has left: nothing, unless it failed.
func (w *world) close(ctx context.Context) error {
	found, err := w.engine.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", label+"="+w.id),
	})
	for _, c := range found.Items {
		_, removed := w.engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, removed)
	}
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return errors.Join(err, w.engine.Close())
}

// state returns the state folder of a name, made of entries the first time.
func (w *world) state(ctx context.Context, name string, entries []entry) (*state, error) {
	if s, ok := w.states[name]; ok {
		return s, nil
	}
	s, err := w.makeState(ctx, name, entries)
	if err != nil {
		return nil, err
	}
	w.states[name] = s
	return s, nil
}

// thirty is the state that most is measured with.
func (w *world) thirty(ctx context.Context) (*state, error) {
	return w.state(ctx, "servers-30", serverEntries(30))
}

// tenThousand is the state with 10,000 tools.
func (w *world) tenThousand(ctx context.Context) (*state, error) {
	return w.state(ctx, "tools-10000", wideEntries(100, 100))
}

// serve starts a gateway on a state folder. It never asks: what is not
// approved there would fail, and not be approved unseen.
func (w *world) serve(ctx context.Context, s *state) (*process, error) {
	return spawn(ctx, environment(), w.gateway, "serve", "--state", s.dir, "--config", s.config(), "--catalog", s.catalog, "--approve", "pinned")
}

// environment is that of a program that is measured: its own settings count,
// not those of whoever measures.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "DOCKGATE_") || name == "GOGC" || name == "GOMEMLIMIT" || name == "GODEBUG"
	})
}

// connect starts a gateway and opens the conversation with it.
func (w *world) connect(ctx context.Context, s *state) (*process, error) {
	p, err := w.serve(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := p.Initialize(); err != nil {
		return nil, errors.Join(p.explain(err), p.close())
	}
	return p, nil
}
