// Package docker runs a [sandbox.Spec] on a Docker engine: it pulls images,
// creates, joins and stops containers, and removes what nobody owns any more.
//
// It decides nothing about rights: a Spec is run as it stands, by digest or
// image id and never by tag, and what every container gets on top (no
// capabilities, no new privileges, a read-only root, an init process, no logs
// kept by the engine) is the same for all. It refuses networks that it cannot
// enforce.
//
// It guarantees that nothing is left: if Start fails it undoes what it made;
// [Engine.Close] stops what runs; and what outlives its gateway is removed by
// [Engine.Sweep] of any gateway of the same state folder, or of another one
// once it has expired. The lock that shows that a gateway lives is taken
// before its first container is created.
package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// Options say which engine to use and what the gateway calls its own there.
type Options struct {
	// Host is the engine's address, as in DOCKER_HOST and --host. It wins over
	// Context.
	Host string
	// Context is the name of a Docker context, as in DOCKER_CONTEXT. If it and
	// Host are empty, the current context of the Docker configuration is used.
	Context string
	// ConfigDir is the folder of the Docker configuration, with the contexts
	// and the registry credentials. Empty is the user's own, ~/.docker.
	ConfigDir string
	// CertPath is a folder with ca.pem, cert.pem and key.pem, as in
	// DOCKER_CERT_PATH. It counts with Host only.
	CertPath string
	// TLS says how far a Host with TLS is trusted.
	TLS TLSMode

	// State identifies the state folder; containers carry it as a label.
	State string
	// Dir is the state folder; locks and log files are kept in it.
	Dir string
	// Logger is told of what is swept and of what the engine warns of. Nil
	// discards it.
	Logger *slog.Logger
}

// An Engine is one Docker engine. All methods may be called from any goroutine.
type Engine struct {
	client    *client.Client
	host      string
	configDir string
	state     string
	dir       string
	log       *slog.Logger
	ends      *endWatch

	mu sync.Mutex
	// closed engines start nothing.
	closed bool
	lease  *lease // nil until the first Start
	// live has every process between its start and its removal, by its id.
	live map[string]sandbox.Process
	// groups has every server with helpers between its start and its removal.
	groups map[*group]struct{}
	logs   map[string]*logFile // by server, while one of its containers is live
	// begun and ended count the calls of Start, so that a sweep knows whether a
	// container that is not in live may still get there.
	begun, ended int
	starting     sync.WaitGroup
	closing      sync.Once
	closeErr     error
}

// Connect returns the engine that the options name. It makes no connection:
// an engine that is down is an [*EngineError] of the first call that needs it.
// It fails only if the options, the Docker configuration or the certificates
// cannot be used.
func Connect(_ context.Context, o Options) (*Engine, error) {
	if o.State == "" || o.Dir == "" {
		return nil, errors.New("connect to the engine: no state folder given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: state folder: %w", err)
	}
	target, err := resolveEndpoint(o)
	if err != nil {
		return nil, err
	}
	api, err := client.New(append(target.options, client.WithUserAgent("dockgate"))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the engine at %s: %w", target.host, err)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		client:    api,
		host:      target.host,
		configDir: o.ConfigDir,
		state:     o.State,
		dir:       dir,
		log:       log,
		ends:      newEndWatch(api, log),
		live:      make(map[string]sandbox.Process),
		groups:    make(map[*group]struct{}),
		logs:      make(map[string]*logFile),
	}, nil
}

// Host returns the engine's address, such as "unix:///var/run/docker.sock".
func (e *Engine) Host() string { return e.host }

// Local reports whether the engine is reached over a socket of this machine,
// so that host paths mean the same here and there. (The engine behind the
// socket may still be in a virtual machine that shares only some folders.)
func (e *Engine) Local() bool { return isSocket(e.host) }

// Close stops every container that this Engine started, gives up the lock
// that protects them, and closes all connections. It waits for calls of Start
// that are under way. It may be called more than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
		e.starting.Wait()
		e.closeErr = errors.Join(e.stopAll(), e.release(), e.client.Close())
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

func (e *Engine) release() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease == nil {
		return nil
	}
	return e.lease.release()
}

// begin takes the lock of this gateway, if it is not yet taken, and holds back
// Close until the returned function is called.
func (e *Engine) begin() (owner string, end func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return "", nil, errors.New("the engine's connection is closed")
	}
	if e.lease == nil {
		lease, err := takeLease(e.dir, alone)
		if err != nil {
			return "", nil, err
		}
		e.lease = lease
	}
	e.begun++
	e.starting.Add(1)
	return e.lease.id, func() {
		e.mu.Lock()
		e.ended++
		e.mu.Unlock()
		e.starting.Done()
	}, nil
}
