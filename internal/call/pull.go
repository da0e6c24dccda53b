package call

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/plan"
)

// pullLimit ends a pull that nobody waits for any more.
const pullLimit = 30 * time.Minute

// pull makes a server's image present, once however many ask. It goes on when
// the caller leaves, so that the next call finds it done.
func (c *Caller) pull(ctx context.Context, r Request) (plan.Plan, error) {
	unwatch := c.watched.add(r.Server, func(p plan.Progress) { c.tell(r, pulled(r.Server, p)) })
	defer unwatch()
	var made plan.Plan
	done := make(chan error, 1)
	c.pulling.Go(func() {
		pulling, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullLimit)
		defer cancel()
		defer c.untilClosing(cancel)()
		result, err, _ := c.pulls.Do(r.Principal.ID+"\x00"+r.Server, func() (any, error) {
			return c.Planner.Prepare(pulling, r.Principal, r.Server, func(p plan.Progress) { c.watched.tell(r.Server, p) })
		})
		if err == nil {
			made = result.(plan.Plan)
		}
		done <- err
	})
	select {
	case err := <-done:
		return made, err
	case <-ctx.Done():
		return plan.Plan{}, c.waiting(ctx, r, "pulling", context.Cause(ctx))
	}
}

func (c *Caller) untilClosing(cancel context.CancelFunc) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-c.closing:
			cancel()
		case <-stopped:
		}
	}()
	return func() { close(stopped) }
}

func pulled(server string, p plan.Progress) string {
	if p.Total == 0 {
		return fmt.Sprintf("pulling the image of %s: %s", server, p.Status)
	}
	return fmt.Sprintf("pulling the image of %s: %s of %s", server, units.HumanSize(float64(p.Done)), units.HumanSize(float64(p.Total)))
}

// watchers are the calls that want to hear of a pull.
type watchers struct {
	mu   sync.Mutex
	next int
	each map[string]map[int]func(plan.Progress)
}

func (w *watchers) add(server string, tell func(plan.Progress)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.each == nil {
		w.each = make(map[string]map[int]func(plan.Progress))
	}
	if w.each[server] == nil {
		w.each[server] = make(map[int]func(plan.Progress))
	}
	w.next++
	id := w.next
	w.each[server][id] = tell
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.each[server], id)
		if len(w.each[server]) == 0 {
			delete(w.each, server)
		}
	}
}

func (w *watchers) tell(server string, p plan.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tell := range w.each[server] {
		tell(p)
	}
}
