package call_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestPatience(t *testing.T) {
	tests := []struct {
		name    string
		set     func(*world)
		waiting string
		then    time.Duration // that the next call takes
	}{
		{"a slow pull", func(w *world) { w.pulls(time.Minute) }, "pulling", 15 * time.Second},
		{"a slow start", func(w *world) { w.fake.Before = sandboxtest.Delay(time.Minute) }, "starting", 15 * time.Second},
		{"both", func(w *world) {
			w.pulls(30 * time.Second)
			w.fake.Before = sandboxtest.Delay(30 * time.Second)
		}, "starting", 15 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
				tt.set(w)
				var err error
				if d := took(func() { err = w.failure(request("slow", "echo"), call.CodeStarting) }); d != call.DefaultPatience {
					t.Errorf("Do() took %v, want %v", d, call.DefaultPatience)
				}
				var waiting *call.WaitingError
				if !errors.As(err, &waiting) || waiting.Server != "slow" || waiting.Doing != tt.waiting {
					t.Errorf("Do() = %v, want a WaitingError while %s", err, tt.waiting)
				}
				if d := took(func() { w.answers(request("slow", "echo")) }); d != tt.then {
					t.Errorf("the next Do() took %v, want %v: the work goes on", d, tt.then)
				}
				w.expectStarted(1)
				if w.ensured > 2 {
					t.Errorf("the image was made present %d times, want at most once for each call", w.ensured)
				}
			})
		})
	}
}

// A deadline of the client's own is not taken for our patience.
func TestClientsOwnDeadline(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var waiting *call.WaitingError
		if _, err := w.caller.Do(ctx, request("git", "echo")); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &waiting) {
			t.Errorf("Do() = %v, want the context's error", err)
		}
	})
}

func TestWaitingTexts(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.pulls(time.Minute)
		w.fake.Before = sandboxtest.Delay(time.Minute)
		var texts []string
		r := answering(request("slow", "echo"), approval.Approve)
		r.Waiting = func(text string) { texts = append(texts, text) }
		if d := took(func() { w.answers(r) }); d != 2*time.Minute {
			t.Errorf("Do() took %v, want the 2m of the pull and the start", d)
		}
		want := []string{
			"pulling the image of slow: Downloading",
			"pulling the image of slow: 5MB of 10MB",
			"waiting for the approval of slow",
			"starting slow",
		}
		// The last progress may be overtaken by the end of the pull.
		if len(texts) == len(want)-1 {
			want = append(want[:1], want[2:]...)
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
	})
}

func TestSharedPull(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(40 * time.Second)
		var callers sync.WaitGroup
		for n := range 20 {
			callers.Go(func() {
				<-time.After(time.Duration(n) * time.Second)
				w.answers(request("git", "echo"))
			})
		}
		if d := took(callers.Wait); d != 40*time.Second {
			t.Errorf("all took %v, want the 40s of one pull", d)
		}
		if w.ensured != 1 {
			t.Errorf("the image was pulled %d times, want once", w.ensured)
		}
	})
}

func TestPullSurvivesItsCaller(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(40 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		first := w.starts(ctx, request("git", "echo"))
		second := w.starts(t.Context(), request("git", "echo"))
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("Do() of who left = %v, want the context's error", err)
		}
		if err := <-second; err != nil {
			t.Errorf("Do() of who stayed = %v, want nil", err)
		}
		if w.ensured != 1 {
			t.Errorf("the image was pulled %d times, want once", w.ensured)
		}
	})
}

// One client that does not read its progress holds nobody else up.
func TestSlowReaderOfProgress(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(10 * time.Second)
		slow := request("git", "echo")
		slow.Waiting = func(string) { <-time.After(time.Hour) }
		late := w.starts(t.Context(), slow)
		if d := took(func() { w.answers(request("git", "echo")) }); d != 10*time.Second {
			t.Errorf("Do() took %v, want the 10s of the pull", d)
		}
		if err := <-late; err != nil {
			t.Errorf("Do() of the slow reader = %v, want nil", err)
		}
	})
}

func TestFailedPull(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		unauthorized := errors.New("unauthorized")
		clear(w.present)
		w.ensure = func(context.Context, func(plan.Progress)) error { return unauthorized }
		err := w.failure(request("git", "echo"), call.CodeConnection)
		if !errors.Is(err, unauthorized) || !strings.HasPrefix(err.Error(), `server "git": `) {
			t.Errorf("Do() = %v, want the registry's error", err)
		}
		w.ensure = nil
		w.answers(request("git", "echo"))
	})
}

func TestEndlessPull(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(24 * time.Hour)
		r := request("git", "echo")
		r.Waiting = func(string) {}
		if d := took(func() { w.fails(r, call.CodeConnection) }); d != 30*time.Minute {
			t.Errorf("Do() took %v, want the limit of a pull", d)
		}
	})
}

func TestCloseEndsPulls(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.pulls(time.Hour)
		first := w.starts(t.Context(), request("git", "echo"))
		second := w.starts(t.Context(), request("sess", "echo"))
		if d := took(func() {
			check(t, w.caller.Close())
			check(t, w.caller.Close())
		}); d != 0 {
			t.Errorf("Close() took %v, want 0", d)
		}
		synctest.Wait()
		for _, calling := range []<-chan error{first, second} {
			if err := <-calling; !errors.Is(err, fleet.ErrClosed) || call.Code(err) != call.CodeConnection {
				t.Errorf("Do() = %v, want ErrClosed", err)
			}
		}
	})
}
