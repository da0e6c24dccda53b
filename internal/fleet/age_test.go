package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const forever = 1000 * time.Hour

func patient(o fleet.Order) fleet.Order {
	o.Limits = fleet.Limits{Idle: forever, Call: forever, CallMax: forever}
	return o
}

// An old server stops as soon as nobody uses it, however patient its entry is.
func TestOldServerStopsWhenIdle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := patient(w.order("git", "mcp"))
		w.answers(o, "echo", answerOf(1))
		pass(sandbox.Lifetime/2 - time.Minute)
		w.answers(o, "echo", answerOf(1))
		w.expectRunning("git")
		pass(time.Minute)
		w.expectRunning()
		w.answers(o, "echo", answerOf(2))
		w.expectEvents("start git", "stop git", "start git")
	})
}

func TestOldServerStopsAfterItsLastCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := patient(w.order("git", "mcp"))
		w.answers(o, "echo", answerOf(1))
		pass(sandbox.Lifetime/2 - 5*time.Second)
		w.answers(o, "wait", answerOf(1)) // 10 s, past the half of its life
		w.expectRunning()
	})
}

// No server runs for longer than its container is protected, not even for a
// call; before that the calls that come go to another one.
func TestLifetime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := patient(w.order("git", "mcp"))
		endless := w.starts(o, "hang")
		pass(sandbox.Lifetime - 2*time.Hour)
		w.answers(o, "echo", answerOf(1))
		pass(time.Hour)
		w.answers(o, "echo", answerOf(2))
		w.expectRunning("git", "git")
		pass(time.Hour)
		err := <-endless
		var lost *fleet.LostError
		if !errors.As(err, &lost) || !errors.Is(err, fleet.ErrExpired) || lost.Hint() != "" {
			t.Errorf("a call of 24 hours = %v, want %v", err, fleet.ErrExpired)
		}
		const want = `server "git": it ran for 24h0m0s, the longest that a server may, and was stopped`
		if err.Error() != want {
			t.Errorf("a call of 24 hours = %v, want %s", err, want)
		}
		w.expectRunning("git")
		w.answers(o, "echo", answerOf(2))
		w.expectEvents("start git", "start git", "stop git")
	})
}

// A server that never stops to ask is asked less and less; one that has calmed
// down is heard at once.
func TestFickleServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := patient(w.order("git", "fickle"))
		listed := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.listings)
		}
		w.answers(o, "echo", answerOf(1))
		pass(time.Hour)
		if got := listed(); got < 60 || got > 70 {
			t.Errorf("listed %d times in an hour, want about once a minute", got)
		}
		if _, err := w.fleet.Stop(t.Context(), "git"); err != nil {
			t.Errorf("Stop() = %v", err)
		}
		calm := patient(w.order("calm", "mcp"))
		w.answers(calm, "grow", answerOf(1))
		pass(time.Minute)
		before := listed()
		w.answers(calm, "grow", answerOf(1))
		pass(time.Second)
		if got := listed() - before; got != 1 {
			t.Errorf("listed %d times after a change, want once and at once", got)
		}
	})
}
