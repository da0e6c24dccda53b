package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// An instance is one life of a server: from its start to the removal of its
// container. Fleet.mu guards everything but what is set before started is
// closed and read after it.
type instance struct {
	order  Order
	limits Limits // of the order, complete
	born   time.Time
	// after are closed when the containers whose place this one takes are gone.
	after  []<-chan struct{}
	cancel context.CancelFunc

	started chan struct{} // closed when the start is over
	done    chan struct{} // closed when nothing of the instance is left
	relist  chan struct{} // one token: the server says that its offer changed

	listening  sync.WaitGroup // the subscription
	subscribed chan struct{}  // one token: it has begun, or has ended
	awaiting   atomic.Bool    // somebody waits until it has begun
	hearing    sync.Mutex     // guards unhear, and is held while a subscription begins
	unhear     func()         // ends the subscription, and waits for its end

	// Set by the start, before started is closed.
	process sandbox.Process
	session *upstream.Session
	tried   bool // a container was asked for
	err     error

	end *LostError // how a server that was ready went; set before done is closed

	// flying guards flights, and is never held while Fleet.mu is taken.
	flying  sync.Mutex
	flights []*flight // in the order in which they began
	level   string    // of the log messages that the server was asked for

	// Guarded by Fleet.mu.
	users    map[string]bool // the owners who have ordered it, and nothing else in its place
	rooted   map[From]bool   // the clients that it has asked for their roots
	ready    bool
	uses     int
	client   From      // whose use was the first of those that last
	used     time.Time // when a use ended last, or the start began
	at       key       // where it is found
	given    int       // calls given up since one was answered
	ending   bool
	lost     bool // its stream has ended
	outdated bool
	overdue  bool
	expired  bool
	probing  bool
	silent   bool        // it did not answer a ping
	idle     *time.Timer // nil unless it runs
}

// wait returns when the server has been started, or why it could not be.
func (i *instance) wait(ctx context.Context) error {
	select {
	case <-i.started:
		return i.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaving reports that the instance takes no more calls. Fleet.mu is held.
func (i *instance) leaving() bool { return i.ending || i.lost }

// state needs Fleet.mu.
func (i *instance) state() string {
	switch {
	case i.leaving():
		return "stopping"
	case i.ready:
		return "ready"
	default:
		return "starting"
	}
}

// status needs Fleet.mu.
func (i *instance) status() Status {
	status := Status{Server: i.order.Spec.Server, Scope: i.order.Scope, State: i.state(), Calls: i.uses}
	if i.ready {
		status.Container = i.process.ID()
	}
	return status
}

// disarm stops the idle timer. Fleet.mu is held.
func (i *instance) disarm() {
	if i.idle != nil {
		i.idle.Stop()
		i.idle = nil
	}
}

// live is the whole life of an instance.
func (f *Fleet) live(ctx context.Context, i *instance) {
	defer close(i.done)
	defer i.listening.Wait()
	defer i.cancel()
	began := time.Now()
	if i.err = f.start(ctx, i); i.err != nil {
		f.forget(i, Event{Kind: "start-failed", Duration: time.Since(began), Err: i.err})
		close(i.started) // only now: who calls again must not meet this instance
		return
	}
	f.mu.Lock()
	i.ready = true
	f.settle(i)
	f.mu.Unlock()
	close(i.started)
	f.attend(ctx, i)
	f.bury(i, began)
}

// start brings a container up to its first listing; on an error nothing is left.
func (f *Fleet) start(ctx context.Context, i *instance) error {
	for _, gone := range i.after {
		select {
		case <-gone:
		case <-ctx.Done():
			return f.abandon(ctx, i, ErrStopped)
		}
	}
	f.mu.Lock() // the container before may have failed only now
	err := f.rested(i.order)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	late := &TimeoutError{Server: i.order.Spec.Server, Doing: "start", Setting: "start", Limit: i.limits.Start}
	ctx, cancel := context.WithTimeoutCause(ctx, i.limits.Start, late)
	defer cancel()
	began := time.Now()
	if err = f.launch(ctx, i); err == nil {
		f.subscribe(ctx, i) // before the listing, so that no change falls between the two
		err = f.list(ctx, i)
	}
	if err == nil {
		f.rewatch(ctx, i)
	}
	if err == nil {
		err = f.opts.Record(Event{
			Kind: "start", Server: i.order.Spec.Server, Scope: i.order.Scope,
			Container: i.process.ID(), Image: i.order.Spec.Image.Pin.Digest, Duration: time.Since(began),
		})
	}
	if err != nil {
		return f.abandon(ctx, i, err)
	}
	return nil
}

// launch starts a container and opens a conversation with it, in the era that
// is known of its image or else in the one found out.
func (f *Fleet) launch(ctx context.Context, i *instance) error {
	spec, err := f.opts.Unlock(ctx, i.order.Spec)
	if err != nil {
		return err
	}
	program := spec.Program()
	known, err := f.opts.Eras.Era(ctx, program)
	if err != nil {
		return err
	}
	era := upstream.Era(known)
	if known == Both {
		era = i.order.era()
	}
	i.tried = true
	err = f.connect(ctx, i, spec, era)
	var probe *upstream.ProbeError
	if errors.As(err, &probe) && !wantsLogin(err) { // the server cannot stand the probe: it gets a fresh process and none
		err = f.connect(ctx, i, spec, upstream.Legacy)
	}
	if err != nil {
		return err
	}
	learned := Spoken(i.session.Info(), known)
	if learned == known {
		return nil
	}
	if learned == Both {
		f.apart(i)
		if i.order.era() != i.session.Era() { // nothing has been asked of it yet
			if err := i.session.Close(); err != nil {
				return err
			}
			if err := f.connect(ctx, i, spec, i.order.era()); err != nil {
				return err
			}
		}
	}
	return f.opts.Eras.PutEra(ctx, program, learned)
}

// apart moves an instance, of which it was learned that it speaks either
// generation, to where clients of its own look for it.
func (f *Fleet) apart(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.both[i.order.Spec.Program()] = true
	if f.instances[i.at] != i {
		return
	}
	delete(f.instances, i.at)
	i.at.era = i.order.era()
	f.instances[i.at] = i
}

// Both is what is remembered of an image that speaks either generation of the
// protocol. Each client gets the one that it speaks itself: nothing has to be
// translated then, and what servers can do in one only works.
const Both = "both"

// Spoken returns what is to be remembered of a server's image, of which
// something may be known.
func Spoken(info upstream.Info, known string) string {
	if info.Both || known == Both && info.Era == upstream.Legacy {
		return Both
	}
	return string(info.Era)
}

// connect starts a container and opens a conversation with it. If that fails
// the container is closed.
func (f *Fleet) connect(ctx context.Context, i *instance, spec sandbox.Spec, era upstream.Era) (err error) {
	if i.process, err = f.opts.Runner.Start(ctx, spec); err != nil {
		return err
	}
	i.session, err = upstream.Connect(ctx, i.process, upstream.Options{
		Client:       f.opts.Client,
		Capabilities: json.RawMessage(i.order.capabilities()), CallCapabilities: json.RawMessage("{}"),
		Era:        era,
		MaxEntries: f.opts.MaxEntries,
		Logger:     f.opts.Logger,
		Notify:     func(method string, params json.RawMessage) { f.notified(i, method, params) },
		Serve:      f.serve(i),
	})
	return err
}

// abandon stops what a failed start has made, and says why it failed.
func (f *Fleet) abandon(ctx context.Context, i *instance, err error) error {
	failure := &StartError{Server: i.order.Spec.Server, Err: because(ctx, err)}
	if i.process == nil {
		return failure
	}
	if i.session != nil {
		_ = i.session.Close() // its error is the process's, which follows
	}
	closed := i.process.Close()
	failure.Stderr = i.process.Stderr()
	var lost *upstream.LostError
	if exit := exitOf(i.process); ctx.Err() == nil && errors.As(err, &lost) { // it went by itself
		failure.Exit = &exit
		switch {
		case exit.OutOfMemory:
			failure.Err = i.full()
		case exit.Stopped:
			failure.Err = ErrStoppedOutside
		}
	}
	return errors.Join(failure, closed)
}

func (i *instance) full() *MemoryError {
	return &MemoryError{Server: i.order.Spec.Server, Limit: i.order.Spec.Limits.Memory}
}

// exitOf returns how a closed process ended. An engine that hangs may not have
// said it.
func exitOf(p sandbox.Process) sandbox.Exit {
	select {
	case <-p.Done():
		return p.Exit()
	default:
		return sandbox.Exit{Lost: true}
	}
}

// list reads what the server offers and passes it on. What cannot be read
// leaves the server with what it offered before, if who ordered has that.
func (f *Fleet) list(ctx context.Context, i *instance) error {
	late := &TimeoutError{Server: i.order.Spec.Server, Doing: "list", Setting: "list", Limit: i.limits.List}
	listing, cancel := context.WithTimeoutCause(ctx, i.limits.List, late)
	defer cancel()
	offer, err := i.session.Offer(listing)
	if err == nil && len(offer.Tools) == 0 && len(offer.Refused) > 0 {
		err = fmt.Errorf("tools/list: %w", offer.Refused[0])
	}
	if err == nil {
		return i.order.Listed(ctx, i.session.Info(), offer)
	}
	if listing.Err() != nil && ctx.Err() == nil {
		err = late
	}
	var lost *upstream.LostError
	if ctx.Err() != nil || errors.As(err, &lost) || i.order.Unlisted == nil {
		return err
	}
	return i.order.Unlisted(ctx, i.session.Info(), err)
}

// notified runs in the session's goroutine: it must not block. A subscription
// that begins when nobody waits for it any more may have missed a change.
func (f *Fleet) notified(i *instance, method string, params json.RawMessage) {
	switch {
	case method == acknowledged && i.awaiting.Load():
		signal(i.subscribed)
	case method == acknowledged, strings.HasSuffix(method, "/list_changed"):
		signal(i.relist)
	default:
		f.heard(i, method, params)
	}
}

// signal puts a token into a channel that holds one.
func signal(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default: // it is there already
	}
}

// relistPause is the least time between two listings, and relistMost that of a
// server which never stops to ask for another.
const (
	relistPause = time.Second
	relistMost  = time.Minute
)

// attend waits for the end of a running server, and lists anew when it asks
// for that, though not in the rhythm of a server that does so all the time.
func (f *Fleet) attend(ctx context.Context, i *instance) {
	over := time.NewTimer(sandbox.Lifetime - i.age())
	defer over.Stop()
	asked, pause := i.relist, relistPause
	var rested <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.session.Done():
			return
		case <-over.C:
			f.expire(i)
			return
		case <-rested:
			asked, rested = i.relist, nil
			if len(asked) == 0 {
				pause = relistPause
			}
		case <-asked:
			asked, rested = nil, time.After(pause)
			pause = min(2*pause, relistMost)
			if err := f.list(ctx, i); err != nil && ctx.Err() == nil {
				f.opts.Logger.Warn("keeping the old list", "server", i.order.Spec.Server, "err", err)
			}
		}
	}
}

// bury removes what is left of a server that was ready, and says how it went.
func (f *Fleet) bury(i *instance, began time.Time) {
	event := Event{Kind: "crash", Container: i.process.ID(), Image: i.order.Spec.Image.Pin.Digest}
	i.end = &LostError{Server: i.order.Spec.Server}
	f.mu.Lock()
	switch {
	case i.silent:
		i.end.Why = ErrSilent
	case i.expired:
		event.Kind, i.end.Why = "stop", ErrExpired
	case i.ending:
		event.Kind, i.end.Why = "stop", ErrStopped
	}
	i.ending = true
	i.disarm()
	f.mu.Unlock()
	_ = i.session.Close() // its error is the process's, which follows
	event.Err = i.process.Close()
	i.end.Exit, i.end.Stderr = exitOf(i.process), i.process.Stderr()
	if i.end.Why == nil {
		switch {
		case i.end.Exit.OutOfMemory:
			i.end.Why = i.full()
		case i.end.Exit.Stopped:
			event.Kind, i.end.Why = "stop", ErrStoppedOutside
		}
	}
	if event.Kind == "crash" || errors.Is(i.end.Why, ErrStoppedOutside) {
		event.Err = errors.Join(i.end, event.Err)
	}
	event.Duration = time.Since(began)
	f.forget(i, event)
}

// forget has the end of an instance recorded of which nothing is left,
// remembers a bad one, and takes the instance out of the fleet.
func (f *Fleet) forget(i *instance, event Event) {
	event.Server, event.Scope = i.order.Spec.Server, i.order.Scope
	var resting *BackoffError
	if !errors.As(event.Err, &resting) { // else nothing was started
		// First, so that the record has what takes its place after it.
		if err := f.opts.Record(event); err != nil {
			f.opts.Logger.Error("the end of a server was not recorded", "server", event.Server, "err", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i.ending = true
	if k := i.at; f.instances[k] == i {
		delete(f.instances, k)
	}
	delete(f.replaced, i)
	// What keeps a server from being tried, such as a missing secret, is the
	// user's to mend, and then the next call is to work.
	if i.tried && event.Kind != "stop" && !stopped(event.Err) && !engineWent(event.Err) && !wantsLogin(event.Err) {
		f.setbacks[i.order.suspect()] = f.setbacks[i.order.suspect()].another(event.Err)
	}
	f.stir()
}

// probe asks a server that let a call expire for a sign of life, and ends it
// if there is none: it need not answer a cancellation, but a ping.
func (f *Fleet) probe(ctx context.Context, i *instance) {
	f.ping(ctx, i, func() bool { return true })
}

// ping asks a server for a sign of life, and ends it if there is none and it
// is doomed by then, which is asked with f.mu held.
func (f *Fleet) ping(ctx context.Context, i *instance, doomed func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i.probing || i.leaving() {
		return
	}
	i.probing = true
	f.lives.Go(func() { // not after Close, which has ended every instance
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		err := i.session.Ping(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		i.probing = false
		if errors.Is(err, context.DeadlineExceeded) && !i.ending && doomed() {
			f.opts.Logger.Warn("server does not answer, stopping it", "server", i.order.Spec.Server)
			i.silent = true
			f.end(i)
		}
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
