package approvaltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
)

// answers is a person who gives the same reply to everything, and counts.
type answers struct {
	reply consent.Reply
	asked int
	last  approval.Question
}

func (a *answers) person() consent.Person {
	return consent.Person{Ask: func(_ context.Context, q approval.Question) (consent.Reply, error) {
		a.asked++
		a.last = q
		a.reply.Channel = "elicitation"
		return a.reply, nil
	}}
}

// confirm requires a call in a session, and holds its error to a code.
func (w *world) confirm(book *office, arguments, session string, person consent.Person, wait time.Duration, code string) {
	w.t.Helper()
	err := book.RequireCall(w.t.Context(), request(grant("github", "1")), approval.NewCall("delete", []byte(arguments), session, "rule 3"), person, wait)
	if got := codeOf(err); got != code {
		w.t.Errorf("RequireCall(%s in %s) = %v, want code %q", arguments, session, err, code)
	}
}

func confirmOnce(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	yes, no := answers{reply: consent.Reply{Answer: approval.Approve}}, answers{reply: consent.Reply{Answer: approval.Deny}}
	err := book.RequireCall(t.Context(), request(grant("github", "1")), approval.NewCall("delete", nil, "s", ""), yes.person(), time.Minute)
	if !errors.Is(err, approval.ErrNotApproved) || yes.asked != 0 {
		t.Errorf("RequireCall of what is not approved = %v, want ErrNotApproved and nobody asked", err)
	}
	w.approve(book, grant("github", "1"))
	for range 2 { // each answer is for one call
		w.confirm(book, "{}", "s", yes.person(), time.Minute, "")
		w.confirm(book, "{}", "s", no.person(), time.Minute, consent.CodeDenied)
	}
	if yes.asked != 2 || no.asked != 2 {
		t.Errorf("asked %d and %d times, want 2 and 2", yes.asked, no.asked)
	}
	if e := w.last(); e.Action != approval.ActionDenied || len(e.Tools) != 1 || e.Tools[0] != "delete" || !strings.HasPrefix(e.Call, "sha256:") || e.ForSession {
		t.Errorf("recorded %+v, want the denied call", e)
	}
	lines := strings.Join(yes.last.Lines(), "\n")
	for _, want := range []string{`tool "delete" of server "github" is to be called`, "arguments: {}", "asked by:  rule 3"} {
		if !strings.Contains(lines, want) {
			t.Errorf("Lines() = %s, want %s", lines, want)
		}
	}
	w.check(book, grant("github", "1"), approval.Approved)
	if open := book.Questions(approval.ProgressPending); len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
	dismiss := answers{}
	w.confirm(book, "{}", "s", dismiss.person(), time.Minute, consent.CodePending)
}

func confirmForSession(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	w.approve(book, grant("github", "1"))
	forSession := answers{reply: consent.Reply{Answer: approval.Approve, ForSession: true}}
	for range 3 {
		w.confirm(book, "{}", "s", forSession.person(), time.Minute, "")
	}
	w.confirm(book, `{"other":1}`, "s", forSession.person(), time.Minute, "")
	if forSession.asked != 1 || !w.last().ForSession {
		t.Errorf("asked %d times, recorded %+v, want once, for the session", forSession.asked, w.last())
	}
	w.later(time.Hour)
	w.confirm(book, "{}", "s", consent.Person{}, 0, "")
	w.confirm(book, "{}", "another", consent.Person{}, 0, consent.CodePending)
	other := approval.NewCall("other", []byte("{}"), "s", "")
	if err := book.RequireCall(t.Context(), request(grant("github", "1")), other, consent.Person{}, 0); codeOf(err) != consent.CodePending {
		t.Errorf("RequireCall of another tool = %v, want it pending", err)
	}
	// A session of that name in another run is another session.
	w.confirm(w.book(w.two, approval.ModeAsk), "{}", "s", consent.Person{}, 0, consent.CodePending)
	for _, q := range book.Questions(approval.ProgressApproved) {
		if q.Call != nil && q.Call.Arguments != "" {
			t.Errorf("kept the arguments %q of a call that was decided", q.Call.Arguments)
		}
	}
}

func confirmElsewhere(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	w.approve(book, grant("github", "1"))
	for answer, code := range map[approval.Answer]string{approval.Approve: "", approval.Deny: consent.CodeDenied} {
		result := make(chan error, 1)
		go func() {
			call := approval.NewCall("delete", []byte("{}"), "s", "")
			result <- book.RequireCall(t.Context(), request(grant("github", "1")), call, consent.Person{}, consent.DefaultWait)
		}()
		pass(10 * time.Second)
		w.decide(other, w.pending(other), by("terminal", answer))
		if err := <-result; codeOf(err) != code {
			t.Errorf("RequireCall = %v, want code %q", err, code)
		}
	}
	// What comes too late is for the next call that is the same.
	w.confirm(book, "{}", "s", consent.Person{}, time.Second, consent.CodePending)
	w.decide(book, w.pending(book), by("terminal", approval.Approve))
	w.confirm(book, `{"other":1}`, "s", consent.Person{}, 0, consent.CodePending)
	w.confirm(book, "{}", "s", consent.Person{}, 0, "")
	w.confirm(book, "{}", "s", consent.Person{}, 0, consent.CodePending)
	// Or for none.
	q := w.pending(book)
	w.decide(book, q, by("terminal", approval.Approve))
	w.later(11 * time.Minute)
	if open := book.Questions(); len(open) > 1 { // the server's own stays
		t.Errorf("still asked or answered after 11 minutes: %v", open)
	}
	w.confirm(book, "{}", "s", consent.Person{}, 0, consent.CodePending)
}

// Two calls that are the same need two answers.
func confirmTwice(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	w.approve(book, grant("github", "1"))
	yes := answers{reply: consent.Reply{Answer: approval.Approve}}
	results := make(chan error, 2)
	for range 2 {
		go func() {
			call := approval.NewCall("delete", []byte("{}"), "s", "")
			results <- book.RequireCall(t.Context(), request(grant("github", "1")), call, consent.Person{Ask: func(_ context.Context, q approval.Question) (consent.Reply, error) {
				pass(time.Second)
				return yes.person().Ask(t.Context(), q)
			}}, time.Minute)
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("RequireCall = %v, want it confirmed", err)
		}
	}
	if yes.asked != 2 {
		t.Errorf("asked %d times, want 2", yes.asked)
	}
}

func confirmModes(t *testing.T, w *world) {
	all, pinned := w.book(w.one, approval.ModeAll), w.book(w.two, approval.ModePinned)
	if err := all.Require(t.Context(), request(grant("github", "1")), consent.Person{}, 0); err != nil {
		t.Fatal(err)
	}
	w.confirm(all, "{}", "s", consent.Person{}, 0, consent.CodePending) // a rule says so
	w.refresh(pinned)
	yes := answers{reply: consent.Reply{Answer: approval.Approve}}
	w.confirm(pinned, "{}", "s", yes.person(), time.Minute, consent.CodeDenied)
	if yes.asked > 0 {
		t.Error("a gateway that never asks has asked")
	}
	// Revoked while it waits: the call has no server any more.
	result := make(chan error, 1)
	go func() {
		call := approval.NewCall("delete", []byte(`{"n":2}`), "s", "")
		result <- all.RequireCall(t.Context(), request(grant("github", "1")), call, consent.Person{}, time.Minute)
	}()
	pass(time.Second)
	if _, err := all.Revoke(t.Context(), "github", by("terminal", approval.Deny)); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("RequireCall = %v, want ErrNotApproved", err)
	}
	call := approval.NewCall("x", []byte(strings.Repeat("é", 4000)), "s", "")
	if !strings.HasSuffix(call.Arguments, "… (8000 bytes in all)") || len(call.Arguments) > 4100 {
		t.Errorf("NewCall shows %d bytes, ending %q", len(call.Arguments), call.Arguments[len(call.Arguments)-40:])
	}
}
