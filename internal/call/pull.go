package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/plan"
)

// pullLimit ends a pull that nobody waits for any more.
const pullLimit = 30 * time.Minute

var errPullLimit = fmt.Errorf("the pull took longer than %v", pullLimit)

// pull makes a server's image present, once however many ask. It goes on when
// the caller leaves, so that the next call finds it done.
func (c *Caller) pull(ctx context.Context, r Request) error {
	p, err := c.pulls.join(ctx, pullKey{r.Principal.ID, r.Server}, func(ctx context.Context, progress func(plan.Progress)) error {
		_, err := c.Planner.Prepare(ctx, r.Principal, r.Server, progress)
		return err
	})
	if err != nil {
		return err
	}
	for {
		progress, changed := c.pulls.progress(p)
		if progress != (plan.Progress{}) {
			c.tell(r, pulled(r.Server, progress))
		}
		select {
		case <-p.done:
			return p.err
		case <-changed:
		case <-ctx.Done():
			return waiting(r, "pulling", ctx.Err())
		}
	}
}

func pulled(server string, p plan.Progress) string {
	if p.Total == 0 {
		return fmt.Sprintf("pulling the image of %s: %s", server, p.Status)
	}
	return fmt.Sprintf("pulling the image of %s: %s of %s", server, units.HumanSize(float64(p.Done)), units.HumanSize(float64(p.Total)))
}

// pulls are the pulls under way. The zero value is empty.
type pulls struct {
	mu      sync.Mutex
	closed  bool
	each    map[pullKey]*pull
	running sync.WaitGroup
}

type pullKey struct{ who, server string }

// A pull is shared by all who wait for it. Each reads its progress alone, so
// that one who is slow delays nobody.
type pull struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error // set before done is closed

	// Guarded by pulls.mu.
	last    plan.Progress
	changed chan struct{} // closed and replaced when last has changed
}

// join returns the pull of that key, which it starts if there is none. The pull
// outlives ctx.
func (ps *pulls) join(ctx context.Context, key pullKey, prepare func(context.Context, func(plan.Progress)) error) (*pull, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		return nil, fleet.ErrClosed
	}
	if p := ps.each[key]; p != nil {
		return p, nil
	}
	if ps.each == nil {
		ps.each = make(map[pullKey]*pull)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pull{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	ps.each[key] = p
	ps.running.Go(func() {
		defer cancel(nil)
		limited, stop := context.WithTimeoutCause(ctx, pullLimit, errPullLimit)
		defer stop()
		p.err = prepare(limited, func(progress plan.Progress) { ps.report(p, progress) })
		if p.err != nil && limited.Err() != nil {
			p.err = context.Cause(limited)
		}
		ps.mu.Lock()
		delete(ps.each, key)
		ps.mu.Unlock()
		close(p.done)
	})
	return p, nil
}

func (ps *pulls) report(p *pull, progress plan.Progress) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if progress != p.last {
		p.last = progress
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// progress returns how far a pull is, and what is closed when that changes.
func (ps *pulls) progress(p *pull) (plan.Progress, <-chan struct{}) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return p.last, p.changed
}

func (ps *pulls) close() {
	ps.mu.Lock()
	ps.closed = true
	for _, p := range ps.each {
		p.cancel(fleet.ErrClosed)
	}
	ps.mu.Unlock()
	ps.running.Wait()
}
