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

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// inFullWorld runs a test with a quota, and checks at every start that it holds.
func inFullWorld(t *testing.T, quota fleet.Quota, run func(*testing.T, *world)) {
	t.Helper()
	inWorldWith(t, quota, func(t *testing.T, w *world) {
		w.fake.Before = func(_ context.Context, spec sandbox.Spec) error {
			if n := len(w.fake.Running()); quota.Running.Max > 0 && n >= int(quota.Running.Max) {
				t.Errorf("%s is started while %d containers exist, want less than %d", spec.Server, n, quota.Running.Max)
			}
			return nil
		}
		run(t, w)
	})
}

func running(n int64) fleet.Quota { return fleet.Quota{Running: fleet.Bound{Max: n}} }

// sized returns an order for a server with that much memory.
func (w *world) sized(server string, memory int64) fleet.Order {
	o := w.order(server, "mcp")
	o.Spec.Limits.Memory = memory
	o.Digest = o.Spec.Digest()
	return o
}

func TestIdleServerMakesRoom(t *testing.T) {
	inFullWorld(t, running(2), func(t *testing.T, w *world) {
		a, b, c := w.order("a", "mcp"), w.order("b", "mcp"), w.order("c", "mcp")
		w.answers(a, "echo", answerOf(1))
		pass(time.Second)
		w.answers(b, "echo", answerOf(2))
		pass(time.Second)
		w.answers(a, "echo", answerOf(1))
		w.answers(c, "echo", answerOf(3))
		w.expectRunning("a", "c") // b was idle for longest
		w.expectEvents("start a", "start b", "stop b", "start c")
	})
}

// The container that makes room is gone before the next one is there.
func TestStubbornServerMakesRoom(t *testing.T) {
	inFullWorld(t, running(1), func(t *testing.T, w *world) {
		w.answers(w.order("a", "stubborn"), "echo", answerOf(1))
		if d := took(func() { w.answers(w.order("b", "mcp"), "echo", answerOf(1)) }); d != 5*time.Second {
			t.Errorf("Call took %v, want the 5s of the other one's end", d)
		}
	})
}

func TestCallWaitsForAPlace(t *testing.T) {
	inFullWorld(t, running(1), func(t *testing.T, w *world) {
		busy := w.starts(w.order("a", "mcp"), "wait") // 10 s
		var queued []string
		b := w.order("b", "mcp")
		b.Queued = func(reason *fleet.QuotaError) { queued = append(queued, reason.Error()) }
		if d := took(func() { w.answers(b, "echo", answerOf(2)) }); d != 10*time.Second {
			t.Errorf("Call took %v, want the 10s of the other call", d)
		}
		if err := <-busy; err != nil {
			t.Errorf("the call that had the place = %v, want nil", err)
		}
		want := `QUOTA_EXCEEDED: no place for server "b", because no more than 1 server may run; in use by a (1 call); waiting: 1`
		if len(queued) != 1 || queued[0] != want {
			t.Errorf("told %q, want once %q", queued, want)
		}
		w.expectRunning("b")
	})
}

func TestNoPlace(t *testing.T) {
	quota := fleet.Quota{Running: fleet.Bound{Max: 1, Place: "/p/mcp-limits.yaml"}, Waiting: 1}
	tests := []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		took time.Duration
	}{
		{"until the caller's deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Second)
		}, 5 * time.Second},
		{"for a minute", context.WithCancel, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inFullWorld(t, quota, func(t *testing.T, w *world) {
				a := w.order("a", "mcp")
				a.Limits.Call = time.Hour
				busy := w.starts(a, "hang")
				ctx, cancel := tt.ctx(t.Context())
				defer cancel()
				var full *fleet.QuotaError
				var err error
				if d := took(func() { _, err = w.call(ctx, w.order("b", "mcp"), "echo") }); d != tt.took || !errors.As(err, &full) {
					t.Errorf("Call = %v after %v, want a QuotaError after %v", err, d, tt.took)
				}
				want := "wait until one of them is done, stop one, or raise quotas.max_running in /p/mcp-limits.yaml"
				if full != nil && (len(full.Holders) != 1 || full.Holders[0].Server != "a" || full.Hint() != want) {
					t.Errorf("Call = %+v with the hint %q, want a as the holder and %q", full, full.Hint(), want)
				}
				w.expectStarted(1)
				if _, err := w.fleet.Stop(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				if err := <-busy; !errors.Is(err, fleet.ErrStopped) {
					t.Errorf("Call(hang) = %v, want ErrStopped", err)
				}
			})
		})
	}
}

// More than the queue takes is refused at once; who leaves the queue frees a
// place in it.
func TestFullQueue(t *testing.T) {
	quota := fleet.Quota{Running: fleet.Bound{Max: 1}, Waiting: 2}
	inFullWorld(t, quota, func(t *testing.T, w *world) {
		busy := w.starts(w.order("a", "mcp"), "hang") // 30 s
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := w.call(ctx, w.order("b", "mcp"), "echo")
			left <- err
		}()
		synctest.Wait()
		waits := w.starts(w.order("c", "mcp"), "echo")
		var full *fleet.QuotaError
		if d := took(func() {
			if _, err := w.call(t.Context(), w.order("d", "mcp"), "echo"); !errors.As(err, &full) || full.Waiting != 2 {
				t.Errorf("Call = %v, want a QuotaError with 2 that wait", err)
			}
		}); d != 0 {
			t.Errorf("Call took %v, want to be refused at once", d)
		}
		// A server that runs needs no place.
		if _, err := w.call(t.Context(), w.order("a", "mcp"), "echo"); err != nil {
			t.Errorf("Call of the one that runs = %v, want nil", err)
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Call of who leaves = %v, want the context's error", err)
		}
		last := w.starts(w.order("d", "mcp"), "echo")
		if err := <-busy; err == nil {
			t.Error("Call(hang) = nil, want its limit")
		}
		if err := errors.Join(<-waits, <-last); err != nil {
			t.Errorf("the calls that waited = %v, want nil", err)
		}
		w.expectEvents("start a", "stop a", "start c", "stop c", "start d")
	})
}

func TestMemoryQuota(t *testing.T) {
	quota := fleet.Quota{Memory: fleet.Bound{Max: 1000}}
	inWorldWith(t, quota, func(t *testing.T, w *world) {
		w.answers(w.sized("a", 400), "echo", answerOf(1))
		pass(time.Second)
		w.answers(w.sized("b", 500), "echo", answerOf(2))
		pass(time.Second)
		w.answers(w.sized("c", 100), "echo", answerOf(3)) // exactly full
		w.expectRunning("a", "b", "c")
		w.answers(w.sized("d", 600), "echo", answerOf(4)) // a and b are not too much
		w.expectRunning("c", "d")
		busy := w.starts(w.sized("c", 100), "wait")
		var full *fleet.QuotaError
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.call(ctx, w.sized("e", 950), "echo"); !errors.As(err, &full) || full.Setting != "max_total_memory" {
			t.Errorf("Call = %v, want a QuotaError for memory", err)
		}
		w.expectRunning("c", "d") // nobody was ended in vain
		if d := took(func() {
			_, err := w.call(t.Context(), w.sized("f", 1001), "echo")
			want := `QUOTA_EXCEEDED: server "f" may use 1001B of memory, and all together not more than 1000B of memory`
			if !errors.As(err, &full) || err.Error() != want || full.Hint() != "raise quotas.max_total_memory" {
				t.Errorf("Call = %v, want %s", err, want)
			}
		}); d != 0 {
			t.Errorf("what never fits was refused after %v, want at once", d)
		}
		if err := <-busy; err != nil {
			t.Error(err)
		}
	})
}

// Each owner has a quota of their own.
func TestOwners(t *testing.T) {
	inWorldWith(t, running(1), func(t *testing.T, w *world) {
		owned := func(server, owner string) fleet.Order {
			o := scoped(w.order(server, "mcp"), owner)
			o.Owner = owner
			return o
		}
		busy := w.starts(owned("a", "ann"), "wait")
		w.answers(owned("a", "bob"), "echo", answerOf(2))
		w.answers(owned("b", "bob"), "echo", answerOf(3))
		w.expectRunning("a", "b")
		if err := <-busy; err != nil {
			t.Error(err)
		}
	})
}

// A burst over more servers than may run is served, each started once.
func TestBurst(t *testing.T) {
	inFullWorld(t, running(3), func(t *testing.T, w *world) {
		var callers sync.WaitGroup
		for n := range 12 {
			for range 2 {
				callers.Go(func() {
					o := w.order(fmt.Sprintf("s%02d", n), "mcp")
					hold, err := w.fleet.Ready(t.Context(), o)
					if err != nil {
						t.Errorf("Ready() = %v, want nil", err)
					}
					defer hold.Release()
					if _, err := w.call(t.Context(), o, "echo"); err != nil {
						t.Errorf("Call = %v, want nil", err)
					}
				})
			}
		}
		callers.Wait()
		if got := w.fake.Started(); got < 12 || got > 24 {
			t.Errorf("%d containers were started, want one for each server, two at most", got)
		}
	})
}

// Who holds a server keeps its place.
func TestHold(t *testing.T) {
	inFullWorld(t, running(1), func(t *testing.T, w *world) {
		hold, err := w.fleet.Ready(t.Context(), w.order("a", "mcp"))
		if err != nil {
			t.Fatal(err)
		}
		waits := w.starts(w.order("b", "mcp"), "echo")
		pass(30 * time.Second)
		w.expectRunning("a")
		hold.Release()
		if err := <-waits; err != nil {
			t.Errorf("Call = %v, want nil once the place is free", err)
		}
		w.expectRunning("b")
	})
}

func TestCloseEndsTheQueue(t *testing.T) {
	inFullWorld(t, running(1), func(t *testing.T, w *world) {
		busy := w.starts(w.order("a", "mcp"), "hang")
		waits := w.starts(w.order("b", "mcp"), "echo")
		if err := w.fleet.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waits; !errors.Is(err, fleet.ErrClosed) {
			t.Errorf("Call that waits = %v, want ErrClosed", err)
		}
		if err := <-busy; !errors.Is(err, fleet.ErrStopped) {
			t.Errorf("Call = %v, want ErrStopped", err)
		}
	})
}

func TestWarmIsOneAtATime(t *testing.T) {
	inWorldWith(t, running(3), func(t *testing.T, w *world) {
		w.fake.Before = sandboxtest.Delay(time.Second)
		for n := range 5 {
			o := w.order(fmt.Sprintf("s%d", n), "mcp")
			w.fleet.Warm(o)
			w.fleet.Warm(o) // the same again
		}
		for n := range 5 {
			synctest.Wait()
			starting := 0
			for _, s := range w.fleet.Running() {
				if s.State == "starting" {
					starting++
				}
			}
			if want := n < 3; (starting == 1) != want {
				t.Errorf("after %d s, %d servers are starting, want one at a time, and three in all", n, starting)
			}
			pass(time.Second)
		}
		w.expectRunning("s0", "s1", "s2")
		pass(fleet.DefaultIdle)
		w.expectRunning() // nobody called them
	})
}

// What is started in advance is in nobody's way.
func TestWarmMakesRoom(t *testing.T) {
	t.Run("no running one goes for it", func(t *testing.T) {
		inFullWorld(t, running(1), func(t *testing.T, w *world) {
			w.answers(w.order("a", "mcp"), "echo", answerOf(1))
			w.fleet.Warm(w.order("b", "mcp"))
			w.expectRunning("a")
		})
	})
	t.Run("a call takes its place", func(t *testing.T) {
		inWorldWith(t, running(1), func(t *testing.T, w *world) {
			w.fake.Before = func(ctx context.Context, spec sandbox.Spec) error {
				if spec.Server == "a" {
					return sandboxtest.Delay(20*time.Second)(ctx, spec)
				}
				return nil
			}
			w.fleet.Warm(w.order("a", "mcp"))
			synctest.Wait()
			if d := took(func() { w.answers(w.order("b", "mcp"), "echo", answerOf(1)) }); d != 0 {
				t.Errorf("Call took %v, want no wait for what is started in advance", d)
			}
			w.expectRunning("b")
		})
	})
	t.Run("a call of it joins", func(t *testing.T) {
		inWorldWith(t, running(1), func(t *testing.T, w *world) {
			w.fake.Before = sandboxtest.Delay(10 * time.Second)
			o := w.order("a", "mcp")
			w.fleet.Warm(o)
			pass(4 * time.Second)
			if d := took(func() { w.answers(o, "echo", answerOf(1)) }); d != 6*time.Second {
				t.Errorf("Call took %v, want what is left of the start", d)
			}
			w.expectStarted(1)
		})
	})
	t.Run("nobody waits in the queue behind it", func(t *testing.T) {
		inFullWorld(t, running(1), func(t *testing.T, w *world) {
			busy := w.starts(w.order("a", "mcp"), "wait")
			waits := w.starts(w.order("b", "mcp"), "wait")
			w.fleet.Warm(w.order("c", "mcp"))
			if err := errors.Join(<-busy, <-waits); err != nil {
				t.Error(err)
			}
			w.expectEvents("start a", "stop a", "start b")
		})
	})
	t.Run("one that failed rests", func(t *testing.T) {
		inWorldWith(t, running(1), func(t *testing.T, w *world) {
			w.broken.Store(true)
			for range 5 {
				w.fleet.Warm(w.order("a", "mcp"))
				synctest.Wait()
			}
			w.expectEvents("start-failed a", "start-failed a") // the first failure costs nothing
		})
	})
}

// Callers of many servers come, leave, crash and stop them, and the quota holds.
func TestTumultWithinQuota(t *testing.T) {
	inFullWorld(t, fleet.Quota{Running: fleet.Bound{Max: 2}, Waiting: 4}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for caller := range 10 {
			all.Go(func() {
				for n := range 40 {
					o := w.order(fmt.Sprint("s", (caller+n)%5), "mcp")
					o.Limits = fleet.Limits{Idle: 3 * time.Millisecond, Call: 5 * time.Millisecond}
					tool := []string{"echo", "echo", "crash", "hang", "fail"}[(caller+n)%5]
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%7)*time.Millisecond)
					_, _ = w.call(ctx, o, tool) // any answer will do
					cancel()
					w.fleet.Warm(o)
				}
			})
		}
		all.Wait()
		pass(time.Minute)
		w.expectRunning()
		if text := fmt.Sprint(w.events); !strings.Contains(text, "start s0") {
			t.Errorf("recorded %s, want starts", text)
		}
	})
}

// Remote servers have places of their own, and take none of the others'.
func TestRemotePlaces(t *testing.T) {
	quota := fleet.Quota{Running: fleet.Bound{Max: 1}, Remote: fleet.Bound{Max: 1}}
	inWorldWith(t, quota, func(t *testing.T, w *world) {
		remote := func(server string) fleet.Order {
			o := w.order(server, "mcp")
			o.Spec.Remote = &sandbox.Remote{URL: "https://" + server}
			o.Digest = o.Spec.Digest()
			return o
		}
		local := w.order("local", "mcp")
		w.answers(local, "echo", answerOf(1))
		hold, err := w.fleet.Ready(t.Context(), remote("a"))
		if err != nil {
			t.Fatal(err)
		}
		w.expectRunning("a", "local") // the remote one does not end it
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.fleet.Ready(ctx, remote("b"))
		var full *fleet.QuotaError
		if !errors.As(err, &full) || full.Setting != "max_remote" || !strings.Contains(err.Error(), "no more than 1 remote server may be connected; in use by a (1 call)") {
			t.Errorf("Ready(b) = %v, want no place, because of a", err)
		}
		hold.Release()
		w.answers(remote("b"), "echo", answerOf(3))
		w.expectRunning("b", "local")
	})
}
