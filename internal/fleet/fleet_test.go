package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestStartsOnFirstUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = sandboxtest.Delay(time.Second)
		o := w.order("git", "mcp")
		w.expectStarted(0)
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() { w.answers(o, "echo", answerOf(1)) })
		}
		callers.Wait()
		w.expectStarted(1)
		w.answers(o, "echo", answerOf(1))
		w.expectStarted(1)
		w.expectEvents("start git")
	})
}

func TestStartGoesOnWithoutItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = sandboxtest.Delay(10 * time.Second)
		o := w.order("git", "mcp")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.call(ctx, o, "echo"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call of who leaves = %v, want the context's error", err)
		}
		pass(9 * time.Second)
		if !w.fleet.Runs(o) {
			t.Error("Runs() = false after the start, want true")
		}
		if d := took(func() { w.answers(o, "echo", answerOf(1)) }); d != 0 {
			t.Errorf("the next call took %v, want 0", d)
		}
	})
}

func TestWarmAndReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = sandboxtest.Delay(time.Second)
		o := w.order("git", "mcp")
		w.fleet.Warm(o)
		if w.fleet.Runs(o) {
			t.Error("Runs() = true before the start, want false")
		}
		if d := took(func() {
			if err := w.ready(o); err != nil {
				t.Errorf("Ready() = %v, want nil", err)
			}
		}); d != time.Second {
			t.Errorf("Ready() took %v, want 1s", d)
		}
		if w.fleet.Runs(changed(o)) {
			t.Error("Runs() of another Spec = true, want false")
		}
		w.expectStarted(1)
		pass(fleet.DefaultIdle)
		w.expectRunning() // a warm server nobody calls is idle
	})
}

func TestStopsWhenIdle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		o.Limits.Idle = 15 * time.Second
		w.answers(o, "echo", answerOf(1))
		pass(14 * time.Second)
		w.answers(o, "echo", answerOf(1)) // begins the 15 s anew
		pass(14 * time.Second)
		w.answers(o, "wait", answerOf(1)) // 10 s, past the end of the 15 s
		w.expectRunning("git")
		first, second := w.starts(o, "wait"), w.starts(o, "wait") // 20 s, one after the other
		pass(19 * time.Second)
		w.expectRunning("git")
		if err := errors.Join(<-first, <-second); err != nil {
			t.Errorf("Call = %v, want nil", err)
		}
		pass(15*time.Second - time.Nanosecond)
		w.expectRunning("git")
		pass(time.Nanosecond)
		w.expectRunning()
		w.expectEvents("start git", "stop git")
		w.answers(o, "echo", answerOf(2))
	})
}

// A call at the very moment at which the server has been idle for long enough
// meets either it or the next one, and never its end.
func TestCallAtTheEndOfIdle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		o.Limits.Idle = time.Second
		for range 100 {
			if _, err := w.call(t.Context(), o, "echo"); err != nil {
				t.Fatalf("Call = %v, want nil", err)
			}
			<-time.After(time.Second)
		}
	})
}

func TestCrash(t *testing.T) {
	tests := []struct {
		tool string
		want string
		hint string
	}{
		{"crash", `server "git" exited with code 3: boom`, "see what it wrote: dockgate logs git"},
		{
			"killed", `server "git" was ended by signal 9`,
			"the kernel kills what passes its memory limit: if it needs more, raise limits.memory of git; see what it wrote: dockgate logs git",
		},
		{"eat", `"git" passed its 500 MB limit; raise limits.memory`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				o := w.order("git", "mcp")
				o.Spec.Limits.Memory = 500 << 20
				other := w.starts(o, "hang")
				_, err := w.call(t.Context(), o, tt.tool)
				var lost *fleet.LostError
				if !errors.As(err, &lost) || err.Error() != tt.want || lost.Hint() != tt.hint {
					t.Errorf("Call(%s) = %v, want %s", tt.tool, err, tt.want)
				}
				if err := <-other; !errors.As(err, &lost) {
					t.Errorf("the other call = %v, want a LostError", err)
				}
				w.expectStarted(1) // what the server has seen is not sent again
				w.expectRunning()
				w.answers(o, "echo", answerOf(2))
				w.expectEvents("start git", "crash git", "start git")
			})
		})
	}
}

// A server that ends the conversation and lingers is stopped.
func TestLingeringServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		var lost *fleet.LostError
		if _, err := w.call(t.Context(), o, "leave"); !errors.As(err, &lost) || lost.Exit.Code != 143 {
			t.Errorf("Call(leave) = %v, want a LostError with the signal that ended it", err)
		}
		w.answers(o, "echo", answerOf(2))
		w.expectRunning("git")
	})
}

func TestUndeliveredCall(t *testing.T) {
	tests := []struct {
		kills   int
		started int
		lost    bool
	}{
		{1, 2, false},
		{2, 2, true}, // once more, and not again
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.kills), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				o := w.order("git", "mcp")
				left := tt.kills
				o.Check = func(context.Context) error {
					if left > 0 {
						left--
						w.fake.Kill("git")
						synctest.Wait() // else the request may be on its way
					}
					return nil
				}
				_, err := w.call(t.Context(), o, "echo")
				var lost *fleet.LostError
				if errors.As(err, &lost) != tt.lost || (err != nil) != tt.lost {
					t.Errorf("Call = %v, want lost = %t", err, tt.lost)
				}
				w.expectStarted(tt.started)
			})
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		o.Check = func(context.Context) error {
			if len(w.listings) == 0 {
				t.Error("Check was asked before the listing")
			}
			return errTest
		}
		if _, err := w.call(t.Context(), o, "echo"); !errors.Is(err, errTest) {
			t.Errorf("Call = %v, want Check's error", err)
		}
		if got := strings.Join(w.received, " "); strings.Contains(got, "tools/call") {
			t.Errorf("the server received %s, want no call", got)
		}
	})
}

func TestServersOwnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := w.call(t.Context(), w.order("git", "mcp"), "fail")
		var answer *jsonrpc.Error
		if !errors.As(err, &answer) {
			t.Fatalf("Call(fail) = %v, want a *jsonrpc.Error", err)
		}
		want := &jsonrpc.Error{Code: -32042, Message: "no", Data: []byte(`{"why":9007199254740993}`)}
		if diff := cmp.Diff(want, answer); diff != "" {
			t.Errorf("Call(fail) (-want +got):\n%s", diff)
		}
	})
}

func TestChangedSpec(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		busy := w.starts(o, "wait")
		w.answers(changed(o), "echo", answerOf(2))
		w.expectRunning("git", "git") // the old one has a call
		if err := <-busy; err != nil {
			t.Errorf("Call of the old one = %v, want nil", err)
		}
		w.expectRunning("git")
		w.expectEvents("start git", "start git", "stop git")
	})
}

// Two containers of one server never write to the same mounts at the same
// time unless both have calls.
func TestNewWaitsForOld(t *testing.T) {
	alone := func(w *world) {
		w.fake.Before = func(context.Context, sandbox.Spec) error {
			if running := w.fake.Running(); len(running) > 0 {
				w.t.Errorf("a container is started while %v runs", running)
			}
			return nil
		}
	}
	t.Run("an idle one of another Spec", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			alone(w)
			o := w.order("git", "stubborn")
			w.answers(o, "echo", answerOf(1))
			if d := took(func() { w.answers(changed(o), "echo", answerOf(1)) }); d != 5*time.Second {
				t.Errorf("the next one took %v, want the 5s of the old one's end", d)
			}
		})
	})
	t.Run("one that is being stopped, twice", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			alone(w)
			o := w.order("git", "stubborn")
			w.answers(o, "echo", answerOf(1))
			stops := make(chan error, 2)
			stop := func() {
				_, err := w.fleet.Stop(t.Context(), "git")
				stops <- err
			}
			go stop()
			synctest.Wait()
			waits := w.starts(o, "echo")
			go stop()
			synctest.Wait()
			if err := <-waits; !errors.Is(err, fleet.ErrStopped) {
				t.Errorf("Call of the one that was stopped while it waited = %v, want ErrStopped", err)
			}
			w.answers(o, "echo", answerOf(1))
			if err := errors.Join(<-stops, <-stops); err != nil {
				t.Errorf("Stop() = %v, want nil", err)
			}
			w.expectStarted(2)
		})
	})
	t.Run("one that nobody waits for any more", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.fake.Before = sandboxtest.Delay(10 * time.Second)
			o := w.order("git", "mcp")
			w.fleet.Warm(o)
			synctest.Wait()
			w.answers(changed(o), "echo", answerOf(1))
			w.expectStarted(1)
			w.expectEvents("start-failed git", "start git")
		})
	})
}

func TestScopes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		w.answers(o, "echo", answerOf(1))
		w.answers(scoped(o, "a"), "echo", answerOf(2))
		w.answers(scoped(o, "b"), "echo", answerOf(3))
		w.answers(scoped(o, "a"), "echo", answerOf(2))
		w.answers(scoped(w.order("fs", "mcp"), "a"), "echo", answerOf(4))
		if err := w.fleet.StopScope(t.Context(), "a"); err != nil {
			t.Errorf("StopScope() = %v, want nil", err)
		}
		w.expectRunning("git", "git")
		if n, err := w.fleet.Stop(t.Context(), "git"); n != 2 || err != nil {
			t.Errorf("Stop() = %d, %v, want 2", n, err)
		}
		w.expectRunning()
		if n, err := w.fleet.Stop(t.Context(), "git"); n != 0 || err != nil {
			t.Errorf("Stop() of what does not run = %d, %v, want 0", n, err)
		}
	})
}

func TestStop(t *testing.T) {
	stops := map[string]func(*world) error{
		"Stop": func(w *world) error { _, err := w.fleet.Stop(context.Background(), "git"); return err },
		"StopScope": func(w *world) error {
			return w.fleet.StopScope(context.Background(), "s")
		},
		"Close": func(w *world) error { return w.fleet.Close() },
	}
	tests := []struct {
		name  string
		delay time.Duration // of the start
		tool  string
		want  string
	}{
		{"starting", time.Minute, "echo", `start server "git": it was stopped`},
		{"in a call", 0, "hang", `server "git": it was stopped`},
		{"idle", 0, "echo", ""},
	}
	for name, stop := range stops {
		for _, tt := range tests {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.fake.Before = sandboxtest.Delay(tt.delay)
					o := scoped(w.order("git", "mcp"), "s")
					o.Limits.Start = 2 * time.Minute
					calling := w.starts(o, tt.tool)
					if err := stop(w); err != nil {
						t.Errorf("%s() = %v, want nil", name, err)
					}
					if got := w.fake.Running(); len(got) > 0 {
						t.Errorf("containers of %v exist after %s", got, name)
					}
					err := <-calling
					if (err == nil) != (tt.want == "") || err != nil && (err.Error() != tt.want || !errors.Is(err, fleet.ErrStopped)) {
						t.Errorf("Call = %v, want %q", err, tt.want)
					}
					_, err = w.call(t.Context(), o, "echo")
					if closed := name == "Close"; closed != errors.Is(err, fleet.ErrClosed) || !closed && err != nil {
						t.Errorf("Call after %s = %v", name, err)
					}
				})
			})
		}
	}
}

func TestStopIsNotWaitedForLongerThanAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.answers(w.order("git", "stubborn"), "echo", answerOf(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := w.fleet.Stop(ctx, "git"); n != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop() = %d, %v, want 1 and the context's error", n, err)
		}
	})
}

func TestCloseTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 10 {
			w.answers(w.order(fmt.Sprintf("s%d", i), "stubborn"), "echo", answerOf(1))
		}
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				if err := w.fleet.Close(); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
				if left := w.fake.Running(); len(left) > 0 {
					t.Errorf("containers of %v exist after Close", left)
				}
			})
		}
		if d := took(closing.Wait); d != 5*time.Second {
			t.Errorf("Close() took %v, want the 5s of one server's end", d)
		}
		w.fleet.Warm(w.order("git", "mcp"))
		if err := w.ready(w.order("git", "mcp")); !errors.Is(err, fleet.ErrClosed) {
			t.Errorf("Ready() after Close = %v, want ErrClosed", err)
		}
	})
}

// Callers come, leave and crash servers while others stop them and all ends.
func TestTumult(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for caller := range 8 {
			all.Go(func() {
				o := scoped(w.order("git", "mcp"), fmt.Sprint(caller%3))
				o.Limits = fleet.Limits{Idle: 3 * time.Millisecond, Call: 5 * time.Millisecond}
				for n := range 40 {
					tool := []string{"echo", "echo", "crash", "hang", "deaf", "fail"}[(caller+n)%6]
					if n%7 == 0 {
						o = changed(o)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond)
					_, _ = w.call(ctx, o, tool) // any answer will do
					cancel()
				}
			})
		}
		all.Go(func() {
			for range 20 {
				<-time.After(7 * time.Millisecond)
				if _, err := w.fleet.Stop(t.Context(), "git"); err != nil {
					t.Errorf("Stop() = %v, want nil", err)
				}
				w.fleet.Running()
			}
		})
		<-time.After(100 * time.Millisecond)
		if err := w.fleet.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		if left := w.fake.Running(); len(left) > 0 {
			t.Errorf("containers of %v exist after Close", left)
		}
		all.Wait()
	})
}

func TestRunning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fake.Before = sandboxtest.Delay(time.Second)
		o := w.order("git", "stubborn")
		expect := func(want ...fleet.Status) {
			t.Helper()
			if diff := cmp.Diff(want, w.fleet.Running()); diff != "" {
				t.Errorf("Running() (-want +got):\n%s", diff)
			}
		}
		expect()
		call := w.starts(o, "wait")
		second := w.starts(scoped(w.order("fs", "mcp"), "s"), "hang")
		expect(fleet.Status{Server: "fs", Scope: "s", State: "starting", Calls: 1}, fleet.Status{Server: "git", State: "starting", Calls: 1})
		pass(2 * time.Second)
		w.fake.Kill("fs")
		if err := <-second; err == nil {
			t.Error("Call of a killed server = nil, want an error")
		}
		running := w.fleet.Running()
		if len(running) != 1 || !strings.HasPrefix(running[0].Container, "fake-git-") {
			t.Fatalf("Running() = %v, want git with its container", running)
		}
		container := running[0].Container
		expect(fleet.Status{Server: "git", Container: container, State: "ready", Calls: 1})
		if err := <-call; err != nil {
			t.Errorf("Call = %v, want nil", err)
		}
		expect(fleet.Status{Server: "git", Container: container, State: "ready"})
		pass(fleet.DefaultIdle)
		expect(fleet.Status{Server: "git", Container: container, State: "stopping"})
		pass(5 * time.Second)
		expect()
	})
}

func TestListChanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		w.answers(o, "grow", answerOf(1))
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 2}, w.listings); diff != "" {
			t.Errorf("listings (-want +got):\n%s", diff)
		}
		w.listed = func(upstream.Offer) error { return errTest }
		w.answers(o, "grow", answerOf(1))
		pass(time.Second)                 // since the last listing
		w.answers(o, "echo", answerOf(1)) // it keeps running, with the old list
		if diff := cmp.Diff([]int{1, 2, 3}, w.listings); diff != "" {
			t.Errorf("listings (-want +got):\n%s", diff)
		}
	})
}

// A server that another process has stopped at the engine has not crashed: the
// call under way says so, and no number of stops keeps it from being started.
func TestStoppedFromOutside(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		for range 3 {
			ended := w.starts(o, "hang")
			w.fake.Stop("git")
			var lost *fleet.LostError
			err := <-ended
			if want := `server "git": it was stopped from outside, as dockgate stop does`; !errors.As(err, &lost) ||
				!errors.Is(err, fleet.ErrStoppedOutside) || err.Error() != want || lost.Hint() != "" {
				t.Errorf("Call(hang) = %v, want %s and no hint", err, want)
			}
		}
		if w.fleet.Failed("git") {
			t.Error("Failed(git) = true, want false")
		}
		w.answers(o, "echo", answerOf(4))
		w.expectEvents("start git", "stop git", "start git", "stop git", "start git", "stop git", "start git")
		if got := errors.Join(w.failures...); !errors.Is(got, fleet.ErrStoppedOutside) || len(w.failures) != 3 {
			t.Errorf("recorded failures = %v, want that of each stop", w.failures)
		}
	})
}

// Nor has one that is stopped before it answered.
func TestStoppedFromOutsideAtStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mute")
		w.eras[o.Spec.Program()] = legacy // else it gets another chance without the probe
		for range 3 {
			ended := w.starts(o, "echo")
			w.fake.Stop("git")
			err := <-ended
			want := `start server "git": it was stopped from outside before it answered: thinking`
			var start *fleet.StartError
			if !errors.As(err, &start) || err.Error() != want || start.Hint() != "" {
				t.Errorf("Call(echo) = %v, want %s and no hint", err, want)
			}
		}
		if w.fleet.Failed("git") {
			t.Error("Failed(git) = true, want false")
		}
	})
}
