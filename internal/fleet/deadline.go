package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// A deadline ends a call that shows no progress for too long, or lasts too
// long altogether (MCP 2025-11-25, basic/lifecycle#timeouts: progress may
// reset the clock, but a maximum should always be enforced).
type deadline struct {
	ctx    context.Context //nolint:containedctx // it is the product of this type, not kept beyond the call
	cancel context.CancelCauseFunc
	limit  time.Duration
	silent *time.Timer
	whole  *time.Timer

	mu     sync.Mutex
	paused int // who waits for somebody else than the server
}

func newDeadline(ctx context.Context, server string, limits Limits) *deadline {
	bounded, cancel := context.WithCancelCause(ctx)
	expire := func(setting string, limit time.Duration) func() {
		return func() { cancel(&TimeoutError{Server: server, Doing: "call", Setting: setting, Limit: limit}) }
	}
	setting, whole := "call_max", limits.CallMax
	switch {
	case limits.MaxCall > 0 && limits.MaxCall < whole:
		setting, whole = "max_call", limits.MaxCall
	case limits.Call == whole:
		setting = "call" // the one to be raised first
	}
	d := &deadline{ctx: bounded, cancel: cancel, limit: limits.Call, whole: time.AfterFunc(whole, expire(setting, whole))}
	if limits.Call < whole {
		d.silent = time.AfterFunc(limits.Call, expire("call", limits.Call))
	}
	return d
}

// watch wraps a progress function, which may be nil, so that progress resets
// the clock.
func (d *deadline) watch(progress func(json.RawMessage)) func(json.RawMessage) {
	return func(params json.RawMessage) {
		d.rewind(0)
		if progress != nil {
			progress(params)
		}
	}
}

// pause stops the clock of silence, because the server waits for somebody, and
// resume sets it anew. The whole time of a call goes on.
func (d *deadline) pause()  { d.rewind(1) }
func (d *deadline) resume() { d.rewind(-1) }

// rewind sets the clock of silence anew, unless the server waits.
func (d *deadline) rewind(pauses int) {
	if d.silent == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused += pauses
	if d.paused > 0 {
		d.silent.Stop()
		return
	}
	d.silent.Reset(d.limit)
}

// expired returns the limit that passed, if one did.
func (d *deadline) expired() error {
	var passed *TimeoutError
	if errors.As(context.Cause(d.ctx), &passed) {
		return passed
	}
	return nil
}

func (d *deadline) stop() {
	if d.silent != nil {
		d.silent.Stop()
	}
	d.whole.Stop()
	d.cancel(nil)
}
