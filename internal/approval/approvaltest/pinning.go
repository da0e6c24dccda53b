package approvaltest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
)

func pinFirst(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g, none := grant("github", "1"), grant("quiet", "1")
	w.approve(book, g)
	w.checkTool(book, g, "x", approval.Missing)
	err := book.RequireTool(t.Context(), request(g), tools("x")[0], consent.Person{}, 0)
	if !errors.Is(err, consent.ErrNotListed) {
		t.Errorf("RequireTool before the first listing = %v, want ErrNotListed", err)
	}
	if held := w.pin(book, g, "x", "y=1"); held != nil {
		t.Errorf("first Pin = %v, want nothing held", held)
	}
	if got := w.last(); got.Action != approval.ActionPinned || !slices.Equal(got.Tools, []string{"x", "y"}) || got.Channel != "terminal" {
		t.Errorf("recorded %+v, want the pins x and y", got)
	}
	w.checkTool(book, g, "x", approval.Approved)
	w.checkTool(book, g, "y=1", approval.Approved)
	if got := book.Pinned(key(g), "y"); string(got) != string(tools("y=1")[0].JSON) {
		t.Errorf("Pinned(y) = %s, want what was listed", got)
	}
	if got := book.Pinned(key(g), "z"); got != nil {
		t.Errorf("Pinned(z) = %s, want none", got)
	}
	w.checkTool(book, grant("github", "2"), "x", approval.Missing)

	// Another process that lists later compares.
	if held := w.pin(other, g, "x", "y=2"); !slices.Equal(held, []string{"~y"}) {
		t.Errorf("Pin by the other process = %v, want y changed", held)
	}

	// A server without tools has none approved, rather than any.
	w.approve(book, none)
	w.pin(book, none)
	if held := w.pin(book, none, "x"); !slices.Equal(held, []string{"+x"}) {
		t.Errorf("Pin after an empty listing = %v, want x added", held)
	}
}

func pinHolds(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a", "b=1", "c")
	events := len(w.events)
	if held := w.pin(book, g, "a", "b=1"); held != nil {
		t.Errorf("Pin without c = %v, want nothing held", held)
	}
	w.checkTool(book, g, "c", approval.Approved)
	if held := w.pin(book, g, "a", "b=2", "d"); !slices.Equal(held, []string{"~b", "+d"}) {
		t.Errorf("Pin = %v, want b changed and d added", held)
	}
	w.checkTool(book, g, "a", approval.Approved)
	w.checkTool(book, g, "b=1", approval.Approved)
	w.checkTool(book, g, "b=2", approval.Changed)
	w.checkTool(book, g, "d", approval.Missing)
	q := w.pending(book)
	want := []approval.ToolChange{
		{Name: "b", Kind: approval.ToolChanged, Before: tools("b=1")[0].JSON, After: tools("b=2")[0].JSON, Digest: tools("b=2")[0].Digest()},
		{Name: "d", Kind: approval.ToolAdded, After: tools("d")[0].JSON, Digest: tools("d")[0].Digest()},
	}
	if diff := cmp.Diff(want, q.Tools); diff != "" || q.Kind != approval.KindTools || q.GrantDigest != g.Digest() {
		t.Errorf("question of kind %s (-want +got):\n%s", q.Kind, diff)
	}
	w.pin(book, g, "a", "b=2", "d")
	if again := w.pending(book); again.ID != q.ID || len(book.Questions(approval.ProgressPending)) != 1 {
		t.Errorf("listed twice: %v, want the one question %s", book.Questions(approval.ProgressPending), q.ID)
	}
	if len(w.events) != events {
		t.Errorf("recorded %v, want no decision", w.events[events:])
	}
	w.decide(book, q, by("terminal", approval.Approve))
	if got := w.last(); got.Action != approval.ActionApproved || !slices.Equal(got.Tools, []string{"b", "d"}) {
		t.Errorf("recorded %+v, want the approval of b and d", got)
	}
	w.checkTool(book, g, "b=2", approval.Approved)
	w.checkTool(book, g, "b=1", approval.Changed)
	w.checkTool(book, g, "d", approval.Approved)
	w.checkTool(book, g, "c", approval.Approved)

	// A server that goes back to what is approved has nothing to ask.
	w.pin(book, g, "a", "b=3")
	if held := w.pin(book, g, "a", "b=2", "d"); held != nil {
		t.Errorf("Pin = %v, want nothing held", held)
	}
	if got := book.Questions(approval.ProgressPending); len(got) != 0 {
		t.Errorf("pending = %v, want none", got)
	}
}

func pinShown(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a=1")
	w.pin(book, g, "a=2")
	shown := w.pending(book)
	w.pin(book, g, "a=3")
	var gone *approval.GoneError
	if err := book.Decide(t.Context(), shown, by("terminal", approval.Approve)); !errors.As(err, &gone) {
		t.Errorf("Decide on a replaced question = %v, want a GoneError", err)
	}
	now := w.pending(book)
	forged := now
	forged.Tools = slices.Clone(now.Tools)
	forged.Tools[0].Digest = tools("a=4")[0].Digest()
	if err := book.Decide(t.Context(), forged, by("terminal", approval.Approve)); !errors.As(err, &gone) {
		t.Errorf("Decide on another definition = %v, want a GoneError", err)
	}
	w.decide(book, now, by("terminal", approval.Approve))
	w.checkTool(book, g, "a=2", approval.Changed)
	w.checkTool(book, g, "a=3", approval.Approved)
	w.checkTool(book, g, "a=4", approval.Changed)
}

func pinDenied(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a")
	w.pin(book, g, "a", "b")
	denied := w.pending(book)
	w.decide(book, denied, by("terminal", approval.Deny))
	w.checkTool(book, g, "b", approval.Denied)
	w.checkTool(book, g, "a", approval.Approved)
	if held := w.pin(book, g, "a", "b", "c"); !slices.Equal(held, []string{"+b", "+c"}) {
		t.Errorf("Pin = %v, want b and c held", held)
	}
	if q := w.pending(book); !slices.Equal(changes(q.Tools), []string{"+c"}) {
		t.Errorf("asked about %v, want c alone: b was denied", changes(q.Tools))
	}
	err := book.RequireTool(t.Context(), request(g), tools("b")[0], consent.Person{}, time.Hour)
	if codeOf(err) != consent.CodeDenied || !strings.Contains(err.Error(), denied.ID) {
		t.Errorf("RequireTool of a denied tool = %v, want denied by %s", err, denied.ID)
	}
	w.checkTool(book, g, "b=changed", approval.Missing)

	later := w.book(w.two, approval.ModeAsk)
	w.pin(later, g, "a", "b", "c")
	if q := w.pending(later); !slices.Equal(changes(q.Tools), []string{"+b", "+c"}) {
		t.Errorf("the next gateway asks about %v, want b and c", changes(q.Tools))
	}
	w.decide(later, denied, by("terminal", approval.Approve))
	w.checkTool(later, g, "b", approval.Approved)
	pass(time.Second)
	w.checkTool(book, g, "b", approval.Approved)
}

func pinDiffers(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a")
	w.pin(book, g, "a", "b", "c")
	q := w.pending(book)
	w.pin(book, g, "a")
	if again := w.pending(book); again.ID != q.ID {
		t.Errorf("a session without b and c replaced the question %v by %v", changes(q.Tools), changes(again.Tools))
	}
	w.pin(book, g, "a", "c=2", "d")
	if now := w.pending(book); !slices.Equal(changes(now.Tools), []string{"+b", "+c", "+d"}) {
		t.Errorf("asked about %v, want b, c and d", changes(now.Tools))
	}
	if got := len(book.Questions(approval.ProgressPending)); got != 1 {
		t.Errorf("%d questions pending, want 1", got)
	}
}

func requireTool(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a=1")
	if err := book.RequireTool(t.Context(), request(g), tools("a=1")[0], consent.Person{}, 0); err != nil {
		t.Errorf("RequireTool of a pinned tool = %v, want nil", err)
	}
	var err error
	took := within(func() {
		err = book.RequireTool(t.Context(), request(g), tools("a=2")[0], consent.Person{}, consent.DefaultWait)
	})
	want := `APPROVAL_PENDING: tool "a" of "github" waits for approval because it changed since it was approved; ` +
		`ask the user to run dockgate approve (question ` + w.pending(book).ID + `)`
	if err == nil || err.Error() != want || took != consent.DefaultWait {
		t.Errorf("RequireTool of a changed tool = %v after %v, want %s", err, took, want)
	}

	result := make(chan error, 1)
	d := newDesk()
	go func() {
		result <- book.RequireTool(t.Context(), request(g), tools("b")[0], d.person(), consent.DefaultWait)
	}()
	pass(time.Second)
	d.expect(t, 1, 0)
	// Another session lists one tool more, so the question is another one.
	w.pin(book, g, "a=1", "b", "c")
	pass(time.Second)
	d.expect(t, 2, 1)
	w.decide(other, w.pending(other), by("terminal", approval.Approve))
	if err := <-result; err != nil {
		t.Errorf("RequireTool = %v, want nil", err)
	}
	d.expect(t, 2, 2)
	w.checkTool(book, g, "c", approval.Approved)
}

func pinModes(t *testing.T, w *world) {
	g := grant("github", "1")
	all := w.book(w.one, approval.ModeAll)
	if err := all.Require(t.Context(), request(g), consent.Person{}, 0); err != nil {
		t.Fatal(err)
	}
	w.pin(all, g, "a")
	if held := w.pin(all, g, "a", "b"); len(held) != 0 {
		t.Errorf("all: Pin = %v, want nothing held", held)
	}
	if got := w.last(); got.Channel != approval.ChannelAll || !slices.Equal(got.Tools, []string{"b"}) {
		t.Errorf("all: recorded %+v, want b by %s", got, approval.ChannelAll)
	}
	if err := all.RequireTool(t.Context(), request(g), tools("c")[0], consent.Person{}, 0); err != nil {
		t.Errorf("all: RequireTool = %v, want nil", err)
	}

	pinned := w.book(w.two, approval.ModePinned)
	if held := w.pin(pinned, g, "a=2", "d"); !slices.Equal(held, []string{"~a", "+d"}) {
		t.Errorf("pinned: Pin = %v, want a and d held", held)
	}
	err := pinned.RequireTool(t.Context(), request(g), tools("d")[0], newDesk().person(), time.Hour)
	if codeOf(err) != consent.CodeDenied {
		t.Errorf("pinned: RequireTool = %v, want denied", err)
	}
	if got := pinned.Questions(approval.ProgressPending); len(got) != 0 {
		t.Errorf("pinned: pending = %v, want none", got)
	}
}

func toolsExpire(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "a")
	w.pin(book, g, "a", "b")
	decision := by("terminal", approval.Approve)
	decision.Expires = w.now().Add(time.Hour)
	w.decide(book, w.pending(book), decision)
	w.checkTool(book, g, "b", approval.Approved)
	w.later(time.Hour)
	w.checkTool(book, g, "b", approval.Expired)
	w.checkTool(book, g, "a", approval.Approved)
	if held := w.pin(book, g, "a", "b"); !slices.Equal(held, []string{"~b"}) {
		t.Errorf("Pin after the end = %v, want b held", held)
	}
	w.decide(book, w.pending(book), by("terminal", approval.Approve))
	w.checkTool(book, g, "b", approval.Approved)
}
