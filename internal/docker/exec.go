package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/logfile"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// ErrNotRunning is the reason of a [StartError] of a server in a container that
// the user runs, and that does not run.
var ErrNotRunning = errors.New("the container does not run")

// Inside returns the image that a container of the user runs, as what is
// approved of it: if the container is made anew of another image, that is
// another server. The errors are [*StartError] and [*reach.EngineError].
func (e *Engine) Inside(ctx context.Context, name string) (sandbox.Image, error) {
	found, err := e.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err != nil {
		return sandbox.Image{}, e.execError(name, err)
	}
	if found.Container.State == nil || !found.Container.State.Running {
		return sandbox.Image{}, e.execError(name, ErrNotRunning)
	}
	image := sandbox.Image{Pin: sandbox.Pin{Kind: sandbox.LocalID, Digest: found.Container.Image, Platform: found.Container.Platform}}
	return image, nil
}

func (e *Engine) execError(name string, err error) error {
	err = e.Explain(err)
	var down *reach.EngineError
	switch {
	case errors.As(err, &down):
		return err
	case cerrdefs.IsNotFound(err):
		return &StartError{Server: name, Reason: ErrNotRunning, Err: errors.New("no such container")}
	case cerrdefs.IsConflict(err):
		return &StartError{Server: name, Reason: ErrNotRunning, Err: err}
	case strings.Contains(err.Error(), "executable file not found"), strings.Contains(err.Error(), "no such file or directory"):
		return &StartError{Server: name, Reason: ErrCommand, Err: err}
	}
	return &StartError{Server: name, Err: err}
}

// startExec starts a server in a container that the user runs. Nothing of the
// container is ours: it has no labels, and is never stopped or removed.
func (e *Engine) startExec(ctx context.Context, spec sandbox.Spec) (_ sandbox.Process, err error) {
	_, end, err := e.books.Begin()
	if err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	defer end()
	p := &execProcess{engine: e, server: spec.Server, done: make(chan struct{}), gone: make(chan struct{})}
	p.afterEOF, p.afterTerm = spec.Ladder()
	created, err := e.client.ExecCreate(ctx, spec.Exec, client.ExecCreateOptions{
		User: spec.User, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Env: spec.Environ(), WorkingDir: spec.WorkingDir, Cmd: slices.Concat(spec.Entrypoint, spec.Command),
	})
	if err != nil {
		return nil, e.execError(spec.Server, err)
	}
	p.id = created.ID
	if p.log, err = e.Logs.Open(spec.Server); err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	attached, err := e.client.ExecAttach(ctx, p.id, client.ExecAttachOptions{})
	if err != nil {
		return nil, errors.Join(e.execError(spec.Server, err), p.log.Close())
	}
	p.joined(attached.HijackedResponse)
	e.enter(p)
	p.running.Go(p.watch)
	return p, nil
}

// An execProcess is a server in a container that the user runs. The engine has
// no way to signal it: it ends when its input does, or with its container.
type execProcess struct {
	engine *Engine
	server string
	id     string
	log    *logfile.File
	stdio

	afterEOF, afterTerm time.Duration

	running sync.WaitGroup
	done    chan struct{} // closed by watch
	exit    sandbox.Exit  // written before done is closed

	gone     chan struct{} // closed when Close has ended
	closeErr error         // written before gone is closed
}

// askTime bounds a question to the engine after the end of a process.
const askTime = 5 * time.Second

// watch carries the output until the server closes it, and then asks how it
// ended. A server that closed its output and goes on is lost to us.
func (p *execProcess) watch() {
	defer close(p.done)
	if err := p.split(p.log); err != nil {
		p.engine.log.Error("engine's output not understood", "server", p.server, "container", p.id, "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := p.engine.client.ExecInspect(ctx, p.id, client.ExecInspectOptions{})
		if err != nil {
			p.exit.Lost = true
			return
		}
		if !found.Running {
			p.exit.Code = found.ExitCode
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.exit.Lost = true
			return
		}
	}
}

func (p *execProcess) ID() string { return p.id }

func (p *execProcess) Done() <-chan struct{} { return p.done }

func (p *execProcess) Exit() sandbox.Exit { return p.exit }

func (p *execProcess) Close() error {
	if p.closing.CompareAndSwap(false, true) {
		p.closeErr = p.stop()
		close(p.gone)
	}
	<-p.gone
	return p.closeErr
}

// stop closes the input and gives the server the time of the whole ladder.
func (p *execProcess) stop() error {
	p.stdout.Discard()
	p.closeStdin()
	timer := time.NewTimer(p.afterEOF + p.afterTerm)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.engine.log.Warn("server does not end with its input; it goes on in the container that you run", "server", p.server, "container", p.id)
	}
	err := ended(p.conn.Close())
	p.running.Wait()
	p.engine.strike(p)
	return errors.Join(err, p.log.Close())
}
