package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// Without a progress token no answer is later than clients wait, whatever the
// call waits for.
func TestPatienceOfTheCallItself(t *testing.T) {
	tests := []struct {
		name   string
		server string
		start  time.Duration
		took   time.Duration
		token  bool
		late   bool // it was the patience that ended the call
	}{
		{"the server's own limit comes first", "git", 0, fleet.DefaultCall, false, false},
		{"what is left after a start", "git", 20 * time.Second, call.DefaultPatience, false, true},
		{"a server that may take longer", "long", 0, call.DefaultPatience, false, true},
		{"a client that sends a token", "long", 0, 5 * time.Minute, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
				w.list(definition("hang", ""))
				w.fake.Before = sandboxtest.Delay(tt.start)
				r := request(tt.server, "hang")
				if tt.token {
					r.Waiting, r.Progress = func(string) {}, func(json.RawMessage) {}
				}
				var err error
				if d := took(func() { err = w.failure(r, call.CodeTimeout) }); d != tt.took {
					t.Errorf("Do() took %v, want %v", d, tt.took)
				}
				var late *call.PatienceError
				if errors.As(err, &late) != tt.late {
					t.Errorf("Do() = %v, want the patience to have ended it: %t", err, tt.late)
				}
				if tt.late && !strings.Contains(late.Hint(), "progress token") {
					t.Errorf("Hint() = %s, want what to do", late.Hint())
				}
				synctest.Wait()
				if reasons := w.reasons(); len(reasons) != 1 || reasons[0] != err.Error() {
					t.Errorf("the server was told %q, want %q", reasons, err)
				}
				if got := w.history(); !strings.HasSuffix(got, "call:allowed result:failed:"+call.CodeTimeout) {
					t.Errorf("recorded %s, want a call that failed", got)
				}
			})
		})
	}
}

func TestOwnPatience(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.caller.Patience = 2 * time.Minute
		w.list(definition("hang", ""))
		if d := took(func() { w.fails(request("long", "hang"), call.CodeTimeout) }); d != 2*time.Minute {
			t.Errorf("Do() took %v, want 2m", d)
		}
	})
}

func TestMaxCall(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.caller.MaxCall = 10 * time.Second
		w.list(definition("hang", ""))
		r := request("long", "hang")
		r.Waiting = func(string) {}
		var err error
		if d := took(func() { err = w.failure(r, call.CodeTimeout) }); d != 10*time.Second {
			t.Errorf("Do() took %v, want 10s", d)
		}
		var late *fleet.TimeoutError
		if !errors.As(err, &late) || late.Setting != "max_call" {
			t.Errorf("Do() = %v, want the quota", err)
		}
	})
}

// A server that cannot list its tools again keeps those that were approved,
// marked, across processes; the next good list takes the mark away.
func TestStaleTools(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		stale := func() string {
			t.Helper()
			made, err := w.caller.Planner.Plan(t.Context(), principal.Local, "git")
			check(t, err)
			offer, ok, err := w.caller.Offer(t.Context(), made)
			if err != nil || !ok || len(offer.Tools) != 2 {
				t.Fatalf("Offer() = %+v, %t, %v, want two tools", offer, ok, err)
			}
			return offer.Stale
		}
		w.answers(request("git", "echo"))
		if got := stale(); got != "" {
			t.Errorf("after a good list it is stale: %s", got)
		}
		w.stop("git")
		w.list("7")
		w.answers(request("git", "echo"))
		w.fails(request("git", "nothing"), call.CodeToolNotFound)
		if got := stale(); !strings.Contains(got, "tools/list") {
			t.Errorf("after a bad list stale = %q, want the reason", got)
		}
		w.stop("git")
		w.list(definition("echo", ""), definition("other", ""))
		w.answers(request("git", "echo"))
		if got := stale(); got != "" {
			t.Errorf("after the next good list it is stale: %s", got)
		}
		// A server that never listed anything cannot start so.
		w.list("7")
		w.fails(request("long", "echo"), call.CodeConnection)
	})
}

func TestQuota(t *testing.T) {
	inBoundWorld(t, fleet.Quota{Running: fleet.Bound{Max: 1}}, func(t *testing.T, w *world) {
		w.list(definition("echo", ""), definition("hang", ""))
		w.answers(request("git", "echo"))
		w.answers(request("long", "echo")) // git was idle
		w.expectStarted(2)
		r := request("long", "hang")
		r.Waiting = func(string) {}
		calling, giveUp := context.WithCancel(t.Context())
		busy := w.starts(calling, r)
		var texts []string
		waiting := request("git", "echo")
		waiting.Waiting = func(text string) { texts = append(texts, text) }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := w.caller.Do(ctx, waiting); call.Code(err) != call.CodeQuota {
			t.Errorf("Do() = %v, want %s", err, call.CodeQuota)
		}
		if got := strings.Join(texts, ", "); got != "starting git, waiting for a place to start git" {
			t.Errorf("told %s, want what it waits for", got)
		}
		// Without a token the wait ends with the client's patience.
		var err error
		if d := took(func() { err = w.failure(request("git", "echo"), call.CodeQuota) }); d != call.DefaultPatience {
			t.Errorf("Do() took %v, want %v", d, call.DefaultPatience)
		}
		if err != nil && !strings.Contains(err.Error(), "in use by long (1 call)") {
			t.Errorf("Do() = %v, want who has the place", err)
		}
		if got := w.history(); !strings.HasSuffix(got, "call:refused:"+call.CodeQuota) {
			t.Errorf("recorded %s, want a refusal", got)
		}
		waits := w.starts(t.Context(), waiting)
		giveUp()
		if err := <-busy; call.Code(err) != call.CodeCancelled {
			t.Errorf("Do(hang) = %v, want the context's error", err)
		}
		if err := <-waits; err != nil {
			t.Errorf("Do() of who waited = %v, want nil", err)
		}
		w.expectStarted(3)
	})
}

// Many calls over more servers than may run are all answered, and no server is
// started for one of them twice.
func TestBurstWithinQuota(t *testing.T) {
	inBoundWorld(t, fleet.Quota{Running: fleet.Bound{Max: 2}}, func(t *testing.T, w *world) {
		var ended []<-chan error
		for _, server := range []string{"git", "mine", "slow", "long"} {
			ended = append(ended, w.starts(t.Context(), request(server, "echo")))
		}
		for _, end := range ended {
			if err := <-end; err != nil {
				t.Errorf("Do() = %v, want nil", err)
			}
		}
		w.expectStarted(4)
	})
}

// While a person thinks about a tool, its server makes room for others.
func TestNobodyWaitsForAPerson(t *testing.T) {
	inBoundWorld(t, fleet.Quota{Running: fleet.Bound{Max: 1}}, func(t *testing.T, w *world) {
		w.answers(request("git", "echo"))
		w.answers(request("long", "echo"))
		w.book = w.openBook(w.openStore(), approval.ModeAsk)
		check(t, w.caller.Close())
		options := w.caller.Options
		options.Book = w.book
		w.caller = call.New(options)
		w.follow()
		w.list(definition("echo", "changed"))
		held := w.starts(t.Context(), request("git", "echo"))
		if d := took(func() {
			r := request("long", "echo")
			if _, err := w.caller.Do(t.Context(), r); err != nil && call.Code(err) != consent.CodePending {
				t.Errorf("Do() = %v, want an answer or a question", err)
			}
		}); d > consent.DefaultWait {
			t.Errorf("Do() took %v, want no wait for a place", d)
		}
		if err := <-held; call.Code(err) != consent.CodePending {
			t.Errorf("Do() of the held tool = %v, want %s", err, consent.CodePending)
		}
	})
}

func TestWarm(t *testing.T) {
	client := call.Client{Principal: principal.Local, Session: "s1"}
	tests := []struct {
		name    string
		set     func(*world)
		client  call.Client
		server  string
		started int
	}{
		{"approved", func(w *world) { w.answers(answering(request("git", "echo"), approval.Approve)); w.stop("git") }, client, "git", 2},
		{"not approved", func(*world) {}, client, "git", 0},
		{"not pulled", func(w *world) { clear(w.present) }, client, "git", 0},
		{"unknown", func(*world) {}, client, "gti", 0},
		{"nobody", func(*world) {}, call.Client{}, "git", 0},
		{"running", func(w *world) { w.answers(answering(request("git", "echo"), approval.Approve)) }, client, "git", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
				tt.set(w)
				w.fake.Before = sandboxtest.Delay(10 * time.Second)
				if d := took(func() { w.caller.Warm(t.Context(), tt.client, tt.server) }); d != 0 {
					t.Errorf("Warm() took %v, want 0", d)
				}
				pass(10 * time.Second)
				w.expectStarted(tt.started)
				if n := len(w.book.Questions(approval.ProgressPending)); n != 0 {
					t.Errorf("%d questions were asked, want none", n)
				}
				if tt.started == 2 {
					if d := took(func() { w.answers(request("git", "echo")) }); d != 0 {
						t.Errorf("the call that follows took %v, want 0", d)
					}
				}
			})
		})
	}
}
