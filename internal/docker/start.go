package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Start creates, joins and starts the container of the Spec. The image must
// be on the engine, see [Engine.Resolve]; it is taken by its pin. When the
// context ends before Start has returned, Start undoes what it made; after
// that the context does not matter any more.
//
// Helpers of the Spec are started before it, each when the one before is ready;
// they end with the server, and the server with them.
//
// The errors are [*StartError], [*HelperError] and [*reach.EngineError].
func (e *Engine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if spec.Exec != "" {
		return e.startExec(ctx, spec)
	}
	if len(spec.Helpers) > 0 {
		return e.startGroup(ctx, spec)
	}
	return e.startOne(ctx, spec, place{})
}

// startOne starts one container in its place.
func (e *Engine) startOne(ctx context.Context, spec sandbox.Spec, at place) (sandbox.Process, error) {
	by, end, err := e.books.Begin()
	if err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	defer end()
	name := "dockgate-" + spec.Server + "-" + strings.ToLower(rand.Text()[:10])
	options, err := containerOptions(spec, name, e.books.Labels(by, spec.Server))
	if err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	at.settle(&options)
	log, err := e.Logs.Open(spec.Server)
	if err != nil {
		return nil, &StartError{Server: spec.Server, Err: err}
	}
	p := &process{
		engine: e,
		server: spec.Server,
		log:    log,
		done:   make(chan struct{}),
		gone:   make(chan struct{}),
	}
	p.afterEOF, p.afterTerm = spec.Ladder()
	p.logged = spec.HTTP != nil || at.helper != nil
	if err := p.start(ctx, options); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		failed := e.startError(spec.Server, spec.Image.Ref, err)
		undone := p.undo(ctx, name)
		var down *reach.EngineError
		if errors.As(failed, &down) && errors.As(undone, &down) {
			undone = nil // the same again
		}
		return nil, errors.Join(failed, undone)
	}
	return p, nil
}

// start makes the container. The requests that change something on the engine
// outlive the context a little, because an engine does not undo what it began
// for a request that went away.
func (p *process) start(ctx context.Context, options client.ContainerCreateOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := p.engine
	watching := e.ends.start(ctx)
	lasting, cancel := owner.Outlive(ctx)
	defer cancel()
	created, err := e.client.ContainerCreate(lasting, options)
	if _, digest, ok := strings.Cut(options.Config.Image, "@"); ok && cerrdefs.IsNotFound(err) {
		options.Config.Image = digest // see pull.Exactly
		var again error
		if created, again = e.client.ContainerCreate(lasting, options); again == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	p.id = created.ID
	for _, warning := range created.Warnings {
		e.log.WarnContext(ctx, "engine cannot enforce the whole sandbox", "server", p.server, "err", warning)
	}
	if err := p.join(ctx); err != nil {
		return err
	}
	select {
	case <-watching:
	case <-ctx.Done():
		return ctx.Err()
	}
	e.enter(p)
	p.omens = e.ends.watch(p.id)
	if _, err := e.client.ContainerStart(lasting, p.id, client.ContainerStartOptions{}); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.run()
	return nil
}

// join opens the two connections that last as long as the container: its
// stdio, and the answer to how it ended. Both stand before it starts, so that
// nothing is missed.
func (p *process) join(ctx context.Context) error {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.unwait = stop
	var group errgroup.Group
	group.Go(func() error {
		attached, err := p.engine.client.ContainerAttach(ctx, p.id, client.ContainerAttachOptions{
			Stream: true, Stdin: true, Stdout: true, Stderr: true,
		})
		if err != nil {
			return err
		}
		p.joined(attached.HijackedResponse)
		return nil
	})
	group.Go(func() error {
		release := context.AfterFunc(ctx, stop)
		defer release()
		waiting := p.engine.client.ContainerWait(lasting, p.id, client.ContainerWaitOptions{
			Condition: container.WaitConditionNextExit,
		})
		select {
		case err := <-waiting.Error:
			return err
		default:
			p.waiting = waiting
			return nil
		}
	})
	return group.Wait()
}

// undo removes what a failed start has left.
func (p *process) undo(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), owner.UndoTime)
	defer cancel()
	if p.unwait != nil {
		p.unwait()
	}
	if p.waiting.Result != nil {
		// The client's goroutine waits until it is rid of its result.
		select {
		case <-p.waiting.Result:
		case err := <-p.waiting.Error:
			p.engine.log.DebugContext(ctx, "wait cut off", "server", p.server, "container", p.id, "err", err)
		}
	}
	// By name: a container whose creation was cut off has no known id.
	err := p.engine.books.Remove(ctx, name)
	if p.conn != nil {
		err = errors.Join(err, ended(p.conn.Close()))
	}
	return errors.Join(err, p.forget())
}
