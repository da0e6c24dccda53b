package approvaltest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
)

func waitEnds(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	var told []string
	person := consent.Person{Tell: func(_ context.Context, text string) { told = append(told, text) }}
	var err error
	took := within(func() { err = book.Require(t.Context(), request(g), person, consent.DefaultWait) })
	var pending *consent.PendingError
	if !errors.As(err, &pending) || took != consent.DefaultWait {
		t.Fatalf("Require = %v after %v, want a PendingError after %v", err, took, consent.DefaultWait)
	}
	q := w.pending(book)
	want := `APPROVAL_PENDING: "github" waits for approval; ask the user to run dockgate approve (question ` + q.ID + `)`
	if err.Error() != want {
		t.Errorf("text = %s, want %s", err, want)
	}
	if len(told) != 1 || told[0] != want {
		t.Errorf("told %q, want the text once", told)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := book.Require(ctx, request(g), person, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Require past its context = %v, want the context's error", err)
	}
}

func otherProcessAnswers(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	tests := []struct {
		server string
		answer approval.Answer
		code   string
	}{
		{"github", approval.Approve, ""},
		{"gitlab", approval.Deny, consent.CodeDenied},
	}
	for _, tt := range tests {
		g := grant(tt.server, "1")
		result := make(chan error, 1)
		go func() { result <- book.Require(t.Context(), request(g), consent.Person{}, consent.DefaultWait) }()
		pass(10 * time.Second)
		w.decide(other, w.pending(other), by("terminal", tt.answer))
		var err error
		took := within(func() { err = <-result })
		if took > 250*time.Millisecond {
			t.Errorf("%s: seen after %v, want at most 250 ms", tt.server, took)
		}
		if got := codeOf(err); got != tt.code {
			t.Errorf("%s: Require = %v, want code %q", tt.server, err, tt.code)
		}
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	code, _, _ := strings.Cut(err.Error(), ":")
	return code
}

// desk is a person who takes one question at a time.
type desk struct {
	asked   atomic.Int32
	replies chan consent.Reply
	// withdrawn counts the questions that were taken back.
	withdrawn atomic.Int32
}

func newDesk() *desk { return &desk{replies: make(chan consent.Reply)} }

func (d *desk) person() consent.Person {
	return consent.Person{Ask: func(ctx context.Context, _ approval.Question) (consent.Reply, error) {
		d.asked.Add(1)
		select {
		case reply := <-d.replies:
			return reply, nil
		case <-ctx.Done():
			d.withdrawn.Add(1)
			return consent.Reply{}, ctx.Err()
		}
	}}
}

func (d *desk) expect(t *testing.T, asked, withdrawn int32) {
	t.Helper()
	synctest.Wait()
	if a, b := d.asked.Load(), d.withdrawn.Load(); a != asked || b != withdrawn {
		t.Errorf("asked %d times and withdrawn %d times, want %d and %d", a, b, asked, withdrawn)
	}
}

func oneQuestion(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	d := newDesk()
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if err := book.Require(t.Context(), request(g), d.person(), consent.DefaultWait); err != nil {
				t.Errorf("Require = %v, want nil", err)
			}
		})
	}
	pass(time.Second)
	d.expect(t, 1, 0)
	until := time.Now().Add(time.Hour).UTC()
	d.replies <- consent.Reply{Answer: approval.Approve, Channel: "elicitation", Expires: until}
	calls.Wait()
	d.expect(t, 1, 0)
	if got := book.Approvals(); len(got) != 1 || got[0].Channel != "elicitation" || !got[0].Expires.Equal(until) {
		t.Errorf("Approvals = %+v, want one by elicitation until %v", got, until)
	}
}

func personDismisses(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	d := newDesk()
	for n := range int32(2) {
		result := make(chan error, 1)
		go func() { result <- book.Require(t.Context(), request(g), d.person(), consent.DefaultWait) }()
		d.replies <- consent.Reply{Answer: approval.Dismiss}
		var err error
		if took := within(func() { err = <-result }); took != 0 || codeOf(err) != consent.CodePending {
			t.Errorf("Require after it was dismissed = %v after %v, want pending at once", err, took)
		}
		d.expect(t, n+1, 0)
	}
	if got := len(book.Questions(approval.ProgressPending)); got != 1 {
		t.Errorf("%d questions pending, want 1", got)
	}
}

func personLate(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	d := newDesk()
	ctx, cancel := context.WithCancel(t.Context())
	if err := book.Require(ctx, request(g), d.person(), consent.DefaultWait); codeOf(err) != consent.CodePending {
		t.Errorf("Require = %v, want pending", err)
	}
	cancel()
	pass(time.Minute)
	d.expect(t, 1, 0)
	d.replies <- consent.Reply{Answer: approval.Approve, Channel: "elicitation"}
	synctest.Wait()
	w.check(book, g, approval.Approved)

	// A question is not in front of a person for ever.
	h := grant("gitlab", "1")
	if err := book.Require(t.Context(), request(h), d.person(), 0); codeOf(err) != consent.CodePending {
		t.Errorf("Require = %v, want pending", err)
	}
	pass(10 * time.Minute)
	d.expect(t, 2, 1)
}

func questionWithdrawn(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g := grant("github", "1")
	d := newDesk()
	result := make(chan error, 1)
	go func() { result <- book.Require(t.Context(), request(g), d.person(), consent.DefaultWait) }()
	pass(time.Second)
	d.expect(t, 1, 0)
	w.decide(other, w.pending(other), by("terminal", approval.Approve))
	if err := <-result; err != nil {
		t.Errorf("Require = %v, want nil", err)
	}
	d.expect(t, 1, 1)
}

func personBroken(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	hangUp := make(chan struct{})
	broken := consent.Person{Ask: func(context.Context, approval.Question) (consent.Reply, error) {
		<-hangUp
		return consent.Reply{}, errors.New("connection closed")
	}}
	d := newDesk()
	results := make(chan error, 2)
	go func() { results <- book.Require(t.Context(), request(g), broken, consent.DefaultWait) }()
	synctest.Wait()
	go func() { results <- book.Require(t.Context(), request(g), d.person(), consent.DefaultWait) }()
	d.expect(t, 0, 0)
	close(hangUp)
	d.expect(t, 1, 0)
	d.replies <- consent.Reply{Answer: approval.Deny, Channel: "elicitation"}
	for range 2 {
		if err := <-results; codeOf(err) != consent.CodeDenied {
			t.Errorf("Require = %v, want denied", err)
		}
	}
}

func closeTakesBack(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	d := newDesk()
	if err := book.Require(t.Context(), request(grant("github", "1")), d.person(), 0); codeOf(err) != consent.CodePending {
		t.Errorf("Require = %v, want pending", err)
	}
	d.expect(t, 1, 0)
	for range 2 {
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d.expect(t, 1, 1)
	if err := book.Require(t.Context(), request(grant("github", "1")), d.person(), 0); codeOf(err) != consent.CodePending {
		t.Errorf("Require after Close = %v, want pending", err)
	}
	d.expect(t, 1, 1)
}

func modes(t *testing.T, w *world) {
	g := grant("github", "1")
	d := newDesk()
	pinned := w.book(w.one, approval.ModePinned)
	err := pinned.Require(t.Context(), request(g), d.person(), time.Hour)
	want := `APPROVAL_DENIED: "github" may not be used: it is not approved, and this gateway never asks (approval mode pinned)`
	if err == nil || err.Error() != want {
		t.Errorf("pinned: Require = %v, want %s", err, want)
	}
	if got := pinned.Questions(); len(got) != 0 {
		t.Errorf("pinned: Questions = %v, want none", got)
	}

	all := w.book(w.two, approval.ModeAll)
	if err := all.Require(t.Context(), request(g), d.person(), time.Hour); err != nil {
		t.Errorf("all: Require = %v, want nil", err)
	}
	if got := w.last(); got.Action != approval.ActionApproved || got.Channel != approval.ChannelAll {
		t.Errorf("all: recorded %+v, want an approval by %s", got, approval.ChannelAll)
	}
	d.expect(t, 0, 0)
	pass(time.Second)
	if err := pinned.Require(t.Context(), request(g), d.person(), time.Hour); err != nil {
		t.Errorf("pinned: Require of what was approved = %v, want nil", err)
	}

	// What a person denied is not approved behind their back.
	h := grant("gitlab", "1")
	ask := w.book(w.one, approval.ModeAsk)
	w.decide(ask, w.ask(ask, request(h)), by("terminal", approval.Deny))
	pass(time.Second)
	if err := all.Require(t.Context(), request(h), d.person(), time.Hour); codeOf(err) != consent.CodeDenied {
		t.Errorf("all: Require of what was denied = %v, want denied", err)
	}
}
