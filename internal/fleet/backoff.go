package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// A suspect is what a back-off holds against: a server as it was started. With
// other settings, or another image, it gets another chance.
type suspect struct {
	key    key
	digest string
}

func (o Order) suspect() suspect { return suspect{key: o.key(), digest: o.Digest} }

// A setback counts failures in a row. The first costs nothing: most crashes
// are cured by a restart on the next call.
type setback struct {
	failures int
	until    time.Time
	err      error
}

func (s setback) another(err error) setback {
	var wait time.Duration
	if s.failures > 0 {
		wait = min(firstBackoff<<min(s.failures-1, 10), maxBackoff)
	}
	return setback{failures: s.failures + 1, until: time.Now().Add(wait), err: err}
}

// engineWent reports an end that came from the engine's, which is not held
// against the server: once the engine is back, the next call is to work.
func engineWent(err error) bool {
	var start *StartError
	var lost *LostError
	return errors.Is(err, sandbox.ErrEngineFailed) ||
		errors.As(err, &start) && start.Exit != nil && start.Exit.Lost ||
		errors.As(err, &lost) && lost.Why == nil && lost.Exit.Lost
}

// stopped reports an end that somebody wanted.
func stopped(err error) bool {
	return errors.Is(err, ErrStopped) || errors.Is(err, ErrStoppedOutside)
}

// wantsLogin reports an end that a person will cure by logging in. It is not
// held against the server, and says nothing of its era.
func wantsLogin(err error) bool {
	var wanted *login.LoginError
	return errors.As(err, &wanted)
}

// rested returns nil if the ordered server may be started as far as its
// failures go. f.mu is held.
func (f *Fleet) rested(o Order) error {
	s := f.setbacks[o.suspect()]
	if wait := time.Until(s.until); wait > 0 {
		return &BackoffError{Server: o.Spec.Server, Wait: wait, Err: s.err}
	}
	return nil
}

// Failed reports whether a server, in any scope, has failed since it was last
// stopped or answered.
func (f *Fleet) Failed(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.setbacks {
		if s.key.server == server {
			return true
		}
	}
	return false
}

// Rested returns nil if the ordered server may be started, as far as its
// failures go, else a [*BackoffError].
func (f *Fleet) Rested(o Order) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rested(o)
}

// answered forgets the failures of a server that answered a call.
func (f *Fleet) answered(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.given = 0
	delete(f.setbacks, i.order.suspect())
}

// maxGiven is how many calls in a row may be given up before their server is
// replaced: it may still work on all of them.
const maxGiven = 16

// abandoned counts a call that was given up before it was answered. A server
// that cannot get to an answer any more is stopped when its last call has
// returned, and the next call begins with a fresh one.
func (f *Fleet) abandoned(ctx context.Context, i *instance) {
	f.mu.Lock()
	i.given++
	if i.given >= maxGiven && f.instances[i.at] == i && !i.leaving() {
		f.opts.Logger.WarnContext(ctx, "server answers no calls, replacing it", "server", i.order.Spec.Server)
		f.replace(i)
	}
	alone := i.uses == 1
	f.mu.Unlock()
	// Whoever had a limit of their own may have been too impatient, but a
	// server that is silent altogether has nobody else to find that out.
	if alone && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.ping(ctx, i, func() bool { return i.uses == 0 })
	}
}
