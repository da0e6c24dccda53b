package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// An instance is one life of a server: from its start to the removal of its
// container. Fleet.mu guards everything but what is set before started is
// closed and read after it.
type instance struct {
	order Order
	// after is closed when the container whose place this one takes is gone.
	after  <-chan struct{}
	cancel context.CancelFunc

	started chan struct{} // closed when the start is over
	done    chan struct{} // closed when nothing of the instance is left
	relist  chan struct{} // one token: the server says that its offer changed

	// Set by the start, before started is closed.
	process sandbox.Process
	session *upstream.Session
	err     error

	// Guarded by Fleet.mu.
	ready    bool
	uses     int
	ending   bool
	lost     bool // its stream has ended
	outdated bool
	overdue  bool
	idle     alarm
}

// wait returns when the server has been started, or why it could not be.
func (i *instance) wait(ctx context.Context) error {
	select {
	case <-i.started:
		return i.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (i *instance) state() string {
	switch {
	case i.ending:
		return "stopping"
	case i.ready:
		return "ready"
	default:
		return "starting"
	}
}

// live is the whole life of an instance.
func (f *Fleet) live(ctx context.Context, i *instance) {
	defer close(i.done)
	defer i.cancel()
	began := time.Now()
	i.err = f.start(ctx, i)
	f.mu.Lock()
	i.ready = i.err == nil
	f.settle(i)
	f.mu.Unlock()
	close(i.started)
	if i.err == nil {
		f.attend(ctx, i)
	}
	f.bury(i, time.Since(began))
}

// start brings a container up to its first listing; on an error nothing is left.
func (f *Fleet) start(ctx context.Context, i *instance) error {
	select {
	case <-i.after:
	case <-ctx.Done():
		return ErrStopped
	}
	limit := i.order.Limits.withDefaults().Start
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &TimeoutError{Server: i.order.Spec.Server, Doing: "start", Limit: limit})
	defer cancel()
	began := time.Now()
	spec, err := f.opts.Unlock(ctx, i.order.Spec)
	if err != nil {
		return err
	}
	image := spec.Image.Pin.Digest
	era, err := f.opts.Eras.Era(ctx, image)
	if err != nil {
		return err
	}
	err = f.connect(ctx, i, spec, upstream.Era(era))
	var probe *upstream.ProbeError
	if errors.As(err, &probe) { // the server cannot stand the probe: it gets a fresh process and none
		err = f.connect(ctx, i, spec, upstream.Legacy)
	}
	if err != nil {
		return err
	}
	if learned := string(i.session.Era()); learned != era {
		err = f.opts.Eras.PutEra(ctx, image, learned)
	}
	if err == nil {
		err = f.list(ctx, i)
	}
	if err == nil {
		err = f.opts.Record(Event{
			Kind: "start", Server: spec.Server, Scope: i.order.Scope,
			Container: i.process.ID(), Image: image, Duration: time.Since(began),
		})
	}
	if err != nil {
		return f.abandon(ctx, i, err)
	}
	return nil
}

// connect starts a container and opens a conversation with it.
func (f *Fleet) connect(ctx context.Context, i *instance, spec sandbox.Spec, era upstream.Era) error {
	process, err := f.opts.Runner.Start(ctx, spec)
	if err != nil {
		return because(ctx, err)
	}
	i.process = process
	i.session, err = upstream.Connect(ctx, process, upstream.Options{
		Client: f.opts.Client,
		Era:    era,
		Logger: f.opts.Logger,
		Notify: i.notified,
	})
	if err != nil {
		return f.abandon(ctx, i, err)
	}
	return nil
}

// abandon stops what a failed start has made, and adds what the server said.
func (f *Fleet) abandon(ctx context.Context, i *instance, err error) error {
	err = because(ctx, err)
	if i.session != nil {
		_ = i.session.Close() // the stream is closed with the process
	}
	ended := false
	select {
	case <-i.process.Done():
		ended = true
	default:
	}
	closed := i.process.Close()
	failure := &StartError{Server: i.order.Spec.Server, Err: err, Stderr: i.process.Stderr()}
	if ended {
		exit := i.process.Exit()
		failure.Exit = &exit
	}
	return errors.Join(failure, closed)
}

// list reads what the server offers and passes it on.
func (f *Fleet) list(ctx context.Context, i *instance) error {
	offer, err := i.session.Offer(ctx)
	if err != nil {
		return err
	}
	return i.order.Listed(ctx, i.session.Info(), offer)
}

// notified runs in the session's reader: it must not block.
func (i *instance) notified(method string, _ json.RawMessage) {
	if strings.HasSuffix(method, "/list_changed") {
		select {
		case i.relist <- struct{}{}:
		default: // a listing is due already
		}
	}
}

// attend waits for the end of a running server, and lists anew when it asks for that.
func (f *Fleet) attend(ctx context.Context, i *instance) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.session.Done():
			return
		case <-i.relist:
			listing, cancel := context.WithTimeout(ctx, i.order.Limits.withDefaults().Call)
			if err := f.list(listing, i); err != nil && ctx.Err() == nil {
				f.opts.Logger.Warn("keeping the old list", "server", i.order.Spec.Server, "err", err)
			}
			cancel()
		}
	}
}

// bury removes what is left of an instance, and remembers a bad end.
func (f *Fleet) bury(i *instance, lived time.Duration) {
	event := Event{Kind: "start-failed", Server: i.order.Spec.Server, Scope: i.order.Scope, Duration: lived, Err: i.err}
	f.mu.Lock()
	ended := i.ending
	i.ending = true
	i.idle.disarm()
	f.mu.Unlock()
	if i.err == nil {
		event.Kind, event.Container = "stop", i.process.ID()
		_ = i.session.Close() // its error is the process's, which follows
		err := i.process.Close()
		if !ended {
			event.Kind = "crash"
			err = errors.Join(&LostError{Server: event.Server, Exit: i.process.Exit(), Stderr: i.process.Stderr()}, err)
		}
		event.Err = err
	}
	f.mu.Lock()
	k := i.order.key()
	if f.instances[k] == i {
		delete(f.instances, k)
	}
	delete(f.replaced, i)
	if event.Kind != "stop" && !errors.Is(event.Err, ErrStopped) {
		f.setbacks[k] = f.setbacks[k].another(event.Err)
	}
	f.mu.Unlock()
	if err := f.opts.Record(event); err != nil {
		f.opts.Logger.Error("a stop was not recorded", "server", event.Server, "err", err)
	}
}

// probe asks a server that let a call expire for a sign of life, and ends it
// if there is none: it need not answer a cancellation, but a ping.
func (f *Fleet) probe(i *instance) {
	f.lives.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		if err := i.session.Ping(ctx); err == nil || errors.Is(err, upstream.ErrClosed) {
			return
		}
		f.opts.Logger.Warn("server does not answer, stopping it", "server", i.order.Spec.Server)
		f.mu.Lock()
		f.end(i)
		f.mu.Unlock()
	})
}

const probeTimeout = 2 * time.Second

// because returns the reason why ctx ended in place of the error that this caused.
func because(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return ErrStopped
}

// An alarm is a timer that is armed and disarmed under Fleet.mu.
type alarm struct{ timer *time.Timer }

func (a *alarm) arm(after time.Duration, ring func()) {
	if a.timer == nil {
		a.timer = time.AfterFunc(after, ring)
	}
}

func (a *alarm) disarm() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
