// Package docker runs a [sandbox.Spec] on a Docker engine: it creates, joins and
// stops containers, with the helpers beside them and in containers that the user
// runs.
//
// It decides nothing about rights: a Spec is run as it stands, by digest or
// image id and never by tag, and what every container gets on top (no
// capabilities, no new privileges, a read-only root, an init process, no logs
// kept by the engine) is the same for all. It refuses networks that it cannot
// enforce.
//
// It guarantees that nothing is left: if Start fails it undoes what it made;
// [Engine.Close] stops what runs; and what outlives its gateway is removed by
// [owner.Objects.Sweep] of another. The lock that shows that a gateway lives is
// taken before its first container is created.
//
// The packages below are its parts: reach is the way to an engine; owner knows
// whose each object there is, and sweeps; pull finds images, and install makes
// them of packages; logfile keeps what servers write to stderr; stream takes an
// engine's output apart. twin uses them for gateways in containers. None of them
// imports this one.
package docker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/install"
	"github.com/dockgate/dockgate/internal/docker/logfile"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// An Engine is one Docker engine, with what gateways have made there and the
// images that it has or makes. All methods may be called from any goroutine.
type Engine struct {
	*reach.Engine
	*owner.Objects
	*pull.Images
	*install.Packages
	// Logs are what servers have written to stderr.
	Logs *logfile.Folder

	client *client.Client
	log    *slog.Logger
	books  *owner.Books
	ends   *endWatch

	mu sync.Mutex
	// live has every process between its start and its removal, by its id.
	live map[string]sandbox.Process
	// groups has every server with helpers between its start and its removal.
	groups   map[*group]struct{}
	closing  sync.Once
	closeErr error
}

// Connect returns the engine that the options name. It makes no connection:
// an engine that is down is a [*reach.EngineError] of the first call that needs
// it. It fails only if the options, the Docker configuration or the
// certificates cannot be used.
func Connect(_ context.Context, o owner.Options) (*Engine, error) {
	books, err := owner.Open(o)
	if err != nil {
		return nil, err
	}
	images := pull.New(books.Conn, o.ConfigDir, books.Logger)
	return &Engine{
		Engine:   books.Engine,
		Objects:  books.Objects(),
		Images:   images,
		Packages: install.New(books, images),
		Logs:     logfile.In(books.Dir()),
		client:   books.API,
		log:      books.Logger,
		books:    books,
		ends:     newEndWatch(books.API, books.Logger),
		live:     make(map[string]sandbox.Process),
		groups:   make(map[*group]struct{}),
	}, nil
}

// Close stops every container that this Engine started, gives up the lock
// that protects them, and closes all connections. It waits for calls of Start
// that are under way. It may be called more than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.books.End()
		e.closeErr = errors.Join(e.stopAll(), e.books.Release(), e.client.Close())
	})
	return e.closeErr
}

func (e *Engine) stopAll() error {
	e.mu.Lock()
	alone := maps.Clone(e.live)
	running := make([]sandbox.Process, 0, len(e.live)+len(e.groups))
	for g := range e.groups { // each ends its own members in their order
		running = append(running, g)
		for _, m := range g.helpers {
			delete(alone, m.process.ID())
		}
		delete(alone, g.ID())
	}
	for _, p := range alone {
		running = append(running, p)
	}
	e.mu.Unlock()
	errs := make([]error, len(running))
	var all sync.WaitGroup
	for i, p := range running {
		all.Go(func() { errs[i] = p.Close() })
	}
	all.Wait()
	e.ends.close()
	return errors.Join(errs...)
}

// enter puts a process into the books.
func (e *Engine) enter(p sandbox.Process) {
	e.books.Enter(p.ID())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live[p.ID()] = p
}

// strike takes a process out of the books.
func (e *Engine) strike(p sandbox.Process) {
	e.mu.Lock()
	delete(e.live, p.ID())
	e.mu.Unlock()
	e.books.Strike(p.ID())
}
