package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/fleet"
)

func TestCallLimits(t *testing.T) {
	tests := []struct {
		name   string
		limits fleet.Limits
		tool   string
		took   time.Duration
		limit  time.Duration // that passed
		hint   string
	}{
		{"progress keeps it alive", fleet.Limits{}, "work", 100 * time.Second, 0, ""},
		{"no progress", fleet.Limits{}, "hang", fleet.DefaultCall, fleet.DefaultCall, "raise timeouts.call of git, if it needs longer"},
		{"too little progress", fleet.Limits{Call: 19 * time.Second}, "work", 19 * time.Second, 19 * time.Second, "raise timeouts.call of git, if it needs longer"},
		{"too long altogether", fleet.Limits{CallMax: time.Minute}, "work", time.Minute, time.Minute, "raise timeouts.call_max of git, if it needs longer"},
		{"too long for the quota", fleet.Limits{MaxCall: 50 * time.Second}, "work", 50 * time.Second, 50 * time.Second, "raise quotas.max_call, if calls need longer"},
		{"a quota shorter than the wait for progress", fleet.Limits{MaxCall: 20 * time.Second}, "hang", 20 * time.Second, 20 * time.Second, "raise quotas.max_call, if calls need longer"},
		{"a quota that is not reached", fleet.Limits{MaxCall: 5 * time.Minute}, "work", 100 * time.Second, 0, ""},
		{"a limit above the usual maximum", fleet.Limits{Call: 20 * time.Minute}, "hang", 20 * time.Minute, 20 * time.Minute, "raise timeouts.call of git, if it needs longer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				o := w.order("git", "mcp")
				o.Limits = tt.limits
				if err := w.ready(o); err != nil {
					t.Fatal(err)
				}
				var err error
				if d := took(func() { _, err = w.call(t.Context(), o, tt.tool) }); d != tt.took {
					t.Errorf("Call(%s) took %v, want %v", tt.tool, d, tt.took)
				}
				var late *fleet.TimeoutError
				switch {
				case tt.limit == 0 && err != nil:
					t.Errorf("Call(%s) = %v, want nil", tt.tool, err)
				case tt.limit == 0:
				case !errors.As(err, &late) || late.Limit != tt.limit || late.Doing != "call" || late.Hint() != tt.hint:
					t.Errorf("Call(%s) = %v, want a TimeoutError of %v", tt.tool, err, tt.limit)
				}
			})
		})
	}
}

func TestProgressArrives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var got []string
		_, err := w.fleet.Call(t.Context(), w.order("git", "mcp"), "tools/call", params("work"), func(params json.RawMessage) {
			got = append(got, string(params))
		})
		if err != nil || len(got) != 5 {
			t.Errorf("Call(work) = %v with progress %v, want five", err, got)
		}
	})
}

// Progress is a sign of life even if nobody wants to see it.
func TestUnseenProgressCounts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.fleet.Call(t.Context(), w.order("git", "mcp"), "tools/call", params("work"), nil); err != nil {
			t.Errorf("Call(work) = %v after 100 s of progress, want nil", err)
		}
	})
}

// A server is told which limit ended a call.
func TestCancellationNamesTheLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.call(t.Context(), w.order("git", "mcp"), "hang"); err == nil {
			t.Error("Call(hang) = nil, want its limit")
		}
		synctest.Wait()
		want := []string{`server "git" did not answer the call within 30s`}
		if diff := cmp.Diff(want, w.reasons()); diff != "" {
			t.Errorf("cancellations (-want +got):\n%s", diff)
		}
	})
}

// A server that gets to no answer any more is replaced when its last call has
// returned, and one answer between is enough to go on.
func TestAbandonedCallsAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		giveUp := func(times int) {
			for range times {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := w.call(ctx, o, "hang"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Call(hang) = %v, want the context's error", err)
				}
				cancel()
			}
		}
		giveUp(15)
		w.answers(o, "echo", answerOf(1))
		giveUp(15)
		busy := w.starts(o, "wait")
		giveUp(1)
		w.answers(o, "echo", answerOf(2))
		if err := <-busy; err != nil {
			t.Errorf("Call(wait) of the one that is replaced = %v, want nil", err)
		}
		w.expectRunning("git")
		w.expectEvents("start git", "start git", "stop git")
	})
}

// A server that is silent altogether is found out even by callers who wait
// less than its own limit, but not while it has other calls.
func TestImpatientCallsOfASilentServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		o.Limits.Call = time.Hour
		patient := w.starts(o, "hang")
		impatient := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := w.call(ctx, o, "deaf"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Call(deaf) = %v, want the context's error", err)
			}
		}
		impatient()
		pass(10 * time.Second)
		w.expectEvents("start git")
		if _, err := w.fleet.Stop(t.Context(), "git"); err != nil {
			t.Error(err)
		}
		if err := <-patient; !errors.Is(err, fleet.ErrStopped) {
			t.Errorf("Call(hang) = %v, want ErrStopped", err)
		}
		impatient()
		pass(10 * time.Second)
		w.expectEvents("start git", "stop git", "start git", "crash git")
		if len(w.failures) != 1 || !errors.Is(w.failures[0], fleet.ErrSilent) {
			t.Errorf("recorded %v, want ErrSilent", w.failures)
		}
	})
}

// A server need not answer a cancellation, but a ping: then it goes on.
func TestExpiredCallOfALivingServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		var late *fleet.TimeoutError
		if _, err := w.call(t.Context(), o, "hang"); !errors.As(err, &late) {
			t.Errorf("Call(hang) = %v, want a TimeoutError", err)
		}
		pass(10 * time.Second)
		if got := w.reasons(); len(got) != 1 {
			t.Errorf("the server was told %q, want one cancellation", got)
		}
		w.answers(o, "echo", answerOf(1))
		w.expectEvents("start git")
	})
}

func TestExpiredCallOfASilentServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		calls := []<-chan error{w.starts(o, "deaf")}
		pass(29 * time.Second)
		calls = append(calls, w.starts(o, "echo"), w.starts(o, "echo"))
		var late *fleet.TimeoutError
		if err := <-calls[0]; !errors.As(err, &late) {
			t.Errorf("Call(deaf) = %v, want a TimeoutError", err)
		}
		var lost *fleet.LostError
		d := took(func() {
			for _, other := range calls[1:] {
				if err := <-other; !errors.As(err, &lost) || !errors.Is(err, fleet.ErrSilent) {
					t.Errorf("the other call = %v, want a LostError for silence", err)
				}
			}
		})
		// 2 s for the ping, 2 s until SIGTERM.
		if d != 4*time.Second {
			t.Errorf("the other calls ended after %v, want 4s", d)
		}
		w.expectEvents("start git", "crash git")
		if len(w.failures) != 1 || !errors.Is(w.failures[0], fleet.ErrSilent) {
			t.Errorf("recorded %v, want ErrSilent", w.failures)
		}
		w.answers(o, "echo", answerOf(2))
	})
}

// A server that ends by itself while it is probed has crashed, and is not
// taken for a silent one.
func TestCrashDuringProbe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		var late *fleet.TimeoutError
		if _, err := w.call(t.Context(), o, "deaf"); !errors.As(err, &late) {
			t.Errorf("Call(deaf) = %v, want a TimeoutError", err)
		}
		synctest.Wait()
		w.fake.Kill("git")
		synctest.Wait()
		w.expectEvents("start git", "crash git")
		if len(w.failures) != 1 || errors.Is(w.failures[0], fleet.ErrSilent) {
			t.Errorf("recorded %v, want an exit", w.failures)
		}
	})
}

func TestCloseDuringProbe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		o.Limits.Call = time.Second
		expired := w.starts(o, "deaf")
		pass(time.Second)
		if d := took(func() {
			if err := w.fleet.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
		}); d > 2*time.Second {
			t.Errorf("Close() took %v, want at most the server's end", d)
		}
		var late *fleet.TimeoutError
		if err := <-expired; !errors.As(err, &late) {
			t.Errorf("Call(deaf) = %v, want a TimeoutError", err)
		}
	})
}

func TestClientCancels(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := w.call(ctx, o, "hang")
			ended <- err
		}()
		synctest.Wait()
		cancel(errTest)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Call = %v, want the context's error", err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"told to fail"}, w.reasons()); diff != "" {
			t.Errorf("cancellations (-want +got):\n%s", diff)
		}
		w.answers(o, "echo", answerOf(1))

		late, cancelLate := context.WithTimeout(t.Context(), time.Second)
		defer cancelLate()
		if _, err := w.call(late, o, "hang"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call = %v, want the context's error", err)
		}
		synctest.Wait()
		if got := w.reasons(); len(got) != 2 || got[1] != "timed out" {
			t.Errorf("cancellations = %q, want one that timed out", got)
		}
	})
}

// Nobody waits for the end of a dead server longer than they want.
func TestClientLeavesALostCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.call(ctx, o, "leave"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call = %v, want the context's error", err)
		}
	})
}
