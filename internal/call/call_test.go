package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

func TestWholeWay(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		r := answering(request("git", "echo"), approval.Approve)
		w.answers(r)
		w.answers(r)
		w.expectStarted(1)
		if diff := cmp.Diff([]string{string(r.Params), string(r.Params)}, w.calls()); diff != "" {
			t.Errorf("the server received (-want +got):\n%s", diff)
		}
		want := "approval:approved approval:pinned start:start call:allowed result:ok call:allowed result:ok"
		if got := w.history(); got != want {
			t.Errorf("recorded %s, want %s", got, want)
		}
		records := w.records()
		decision, result := records[3], records[4]
		if decision.Server != "git" || decision.Tool != "echo" || decision.Principal != "local" || decision.Session != "s1" ||
			decision.Arguments != audit.Digest(r.Arguments) || decision.Detail["image"] != "sha256:raw" ||
			decision.Detail["method"] != "tools/call" || decision.Detail["via"] != "direct" {
			t.Errorf("recorded the decision %+v, want all that is known", decision)
		}
		if result.Bytes != int64(len(echoed)) || result.Arguments != decision.Arguments {
			t.Errorf("recorded the result %+v, want its %d bytes", result, len(echoed))
		}
	})
}

func TestPersonAnswers(t *testing.T) {
	tests := []struct {
		name    string
		answer  approval.Answer
		code    string
		history string
	}{
		{"approve", approval.Approve, "", "approval:approved approval:pinned start:start call:allowed result:ok"},
		{"deny", approval.Deny, consent.CodeDenied, "approval:denied denial:refused:APPROVAL_DENIED"},
		{"dismiss", approval.Dismiss, consent.CodePending, "call:refused:APPROVAL_PENDING"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
				var err error
				if d := took(func() { _, err = w.caller.Do(t.Context(), answering(request("git", "echo"), tt.answer)) }); d != 0 {
					t.Errorf("Do() took %v, want 0", d)
				}
				if call.Code(err) != tt.code || (err == nil) != (tt.code == "") {
					t.Errorf("Do() = %v, want code %q", err, tt.code)
				}
				if tt.code != "" {
					w.expectStarted(0)
				}
				if got := w.history(); got != tt.history {
					t.Errorf("recorded %s, want %s", got, tt.history)
				}
			})
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	tests := []struct {
		name   string
		set    func(*world, *call.Request)
		answer approval.Answer // of another process, after 10 s
		took   time.Duration
		code   string
	}{
		{"nobody answers", func(*world, *call.Request) {}, approval.Dismiss, consent.DefaultWait, consent.CodePending},
		{"a client with more time", func(_ *world, r *call.Request) { r.ApprovalWait = 40 * time.Second }, approval.Dismiss, 40 * time.Second, consent.CodePending},
		{"a client without a token and too much time", func(_ *world, r *call.Request) { r.ApprovalWait = time.Hour }, approval.Dismiss, call.DefaultPatience, consent.CodePending},
		{"a client with a token and much time", func(_ *world, r *call.Request) {
			r.ApprovalWait, r.Waiting = 2*time.Minute, func(string) {}
		}, approval.Dismiss, 2 * time.Minute, consent.CodePending},
		{"after a slow pull", func(w *world, _ *call.Request) { w.pulls(30 * time.Second) }, approval.Dismiss, call.DefaultPatience, consent.CodePending},
		{"another process approves", func(*world, *call.Request) {}, approval.Approve, 10 * time.Second, ""},
		{"another process denies", func(*world, *call.Request) {}, approval.Deny, 10 * time.Second, consent.CodeDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
				w.follow()
				r := request("git", "echo")
				tt.set(w, &r)
				began := time.Now()
				calling := w.starts(t.Context(), r)
				if tt.answer != approval.Dismiss {
					pass(10 * time.Second)
					w.decide(tt.answer)
				}
				err := <-calling
				if call.Code(err) != tt.code || (err == nil) != (tt.code == "") {
					t.Errorf("Do() = %v, want code %q", err, tt.code)
				}
				// What another process decides is seen within a quarter of a second.
				if d := time.Since(began); d < tt.took || d > tt.took+250*time.Millisecond {
					t.Errorf("Do() took %v, want %v", d, tt.took)
				}
				if tt.code != "" {
					w.expectStarted(0)
				}
			})
		})
	}
}

func TestNobodyIsRefused(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		r := request("git", "echo")
		r.Principal = principal.Principal{}
		if err := w.failure(r, consent.CodeDenied); !errors.Is(err, call.ErrNobody) {
			t.Errorf("Do() by nobody = %v, want ErrNobody", err)
		}
		w.expectStarted(0)
		if got, want := w.history(), "call:refused:APPROVAL_DENIED"; got != want {
			t.Errorf("recorded %s, want %s", got, want)
		}
	})
}

var errDisk = errors.New("no space left on device")

func TestRecordFails(t *testing.T) {
	tests := []struct {
		name     string
		fails    int // which record
		tool     string
		withheld bool
		calls    int
	}{
		{"the decision's", 1, "echo", false, 0},
		{"the result's", 2, "echo", true, 1},
		{"an error's", 2, "fail", true, 1},
		{"a crash's", 2, "crash", true, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
				w.list(definition("echo", ""), definition("fail", ""), definition("crash", ""))
				n := 0
				w.append = func(audit.Record) error {
					if n++; n == tt.fails {
						return errDisk
					}
					return nil
				}
				var failed *call.RecordError
				err := w.failure(request("git", tt.tool), call.CodeAudit)
				if !errors.As(err, &failed) || failed.Withheld != tt.withheld || !errors.Is(err, errDisk) {
					t.Errorf("Do() = %v, want a RecordError with withheld = %t", err, tt.withheld)
				}
				if got := len(w.calls()); got != tt.calls {
					t.Errorf("the server got %d calls, want %d", got, tt.calls)
				}
			})
		})
	}
	t.Run("a refusal's", func(t *testing.T) {
		inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
			w.append = func(audit.Record) error { return errDisk }
			w.fails(answering(request("git", "echo"), approval.Deny), call.CodeAudit)
			if err := w.caller.Ready(t.Context(), answering(request("git", "echo"), approval.Deny)); call.Code(err) != call.CodeAudit {
				t.Errorf("Ready() = %v, want %s", err, call.CodeAudit)
			}
		})
	})
}

// What others wrote may be long, and a record may not.
func TestLongNames(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		long := strings.Repeat("x", 100<<10)
		w.fails(request("git", long), call.CodeToolNotFound)
		w.fails(request(long, "echo"), call.CodeToolNotFound)
		r := request("git", "demo://"+long)
		r.Method = "resources/read"
		w.answers(r)
		w.settings = map[string]any{"mode": "fast", long: "y"}
		w.caller.Planner.ForgetAll()
		w.fails(request("git", "echo"), call.CodeConfiguration)
	})
}

func TestUnknownTool(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		var unknown *call.UnknownItemError
		for range 3 { // the first has to start the server to know
			err := w.failure(request("git", "ecko"), call.CodeToolNotFound)
			if !errors.As(err, &unknown) || err.Error() != `server "git" has no tool "ecko"; nearest: echo; it has: echo, other` {
				t.Errorf("Do() = %v, want the nearest", err)
			}
			w.stop("git")
		}
		w.expectStarted(1)
		if len(w.calls()) > 0 {
			t.Errorf("the server got %v, want nothing", w.calls())
		}
		if err := w.failure(request("gitt", "echo"), call.CodeToolNotFound); !strings.Contains(err.Error(), "nearest: git") {
			t.Errorf("Do() = %v, want the nearest server", err)
		}
	})
}

// pending is a call that waits for a person's word about a tool alone.
func (w *world) pending(r call.Request, state approval.State) {
	w.t.Helper()
	var pending *consent.PendingError
	err := w.failure(r, consent.CodePending)
	if !errors.As(err, &pending) || pending.Tool != r.Item || pending.State != state {
		w.t.Errorf("Do(%s) = %v, want the tool pending because it is %v", r.Item, err, state)
	}
}

func TestHeldTools(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.answers(answering(request("git", "echo"), approval.Approve))
		w.stop("git")
		w.list(definition("echo", "now with more"), definition("other", ""), definition("new", ""))
		w.pending(request("git", "echo"), approval.Changed)
		w.answers(request("git", "other"))
		w.pending(request("git", "new"), approval.Missing)
		if got := len(w.calls()); got != 2 {
			t.Errorf("the server got %d calls, want 2", got)
		}
		w.follow()
		calling := w.starts(t.Context(), request("git", "echo"))
		w.decide(approval.Approve)
		if err := <-calling; err != nil {
			t.Errorf("Do() after the approval = %v, want nil", err)
		}
		w.answers(request("git", "new"))
		w.stop("git")
		w.list(definition("echo", "and more"))
		w.fails(answering(request("git", "echo"), approval.Deny), consent.CodeDenied)
	})
}

// A server that is started anew between the decision and the delivery, and
// lists another tool then, does not get the call.
func TestChangedAtTheLastMoment(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.answers(answering(request("git", "echo"), approval.Approve))
		w.append = func(r audit.Record) error {
			if r.Kind == audit.KindCall {
				w.stop("git")
				w.list(definition("echo", "now with more"))
			}
			return nil
		}
		w.pending(request("git", "echo"), approval.Changed)
		if got := len(w.calls()); got != 1 {
			t.Errorf("the server got %d calls, want the first", got)
		}
		want := "start:stop call:allowed start:start result:failed:APPROVAL_PENDING"
		if got := w.history(); !strings.HasSuffix(got, want) {
			t.Errorf("recorded %s, want %s at the end", got, want)
		}
	})
}

// A name stands for one tool, the first that has it; without one there is none.
func TestRepeatedName(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.list(`{"description":"nameless"}`, definition("echo", "first"), definition("echo", "second"))
		w.answers(answering(request("git", "echo"), approval.Approve))
		made, err := w.caller.Planner.Plan(t.Context(), principal.Local, "git")
		check(t, err)
		offer, ok, err := w.caller.Offer(t.Context(), made)
		if err != nil || !ok || len(offer.Tools) != 1 || !strings.Contains(string(offer.Tools[0].JSON), "first") {
			t.Errorf("Offer() = %v, %t, %v, want the first tool alone", offer.Tools, ok, err)
		}
	})
}

// Who revokes an approval and gives it again need not restart the server.
func TestApprovedAnew(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.answers(answering(request("git", "echo"), approval.Approve))
		_, err := w.book.Revoke(t.Context(), "git", approval.Decision{Channel: "terminal", By: principal.Local})
		check(t, err)
		w.fails(request("git", "echo"), consent.CodePending)
		w.answers(answering(request("git", "echo"), approval.Approve))
		w.expectStarted(1)
		w.answers(request("git", "other"))
	})
}

func TestReady(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		r := call.Request{Client: request("git", "").Client, Server: "git", Method: "mcp_add"}
		if err := w.caller.Ready(t.Context(), answering(r, approval.Approve)); err != nil {
			t.Errorf("Ready() = %v, want nil", err)
		}
		w.expectStarted(1)
		made, err := w.caller.Planner.Plan(t.Context(), principal.Local, "git")
		check(t, err)
		if !w.caller.Approved(made) {
			t.Error("Approved() = false, want true")
		}
		r.Server = "sess"
		if err := w.caller.Ready(t.Context(), answering(r, approval.Deny)); call.Code(err) != consent.CodeDenied {
			t.Errorf("Ready() = %v, want a denial", err)
		}
		want := "approval:approved approval:pinned start:start approval:denied denial:refused:APPROVAL_DENIED"
		if got := w.history(); got != want {
			t.Errorf("recorded %s, want %s", got, want)
		}
	})
}

func TestPreload(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.answers(request("git", "echo"))
		made, err := w.caller.Planner.Plan(t.Context(), principal.Local, "git")
		check(t, err)
		never, err := w.caller.Planner.Plan(t.Context(), principal.Local, "sdk")
		check(t, err)
		check(t, w.caller.Preload(t.Context(), map[string]plan.Plan{"git": made, "sdk": never}))
		if _, ok, err := w.caller.Offer(t.Context(), made); !ok || err != nil {
			t.Errorf("Offer() = %t, %v, want true", ok, err)
		}
		if _, ok, err := w.caller.Offer(t.Context(), never); ok || err != nil {
			t.Errorf("Offer() of what never ran = %t, %v, want false", ok, err)
		}
	})
}

func TestScopes(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		do := func(server, who, session string) {
			t.Helper()
			r := request(server, "echo")
			r.Principal, r.Session = principal.Principal{ID: who}, session
			w.answers(r)
		}
		for _, tt := range []struct {
			server  string
			started int
		}{{"git", 1}, {"mine", 2}, {"sess", 3}} {
			before := w.fake.Started()
			do(tt.server, "ann", "1")
			do(tt.server, "ann", "2")
			do(tt.server, "bob", "3")
			do(tt.server, "ann", "1")
			if got := w.fake.Started() - before; got != tt.started {
				t.Errorf("%s: %d containers, want %d", tt.server, got, tt.started)
			}
		}
		before := len(w.fake.Running())
		check(t, w.fleet.StopScope(t.Context(), request("", "").SessionScope()))
		check(t, w.fleet.StopScope(t.Context(), call.Client{Principal: principal.Principal{ID: "ann"}, Session: "1"}.SessionScope()))
		if got := len(w.fake.Running()); got != before-1 {
			t.Errorf("%d containers after a session's end, want %d", got, before-1)
		}
	})
}

func TestServersOwnError(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.list(definition("fail", ""))
		_, err := w.caller.Do(t.Context(), request("git", "fail"))
		want := &jsonrpc.Error{Code: -32042, Message: "no", Data: json.RawMessage(`{"why":9007199254740993}`)}
		var answer *jsonrpc.Error
		if !errors.As(err, &answer) || cmp.Diff(want, answer) != "" {
			t.Errorf("Do() = %#v, want %#v", err, want)
		}
		if got := w.history(); !strings.HasSuffix(got, "call:allowed result:error") {
			t.Errorf("recorded %s, want an error at the end", got)
		}
		// What a server says when it is started is no answer to a call.
		if err := w.failure(request("rude", "echo"), call.CodeConnection); !errors.As(err, &answer) {
			t.Errorf("Do() = %v, want the refusal of initialize", err)
		}
		if got := w.history(); !strings.HasSuffix(got, "start:start-failed call:refused:SERVER_CONNECTION_ERROR") {
			t.Errorf("recorded %s, want a failed start at the end", got)
		}
	})
}

func TestFailures(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		w.list(definition("crash", ""), definition("hang", ""))
		w.fails(request("git", "crash"), call.CodeConnection)
		w.fails(request("git", "hang"), call.CodeTimeout)
		ctx, cancel := context.WithCancel(t.Context())
		calling := w.starts(ctx, request("git", "hang"))
		cancel()
		if err := <-calling; !errors.Is(err, context.Canceled) || call.Code(err) != call.CodeCancelled {
			t.Errorf("Do() = %v, want the context's error", err)
		}
		want := "result:failed:SERVER_CONNECTION_ERROR start:start call:allowed result:failed:TOOL_EXECUTION_TIMEOUT call:allowed result:failed:CANCELLED"
		if got := w.history(); !strings.HasSuffix(got, want) {
			t.Errorf("recorded %s, want %s at the end", got, want)
		}
	})
}

func TestCallTool(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		var progress []string
		client := request("sdk", "").Client
		client.Progress = func(params json.RawMessage) {
			progress = append(progress, string(jsonrpc.Lookup(params, "progress")))
		}
		got, err := w.caller.CallTool(t.Context(), client, "sdk", "count", nil)
		if err != nil || !strings.Contains(string(got), `"counted"`) {
			t.Errorf("CallTool() = %s, %v, want the count", got, err)
		}
		if diff := cmp.Diff([]string{"0", "1", "2"}, progress); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		client.Progress = nil
		if _, err := w.caller.CallTool(t.Context(), client, "git", "echo", json.RawMessage(`{"a": "<&>"}`)); err != nil {
			t.Errorf("CallTool() = %v, want nil", err)
		}
		if diff := cmp.Diff([]string{`{"name":"echo","arguments":{"a": "<&>"}}`}, w.calls()); diff != "" {
			t.Errorf("the server received (-want +got):\n%s", diff)
		}
		if got := w.records(); got[len(got)-1].Detail["via"] != "direct" {
			t.Errorf("recorded %+v, want how it came", got[len(got)-1])
		}
	})
}

func TestTogether(t *testing.T) {
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		var asked, callers sync.WaitGroup
		asked.Add(1)
		r := request("git", "echo")
		r.Person.Ask = func(context.Context, approval.Question) (consent.Reply, error) {
			asked.Done() // panics if it is asked twice
			<-time.After(time.Second)
			return consent.Reply{Answer: approval.Approve, Channel: "elicitation"}, nil
		}
		for range 30 {
			callers.Go(func() { w.answers(r) })
		}
		callers.Wait()
		synctest.Wait()
		w.expectStarted(1)
	})
}

func TestClosedCaller(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		check(t, w.caller.Close())
		if err := w.failure(request("git", "echo"), call.CodeConnection); !errors.Is(err, fleet.ErrClosed) {
			t.Errorf("Do() after Close = %v, want ErrClosed", err)
		}
	})
}
