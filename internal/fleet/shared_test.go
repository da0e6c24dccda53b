package fleet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// of returns the order as an owner gives it.
func of(owner string, o fleet.Order) fleet.Order {
	o.Owner = owner
	return o
}

// Two callers who share a server have one container as long as they have one
// set of settings, and each their own otherwise: neither replaces the other's.
func TestSharedBySettings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.order("git", "mcp")
		other := changed(plain)
		w.answers(of("ann", plain), "echo", answerOf(1))
		w.answers(of("bob", plain), "echo", answerOf(1))
		w.answers(of("cid", other), "echo", answerOf(2))
		for range 3 {
			w.answers(of("ann", plain), "echo", answerOf(1))
			w.answers(of("cid", other), "echo", answerOf(2))
		}
		w.expectRunning("git", "git")
		w.expectEvents("start git", "start git")
		if n, err := w.fleet.Stop(t.Context(), "git"); n != 2 || err != nil {
			t.Errorf("Stop() = %d, %v, want both", n, err)
		}
	})
}

// Whoever changes the settings leaves the container that was theirs. It ends
// with the last who used it.
func TestSharedUntilAllHaveLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		plain := w.order("git", "mcp")
		other := changed(plain)
		w.answers(of("ann", plain), "echo", answerOf(1))
		w.answers(of("bob", plain), "echo", answerOf(1))
		w.answers(of("ann", other), "echo", answerOf(2))
		w.answers(of("bob", plain), "echo", answerOf(1))
		w.expectRunning("git", "git")
		w.answers(of("bob", other), "echo", answerOf(2))
		w.expectRunning("git")
		w.answers(of("ann", plain), "echo", answerOf(3)) // and back
		w.answers(of("bob", other), "echo", answerOf(2))
		w.expectRunning("git", "git")
		w.expectEvents("start git", "start git", "stop git", "start git")
	})
}

// What the owner alone had is gone before its replacement starts: they may
// write to the same folder.
func TestSharedWaitsForItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = func(context.Context, sandbox.Spec) error {
			if running := w.fake.Running(); len(running) > 0 {
				t.Errorf("a container is started while %v runs", running)
			}
			return nil
		}
		o := of("ann", w.order("git", "stubborn"))
		w.answers(o, "echo", answerOf(1))
		if d := took(func() { w.answers(changed(o), "echo", answerOf(1)) }); d != 5*time.Second {
			t.Errorf("the next one took %v, want the 5s of the old one's end", d)
		}
	})
}

// What is started in advance takes nothing away.
func TestSharedWarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := of("ann", w.order("git", "mcp"))
		w.answers(o, "echo", answerOf(1))
		w.fleet.Warm(changed(o))
		w.expectRunning("git") // the next call sees to the change
		w.fleet.Warm(of("bob", changed(o)))
		w.expectRunning("git", "git")
		w.answers(o, "echo", answerOf(1))
		w.answers(of("bob", changed(o)), "echo", answerOf(2))
	})
}

func TestLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		leave := func(owner string, want int) {
			t.Helper()
			if n, err := w.fleet.Leave(t.Context(), owner, "git"); n != want || err != nil {
				t.Errorf("Leave(%s) = %d, %v, want %d", owner, n, err, want)
			}
		}
		w.answers(of("ann", o), "echo", answerOf(1))
		w.answers(of("bob", o), "echo", answerOf(1))
		w.answers(scoped(of("ann", o), "ann"), "echo", answerOf(2))
		w.answers(of("ann", w.order("fs", "mcp")), "echo", answerOf(3))
		leave("nobody", 0)
		leave("ann", 1) // the one of her own; bob goes on with the other
		w.expectRunning("fs", "git")
		w.answers(of("bob", o), "echo", answerOf(1))
		leave("ann", 0)
		leave("bob", 1)
		w.expectRunning("fs")
	})
}

// Each order counts in its owner's own quota.
func TestQuotaOfOwner(t *testing.T) {
	inWorldWith(t, running(1), func(t *testing.T, w *world) {
		small, large := of("ann", w.order("a", "mcp")), of("bob", w.order("a", "mcp"))
		large.Quota = running(2)
		small.Scope, large.Scope = "ann", "bob"
		next := func(o fleet.Order, server string) fleet.Order {
			o.Spec.Server = server
			return o
		}
		busy := []<-chan error{w.starts(small, "wait"), w.starts(large, "wait"), w.starts(next(large, "b"), "wait")}
		w.expectRunning("a", "a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, o := range []fleet.Order{next(small, "b"), next(large, "c")} {
			_, err := w.call(ctx, o, "echo")
			var full *fleet.QuotaError
			if want := max(o.Quota.Running.Max, 1); !errors.As(err, &full) || full.Bound.Max != want {
				t.Errorf("Call(%s by %s) = %v, want a QuotaError with %d", o.Spec.Server, o.Owner, err, want)
			}
		}
		for _, call := range busy {
			if err := <-call; err != nil {
				t.Errorf("Call of a server that has a place = %v", err)
			}
		}
		synctest.Wait()
	})
}
