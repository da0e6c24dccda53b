package approvaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

func storeKeepsContent(t *testing.T, w *world) {
	g := grant("github", "1")
	at := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	nothing := approval.Approval{Server: "a", Grant: grant("a", "1"), GrantDigest: "a1", Decided: at, Channel: "terminal", By: principal.Local}
	empty := nothing
	empty.GrantDigest, empty.Tools = "a2", map[string]approval.Pin{}
	full := nothing
	full.GrantDigest, full.Expires = "a3", at.Add(time.Hour)
	full.Tools = map[string]approval.Pin{
		"x": {Digest: "sha256:1", JSON: []byte(`{ "name":"x", "n": 1.0e3 }`)},
		"y": {Digest: "sha256:2", JSON: []byte(`{"name":"y"}`), Expires: at.Add(time.Minute)},
	}
	question := approval.Question{
		ID: "1a2b3c4d", Digest: "q1", Server: "a", Kind: approval.KindTools, Grant: g, GrantDigest: g.Digest(), Previous: &g,
		Tools: []approval.ToolChange{{Name: "x", Kind: approval.ToolChanged, Before: []byte(`{"name":"x"}`), After: []byte(`{"name":"x","a":1}`), Digest: "d"}},
		Asked: at, Principal: principal.Local, Progress: approval.ProgressDenied, Decided: at, Channel: "file", By: principal.Local,
	}
	start, err := w.one.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := approval.Content{Approvals: []approval.Approval{nothing, empty, full}, Questions: []approval.Question{question}}
	revision, err := w.one.Commit(t.Context(), start.Revision, approval.Change{PutApprovals: want.Approvals, PutQuestions: want.Questions})
	if err != nil {
		t.Fatal(err)
	}
	want.Revision = revision
	sorted := func(store approval.Store) approval.Content {
		got, err := store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got.Approvals, func(a, b approval.Approval) int { return strings.Compare(a.GrantDigest, b.GrantDigest) })
		return got
	}
	if diff := cmp.Diff(want, sorted(w.two)); diff != "" {
		t.Errorf("Load by the other process (-want +got):\n%s", diff)
	}
	if got, err := w.two.Revision(t.Context()); err != nil || got != revision {
		t.Errorf("Revision = %d, %v, want %d", got, err, revision)
	}

	change := approval.Change{
		DeleteApprovals: []approval.Key{full.Key(), {Server: "none", GrantDigest: "none"}}, DeleteQuestions: []string{"q1", "none"},
		PutApprovals: []approval.Approval{{Server: "a", GrantDigest: "a1", Grant: g, Decided: at, Channel: "file"}},
	}
	if revision, err = w.two.Commit(t.Context(), revision, change); err != nil {
		t.Fatal(err)
	}
	want = approval.Content{Revision: revision, Approvals: []approval.Approval{change.PutApprovals[0], empty}}
	if diff := cmp.Diff(want, sorted(w.one)); diff != "" {
		t.Errorf("Load after the second commit (-want +got):\n%s", diff)
	}
}

func storeRefusesOldRevision(t *testing.T, w *world) {
	start, err := w.one.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put := func(server string) approval.Change {
		return approval.Change{PutApprovals: []approval.Approval{{Server: server, GrantDigest: "d", Grant: grant(server, "1")}}}
	}
	if _, err := w.two.Commit(t.Context(), start, put("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.one.Commit(t.Context(), start, put("second")); !errors.Is(err, approval.ErrConflict) {
		t.Errorf("Commit at an old revision = %v, want ErrConflict", err)
	}
	content, err := w.one.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(content.Approvals) != 1 || content.Approvals[0].Server != "first" {
		t.Errorf("after a conflict the store holds %v, want the first commit only", content.Approvals)
	}
}

func nothingApproved(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.check(book, g, approval.Missing)
	w.checkTool(book, g, "x", approval.Missing)
	if _, err := book.Pin(t.Context(), request(g), tools("x")); !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("Pin = %v, want ErrNotApproved", err)
	}
	err := book.RequireTool(t.Context(), request(g), tools("x")[0], consent.Person{}, 0)
	if !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("RequireTool = %v, want ErrNotApproved", err)
	}
	if got := book.Questions(); len(got) != 0 {
		t.Errorf("Questions = %v, want none", got)
	}
	if len(w.events) != 0 {
		t.Errorf("recorded %v, want nothing", w.events)
	}
}

func approveAndExpire(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g := grant("github", "1")
	q := w.ask(book, request(g))
	if q.Kind != approval.KindFirst || len(q.ID) != 8 || !strings.HasPrefix(q.Digest, "sha256:"+q.ID) {
		t.Errorf("question = %s of kind %s with digest %s, want a first one named by its digest", q.ID, q.Kind, q.Digest)
	}
	if again := w.ask(book, request(g)); again.ID != q.ID || !again.Asked.Equal(q.Asked) || len(book.Questions()) != 1 {
		t.Errorf("asked twice: %v, want the one question %s", book.Questions(), q.ID)
	}
	decision := by("terminal", approval.Approve)
	decision.Expires = w.now().Add(time.Hour)
	w.decide(book, q, decision)
	w.check(book, g, approval.Approved)
	want := approval.Event{
		Time: w.now().UTC(), Action: approval.ActionApproved, Server: "github", Question: q.ID,
		GrantDigest: g.Digest(), Channel: "terminal", By: "local",
	}
	if diff := cmp.Diff(want, w.last()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	pass(time.Second)
	w.check(other, g, approval.Approved)
	if held := w.pin(book, g, "x"); held != nil {
		t.Errorf("Pin = %v, want nothing held", held)
	}

	changed := book.Changed()
	w.later(time.Hour)
	w.check(book, g, approval.Expired)
	select {
	case <-changed:
		t.Error("Changed is closed, and nothing was decided")
	default:
	}
	w.check(other, g, approval.Expired)
	w.checkTool(book, g, "x", approval.Expired)
	if err := book.RequireTool(t.Context(), request(g), tools("x")[0], consent.Person{}, 0); !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("RequireTool under an expired approval = %v, want ErrNotApproved", err)
	}
	if _, err := book.Pin(t.Context(), request(g), tools("x", "y")); !errors.Is(err, approval.ErrNotApproved) {
		t.Errorf("Pin under an expired approval = %v, want ErrNotApproved", err)
	}
	q = w.ask(book, request(g))
	if q.Kind != approval.KindExpired {
		t.Errorf("question after the end = %s, want %s", q.Kind, approval.KindExpired)
	}
	select {
	case <-changed:
	default:
		t.Error("Changed is open, and a question was asked")
	}
	w.decide(book, q, by("terminal", approval.Approve))
	w.check(book, g, approval.Approved)
	w.checkTool(book, g, "x", approval.Approved)
	w.checkTool(book, g, "x=other", approval.Changed)
}

func changedGrant(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	before, after := grant("github", "1"), grant("github", "2")
	w.approve(book, before)
	verdict := book.Check(key(after))
	if verdict.State != approval.Changed || verdict.Previous == nil || verdict.Previous.Digest() != before.Digest() {
		t.Errorf("Check of a changed grant = %+v, want Changed with the grant before", verdict)
	}
	q := w.ask(book, request(after))
	if q.Kind != approval.KindChanged || q.Previous.Digest() != before.Digest() {
		t.Errorf("question = %+v, want a change with the grant before", q)
	}
	w.check(book, before, approval.Approved)
	pass(time.Second)
	w.decide(book, q, by("terminal", approval.Approve))
	w.check(book, after, approval.Approved)
	w.check(book, before, approval.Approved)
	if got := book.Check(key(grant("github", "3"))).Previous.Image; got != after.Image {
		t.Errorf("previous grant = %s, want the one decided last, %s", got, after.Image)
	}
	w.check(book, grant("gitlab", "1"), approval.Missing)
}

func withdraw(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	guest := request(grant("github", "3"))
	guest.Principal = principal.Principal{ID: "guest"}
	w.ask(book, guest)
	w.approve(book, grant("github", "1"))
	w.ask(book, request(grant("github", "2")))
	w.ask(book, request(grant("gitlab", "1")))
	if err := other.Withdraw(t.Context(), "github", principal.Local); err != nil {
		t.Fatalf("Withdraw = %v", err)
	}
	pass(time.Second)
	var left []string
	for _, q := range book.Questions(approval.ProgressPending) {
		left = append(left, q.Server+" "+q.Principal.ID)
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"github guest", "gitlab local"}, left); diff != "" {
		t.Errorf("Questions after Withdraw (-want +got):\n%s", diff)
	}
	w.check(book, grant("github", "1"), approval.Approved)
	if err := other.Withdraw(t.Context(), "none", principal.Local); err != nil {
		t.Errorf("Withdraw of what was not asked = %v, want nil", err)
	}
}

func revoke(t *testing.T, w *world) {
	book, other := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g, kept := grant("github", "1"), grant("gitlab", "1")
	q := w.ask(book, request(g))
	w.decide(book, q, by("terminal", approval.Approve))
	w.approve(book, grant("github", "2"))
	w.approve(book, kept)
	w.pin(book, g, "x")
	w.pin(book, g, "x", "y")
	revoked, err := book.Revoke(t.Context(), "github", by("terminal", approval.Dismiss))
	if err != nil || len(revoked) != 2 {
		t.Fatalf("Revoke = %d approvals, %v, want 2", len(revoked), err)
	}
	if got := w.last(); got.Action != approval.ActionRevoked || got.Server != "github" || got.Channel != "terminal" {
		t.Errorf("recorded %+v, want a revocation", got)
	}
	w.check(book, g, approval.Missing)
	w.checkTool(book, g, "x", approval.Missing)
	if got := book.Pinned(key(g), "x"); got != nil {
		t.Errorf("Pinned(x) = %s, want none", got)
	}
	w.check(book, kept, approval.Approved)
	var gone *approval.GoneError
	if err := book.Decide(t.Context(), q, by("terminal", approval.Approve)); !errors.As(err, &gone) {
		t.Errorf("Decide on the revoked question = %v, want a GoneError: it has to be asked again", err)
	}
	if got := book.Questions(approval.ProgressPending); len(got) != 0 {
		t.Errorf("pending after Revoke = %v, want none", got)
	}
	pass(250 * time.Millisecond)
	w.check(other, g, approval.Missing)
	if again, err := book.Revoke(t.Context(), "github", by("terminal", approval.Dismiss)); err != nil || again != nil {
		t.Errorf("Revoke again = %v, %v, want nothing", again, err)
	}
	w.approve(book, g)
	w.check(book, g, approval.Approved)
	w.checkTool(book, g, "x", approval.Missing)
}

func denialHolds(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	q := w.ask(book, request(g))
	w.decide(book, q, by("terminal", approval.Deny))
	w.check(book, g, approval.Denied)
	err := book.Require(t.Context(), request(g), consent.Person{}, time.Hour)
	var denied *consent.DeniedError
	if !errors.As(err, &denied) || denied.ID != q.ID || denied.Server != "github" {
		t.Errorf("Require after a denial = %v, want a DeniedError of %s", err, q.ID)
	}
	w.check(book, grant("github", "2"), approval.Missing)

	// A gateway that starts later asks again; the running one still knows.
	later := w.book(w.two, approval.ModeAsk)
	w.check(later, g, approval.Missing)
	again := w.ask(later, request(g))
	if again.ID != q.ID || again.Progress != approval.ProgressPending {
		t.Errorf("asked again = %s %s, want %s pending", again.ID, again.Progress, q.ID)
	}
	pass(time.Second)
	w.check(book, g, approval.Denied)
	w.decide(later, again, by("terminal", approval.Deny))
	w.check(later, g, approval.Denied)

	// A third one, such as the command line, reverses it for both.
	shell := w.book(w.one, approval.ModeAsk)
	list := shell.Questions(approval.ProgressDenied)
	if len(list) != 1 {
		t.Fatalf("denied questions = %v, want one", list)
	}
	w.decide(shell, list[0], by("terminal", approval.Approve))
	pass(time.Second)
	for _, b := range []*office{book, later, shell} {
		w.check(b, g, approval.Approved)
	}
	var gone *approval.GoneError
	if err := book.Decide(t.Context(), q, by("terminal", approval.Deny)); !errors.As(err, &gone) || gone.Progress != approval.ProgressApproved {
		t.Errorf("Decide to deny what was approved = %v, want a GoneError", err)
	}
	if _, err := book.Revoke(t.Context(), "github", by("terminal", approval.Dismiss)); err != nil {
		t.Fatal(err)
	}
	w.check(book, g, approval.Missing)
}

func decideRefuses(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	q := w.ask(book, request(g))
	wider := q
	wider.Grant.Network = "full"
	renamed := q
	renamed.Server = "gitlab"
	past := by("terminal", approval.Approve)
	past.Expires = w.now().Add(-time.Second)
	tests := []struct {
		name     string
		question approval.Question
		decision approval.Decision
		want     string
	}{
		{"no channel", q, by("", approval.Approve), "needs a channel"},
		{"no answer", q, by("terminal", approval.Dismiss), "approve or to deny"},
		{"expired", q, past, "would have expired"},
		{"another grant was shown", wider, by("terminal", approval.Approve), "not asked any more"},
		{"another server was shown", renamed, by("terminal", approval.Approve), "not asked any more"},
	}
	for _, tt := range tests {
		err := book.Decide(t.Context(), tt.question, tt.decision)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Decide = %v, want %q", tt.name, err, tt.want)
		}
	}

	full := errors.New("disk full")
	unrecorded, err := approval.Open(t.Context(), w.two, approval.Options{Record: func(context.Context, approval.Event) error { return full }})
	if err != nil {
		t.Fatal(err)
	}
	if err := unrecorded.Decide(t.Context(), q, by("terminal", approval.Approve)); !errors.Is(err, full) {
		t.Errorf("Decide that cannot be recorded = %v, want %v", err, full)
	}
	reader, err := approval.Open(t.Context(), w.two, approval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Decide(t.Context(), q, by("terminal", approval.Approve)); err == nil {
		t.Error("Decide without a record = nil, want an error")
	}
	w.check(book, g, approval.Missing)
	w.check(&office{Book: unrecorded}, g, approval.Missing)
	if len(w.events) != 0 {
		t.Errorf("recorded %v, want nothing", w.events)
	}
	w.decide(book, q, by("terminal", approval.Approve))
	w.decide(book, q, by("terminal", approval.Approve))
	if len(w.events) != 1 {
		t.Errorf("deciding twice recorded %v, want one event", w.events)
	}
	if _, err := approval.Open(t.Context(), w.one, approval.Options{Mode: "maybe"}); err == nil {
		t.Error("Open with an unknown mode = nil, want an error")
	}
}

func racingDecisions(t *testing.T, w *world) {
	one, two := w.book(w.one, approval.ModeAsk), w.book(w.two, approval.ModeAsk)
	g := grant("github", "1")
	q := w.ask(one, request(g))
	errs := make([]error, 2)
	var both sync.WaitGroup
	both.Go(func() { errs[0] = one.Decide(t.Context(), q, by("terminal", approval.Approve)) })
	both.Go(func() { errs[1] = two.Decide(t.Context(), q, by("elicitation", approval.Deny)) })
	both.Wait()
	if errs[0] != nil {
		t.Errorf("the approval = %v, want nil: a denial can be reversed", errs[0])
	}
	var gone *approval.GoneError
	if errs[1] != nil && !errors.As(errs[1], &gone) {
		t.Errorf("the denial = %v, want nil or a GoneError", errs[1])
	}
	w.refresh(one, two)
	w.check(one, g, approval.Approved)
	w.check(two, g, approval.Approved)
}

func manyWriters(t *testing.T, w *world) {
	const each = 20
	books := []*office{w.book(w.one, approval.ModeAll), w.book(w.two, approval.ModeAll), w.book(w.one, approval.ModeAll)}
	var writers sync.WaitGroup
	server := func(book, n int) string { return fmt.Sprintf("server%d-%d", book, n) }
	for i, book := range books {
		for n := range each {
			writers.Go(func() {
				r := request(grant(server(i, n), "1"))
				if err := book.Require(t.Context(), r, consent.Person{}, 0); err != nil {
					t.Errorf("Require = %v", err)
				}
				if _, err := book.Pin(t.Context(), r, tools("x")); err != nil {
					t.Errorf("Pin = %v", err)
				}
			})
		}
	}
	writers.Wait()
	w.refresh(books...)
	for _, book := range books {
		if got := len(book.Approvals()); got != each*len(books) {
			t.Errorf("Approvals = %d, want %d", got, each*len(books))
		}
		for i := range books {
			for n := range each {
				w.checkTool(book, grant(server(i, n), "1"), "x", approval.Approved)
			}
		}
	}
	if got := len(w.events); got != 2*each*len(books) {
		t.Errorf("recorded %d events, want %d", got, 2*each*len(books))
	}
}

func oldQuestionsGo(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	old := w.ask(book, request(grant("old", "1")))
	w.decide(book, w.ask(book, request(grant("denied", "1"))), by("terminal", approval.Deny))
	w.later(25 * time.Hour)
	w.ask(book, request(grant("new", "1")))
	if got := book.Questions(); len(got) != 2 || got[0].Server != "denied" || got[1].Server != "new" {
		t.Errorf("Questions = %v, want the denied and the new one", got)
	}
	var gone *approval.GoneError
	if err := book.Decide(t.Context(), old, by("terminal", approval.Approve)); !errors.As(err, &gone) || gone.Progress != "" {
		t.Errorf("Decide on an outdated question = %v, want a GoneError", err)
	}
	w.check(book, grant("old", "1"), approval.Missing)
}

func exportImport(t *testing.T, w *world) {
	book := w.book(w.one, approval.ModeAsk)
	g := grant("github", "1")
	w.approve(book, g)
	w.pin(book, g, "x", "y")
	w.approve(book, grant("gitlab", "1"))
	local := grant("mine", "1")
	local.Pin.Kind = sandbox.LocalID
	w.approve(book, local)

	var refused *approval.LocalError
	if _, err := book.Export(); !errors.As(err, &refused) || !slices.Equal(refused.Servers, []string{"mine"}) {
		t.Errorf("Export of a local image = %v, want a LocalError of mine", err)
	}
	if _, err := book.Export("nobody"); err == nil {
		t.Error("Export of an unknown server = nil, want an error")
	}
	data, err := book.Export("github")
	if err != nil {
		t.Fatal(err)
	}

	machine := w.book(&Memory{}, approval.ModeAsk)
	decision := by("file", approval.Approve)
	decision.Expires = w.now().Add(time.Hour)
	imported, err := machine.Import(t.Context(), data, decision)
	if err != nil || len(imported) != 1 {
		t.Fatalf("Import = %v, %v, want one approval", imported, err)
	}
	if got := w.last(); got.Action != approval.ActionImported || got.Channel != "file" || !slices.Equal(got.Tools, []string{"x", "y"}) {
		t.Errorf("recorded %+v, want an import of x and y", got)
	}
	w.check(machine, g, approval.Approved)
	w.checkTool(machine, g, "y", approval.Approved)
	w.checkTool(machine, g, "y=changed", approval.Changed)
	w.check(machine, grant("gitlab", "1"), approval.Missing)

	tests := []struct{ name, old, new string }{
		{"a wider grant", `"network": "none"`, `"network": "full"`},
		{"another tool", `"description": ""`, `"description": "!"`},
		{"another name", `"x": {`, `"z": {`},
		{"another server", `"server": "github"`, `"server": "gitlab"`},
		{"an unknown field", `"version": 1`, `"version": 1, "force": true`},
		{"a newer format", `"version": 1`, `"version": 2`},
	}
	for _, tt := range tests {
		forged := strings.Replace(string(data), tt.old, tt.new, 1)
		if forged == string(data) {
			t.Fatalf("%s: %q is not in the export", tt.name, tt.old)
		}
		if _, err := machine.Import(t.Context(), []byte(forged), decision); err == nil {
			t.Errorf("Import with %s = nil, want an error", tt.name)
		}
	}
	w.later(time.Hour)
	w.check(machine, g, approval.Expired)
}
