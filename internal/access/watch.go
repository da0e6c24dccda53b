package access

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// A watch ends a context when its visitor's credential does.
type watch struct {
	visitor Visitor
	end     func(cause error)
}

// Watch returns a context that ends, with a [*RefusedError] as its cause, when
// the visitor's token is revoked or expires. It is for what outlives the
// moment in which Authenticate looked: streams, and calls that take long. It
// needs [Authenticator.Run]. Call stop when the request is over.
func (a *Authenticator) Watch(ctx context.Context, v Visitor) (watched context.Context, stop context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	unhook := a.WatchFunc(v, end)
	return ctx, func() { unhook(); end(nil) }
}

// WatchFunc is Watch for what has a context of its own: it calls end, once,
// with the cause. End must not block. It may be called while stop is.
func (a *Authenticator) WatchFunc(v Visitor, end func(cause error)) (stop func()) {
	if v.Expires.IsZero() && v.digest == (Digest{}) {
		return func() {}
	}
	w := &watch{visitor: v, end: end}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches[w] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, w)
	}
}

// Run ends the watches whose time has come, and keeps the keys of issuers
// fresh, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		every(ctx, lookEvery, a.review)
		return nil
	})
	for _, i := range a.issuers {
		group.Go(func() error {
			every(ctx, refreshEvery/60, i.keys.refresh)
			return nil
		})
	}
	return group.Wait()
}

// every does something again and again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do(ctx)
		}
	}
}

// review ends what is not good any more. What cannot be checked is not good.
func (a *Authenticator) review(ctx context.Context) {
	a.mu.Lock()
	watched := len(a.watches)
	a.mu.Unlock()
	if watched == 0 {
		return
	}
	tokens, err := a.current(ctx)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		switch _, ok := find(tokens, w.visitor.digest); {
		case !w.visitor.Expires.IsZero() && !now.Before(w.visitor.Expires):
			w.end(a.refuse(expiredToken))
		case w.visitor.digest == (Digest{}):
			continue // an issuer's: good until it expires
		case err != nil:
			w.end(err)
		case !ok:
			w.end(a.refuse(unknownToken))
		default:
			continue
		}
		delete(a.watches, w)
	}
}
