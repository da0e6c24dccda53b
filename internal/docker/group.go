package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const (
	// askEvery is the longest pause between two questions whether a helper
	// works: a start waits for the answer.
	askEvery = time.Second
	// asked is how often a helper may say that it does not work before the
	// engine gives it up. It is the start's own limit that ends the waiting.
	asked = 10_000
	// lookEvery is the pause between two looks at what the engine was told.
	lookEvery = 100 * time.Millisecond
)

// A place is where a container stands: alone if it is the zero place, else on a
// network that it shares.
type place struct {
	network string
	// helper is nil for the server.
	helper *sandbox.Helper
}

// settle puts the place into what the engine is asked to create.
func (p place) settle(options *client.ContainerCreateOptions) {
	if p.network == "" {
		return
	}
	if options.HostConfig.NetworkMode == "none" {
		// Older engines pass questions for other names on to a resolver of the
		// host's loopback, also from networks that lead nowhere (CVE-2024-29018).
		// One that is named is asked from inside, where none can be reached.
		options.HostConfig.DNS = []netip.Addr{netip.AddrFrom4(nowhere())}
	}
	options.HostConfig.NetworkMode = container.NetworkMode(p.network)
	if p.helper == nil {
		return
	}
	options.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		p.network: {Aliases: []string{p.helper.Name}},
	}}
	if p.helper.Ready != catalog.ReadyHealthy {
		return
	}
	check := &container.HealthConfig{Interval: askEvery, Retries: asked} // and the image's own test
	if h := p.helper.Health; h != nil {
		check.Test, check.Timeout, check.StartPeriod = h.Test, h.Timeout, h.Start
		if h.Test[0] != "CMD-SHELL" {
			check.Test = append([]string{"CMD"}, h.Test...)
		}
		if h.Interval > 0 {
			check.Interval = min(h.Interval, askEvery)
		}
	}
	options.Config.Healthcheck = check
}

// nowhere is an address that documentation has for itself (RFC 5737).
func nowhere() [4]byte { return [4]byte{192, 0, 2, 1} }

// A group is a server with the containers beside it and their network. It ends
// as one: where a helper ends by itself, so does the server.
type group struct {
	sandbox.Process // the server's
	engine          *Engine
	name            string // of the network
	helpers         []member
	lost            atomic.Pointer[sandbox.Exit] // of the helper that ended first
	ended           chan struct{}                // closed by Close
	running         sync.WaitGroup
	closing         sync.Once
	err             error
}

type member struct {
	sandbox.Helper
	process sandbox.Process
}

// startGroup starts the helpers of a Spec one after the other, each when the
// one before is ready, and then its server.
func (e *Engine) startGroup(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	by, end, err := e.books.Begin()
	if err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	defer end()
	g := &group{engine: e, name: "dockgate-" + spec.Server + "-" + strings.ToLower(rand.Text()[:10]), ended: make(chan struct{})}
	if err := g.start(ctx, by, spec); err != nil {
		return nil, errors.Join(err, g.remove(ctx))
	}
	e.mu.Lock()
	e.groups[g] = struct{}{}
	e.mu.Unlock()
	for _, m := range g.helpers {
		if m.Ready != catalog.ReadyCompleted {
			g.running.Go(func() { g.watch(m) })
		}
	}
	return g, nil
}

func (g *group) start(ctx context.Context, by string, spec sandbox.Spec) error {
	if err := ctx.Err(); err != nil {
		return &StartError{Server: spec.Server, Err: context.Cause(ctx)}
	}
	lasting, cancel := owner.Outlive(ctx)
	defer cancel()
	_, err := g.engine.client.NetworkCreate(lasting, g.name, client.NetworkCreateOptions{
		Driver: "bridge", Internal: spec.Network == catalog.NetworkNone, Labels: g.engine.books.Labels(by, spec.Server),
	})
	if err != nil {
		return g.engine.startError(spec.Server, spec.Image.Ref, err)
	}
	for _, h := range spec.Helpers {
		p, err := g.engine.startOne(ctx, h.Spec, place{g.name, &h})
		if err != nil {
			return err
		}
		g.helpers = append(g.helpers, member{h, p})
		if err := g.await(ctx, g.helpers[len(g.helpers)-1]); err != nil {
			return err
		}
	}
	g.Process, err = g.engine.startOne(ctx, spec, place{network: g.name})
	return err
}

// await waits until a helper is what its Ready says.
func (g *group) await(ctx context.Context, m member) error {
	switch m.Ready {
	case catalog.ReadyStarted:
		return nil
	case catalog.ReadyCompleted:
		select {
		case <-m.process.Done():
			if m.process.Exit() != (sandbox.Exit{}) {
				return m.failure()
			}
			return nil
		case <-ctx.Done():
			return &HelperError{m.Spec.Server, m.Name, "has not completed in time", context.Cause(ctx)}
		}
	case catalog.ReadyHealthy:
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		found, err := g.engine.client.ContainerInspect(ctx, m.process.ID(), client.ContainerInspectOptions{})
		switch {
		case err != nil && !cerrdefs.IsNotFound(err) && ctx.Err() == nil:
			return g.engine.startError(m.Spec.Server, m.Spec.Image.Ref, err)
		case err == nil && found.Container.State != nil && found.Container.State.Running:
			health := found.Container.State.Health
			if health == nil || health.Status == container.NoHealthcheck {
				return &HelperError{m.Spec.Server, m.Name, "has no health check, and is to be waited for until it is healthy", nil}
			}
			if health.Status == container.Healthy {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-m.process.Done():
			return m.failure()
		case <-ctx.Done():
			return &HelperError{m.Spec.Server, m.Name, "is not healthy in time", context.Cause(ctx)}
		}
	}
}

// failure says how a helper has exited.
func (m member) failure() error {
	return &HelperError{m.Spec.Server, m.Name, m.last(), nil}
}

func (m member) last() string {
	said := m.process.Exit().String()
	if last := strings.TrimSpace(m.process.Stderr()); last != "" {
		said += ": " + last
	}
	return said
}

// watch ends the server when a helper has ended: without it the server's calls
// would wait for what does not answer any more.
func (g *group) watch(m member) {
	select {
	case <-m.process.Done():
		g.lost.CompareAndSwap(nil, &sandbox.Exit{
			Reason:  fmt.Sprintf("its helper %q %s", m.Name, m.last()),
			Stopped: m.process.Exit().Stopped,
		})
		if err := g.Process.Close(); err != nil {
			g.engine.log.Warn("server not stopped after its helper", "server", m.Spec.Server, "err", err)
		}
	case <-g.ended:
	case <-g.Done():
	}
}

// Exit is the server's, or that of the helper without which it was stopped.
func (g *group) Exit() sandbox.Exit {
	if exit := g.lost.Load(); exit != nil {
		return *exit
	}
	return g.Process.Exit()
}

// Close stops the server, then the helpers in the reverse order of their start,
// and removes the network.
func (g *group) Close() error {
	g.closing.Do(func() {
		close(g.ended)
		err := g.Process.Close()
		g.running.Wait()
		g.err = errors.Join(err, g.remove(context.Background()))
		g.engine.mu.Lock()
		delete(g.engine.groups, g)
		g.engine.mu.Unlock()
	})
	return g.err
}

// remove stops the helpers and removes the network, if there is one.
func (g *group) remove(ctx context.Context) error {
	var errs []error
	for _, m := range slices.Backward(g.helpers) {
		errs = append(errs, m.process.Close())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), owner.UndoTime)
	defer cancel()
	if _, err := g.engine.client.NetworkRemove(ctx, g.name, client.NetworkRemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) {
		errs = append(errs, fmt.Errorf("remove network %s: %w", g.name, g.engine.Explain(err)))
	}
	return errors.Join(errs...)
}
