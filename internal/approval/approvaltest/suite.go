package approvaltest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/tool"
)

// A test is run on one fresh store, opened twice.
type test struct {
	name string
	run  func(*testing.T, *world)
}

// Run holds a store to the contract of [approval.Store] and tests a book on
// it. Open opens one fresh store twice, as two processes would. It may be
// called in a testing/synctest bubble; what it opens is closed by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) (one, two approval.Store)) {
	inBubbles(t, open, []test{
		{"store keeps content", storeKeepsContent},
		{"store refuses an old revision", storeRefusesOldRevision},
		{"nothing is approved at first", nothingApproved},
		{"approve, expire, approve again", approveAndExpire},
		{"a changed grant is held", changedGrant},
		{"revoke", revoke},
		{"withdraw", withdraw},
		{"a denial holds for the session", denialHolds},
		{"decide refuses", decideRefuses},
		{"old questions go", oldQuestionsGo},
		{"pin the first listing", pinFirst},
		{"hold what changed later", pinHolds},
		{"approve exactly what was shown", pinShown},
		{"denied tools stay denied", pinDenied},
		{"listings of sessions differ", pinDiffers},
		{"pin by mode", pinModes},
		{"tools expire", toolsExpire},
		{"export and import", exportImport},
	})
	// A store that waits for a lock waits by the real clock: in a bubble,
	// time would stand still while others wait for the same process's mutex.
	for _, tt := range []test{
		{"racing decisions", racingDecisions},
		{"many books write at once", manyWriters},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := open(t)
			tt.run(t, &world{t: t, one: one, two: two})
		})
	}
}

// RunDesk tests a [consent.Desk] on a store, which is opened as for [Run].
func RunDesk(t *testing.T, open func(t *testing.T) (one, two approval.Store)) {
	inBubbles(t, open, []test{
		{"wait ends with a pending error", waitEnds},
		{"another process answers", otherProcessAnswers},
		{"one question for many calls", oneQuestion},
		{"the person dismisses", personDismisses},
		{"the person answers late", personLate},
		{"a question answered elsewhere is withdrawn", questionWithdrawn},
		{"a broken person leaves it to another", personBroken},
		{"close takes questions back", closeTakesBack},
		{"modes", modes},
		{"require a tool", requireTool},
		{"confirm one call", confirmOnce},
		{"confirm for the session", confirmForSession},
		{"confirm elsewhere, or late", confirmElsewhere},
		{"confirm two calls", confirmTwice},
		{"confirm by mode", confirmModes},
	})
}

func inBubbles(t *testing.T, open func(t *testing.T) (one, two approval.Store), tests []test) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := open(t)
				tt.run(t, &world{t: t, one: one, two: two})
			})
		})
	}
}

// A world is one store, opened twice, and what was recorded.
type world struct {
	t        *testing.T
	one, two approval.Store

	// ahead is how far the books' clock is ahead of the bubble's, in which
	// every quarter of a second costs a look at the store.
	ahead atomic.Int64

	mu     sync.Mutex
	events []approval.Event
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// later moves the books' clock.
func (w *world) later(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) record(_ context.Context, event approval.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	return nil
}

// last returns the newest event.
func (w *world) last() approval.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 {
		return approval.Event{}
	}
	return w.events[len(w.events)-1]
}

// An office is a book, and the desk at which calls wait for what it says.
type office struct {
	*approval.Book
	*consent.Desk
}

// book opens an office whose book runs.
func (w *world) book(store approval.Store, mode approval.Mode) *office {
	w.t.Helper()
	book, err := approval.Open(w.t.Context(), store, approval.Options{Mode: mode, Record: w.record, Now: w.now})
	if err != nil {
		w.t.Fatalf("Open = %v", err)
	}
	o := &office{book, consent.New(book, nil)}
	ctx, stop := context.WithCancel(w.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- book.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			w.t.Errorf("Run = %v, want nil", err)
		}
		if err := o.Close(); err != nil {
			w.t.Errorf("Close = %v, want nil", err)
		}
	})
	return o
}

// grant returns a grant of a server; version tells grants apart.
func grant(server, version string) sandbox.Grant {
	return sandbox.Grant{
		Server: server, Source: catalog.BuiltIn, Transport: "stdio", Image: "mcp/" + server + ":" + version,
		Pin:     sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + version, Platform: "linux/amd64"},
		Command: []string{"serve"}, Limits: sandbox.Limits{Memory: 500 << 20, NanoCPUs: 1e9, PIDs: 512},
		Network: catalog.NetworkNone,
	}
}

func request(g sandbox.Grant) approval.Request {
	return approval.Request{
		Server: g.Server, Grant: g, Principal: principal.Local,
		Details: approval.Details{Title: "The " + g.Server, Origin: catalog.Origin{Catalog: "built-in", Kind: catalog.BuiltIn}},
	}
}

func key(g sandbox.Grant) approval.Key {
	return approval.Key{Server: g.Server, GrantDigest: g.Digest()}
}

// tools makes definitions of "name" or "name=description".
func tools(specs ...string) []tool.Definition {
	var list []tool.Definition
	for _, spec := range specs {
		name, description := spec, ""
		for i := range spec {
			if spec[i] == '=' {
				name, description = spec[:i], spec[i+1:]
				break
			}
		}
		list = append(list, tool.Definition{
			Name: name, JSON: []byte(`{"name":"` + name + `","description":"` + description + `"}`),
		})
	}
	return list
}

func by(channel string, answer approval.Answer) approval.Decision {
	return approval.Decision{Answer: answer, Channel: channel, By: principal.Local}
}

// ask records a question without waiting and returns it.
func (w *world) ask(book *office, r approval.Request) approval.Question {
	w.t.Helper()
	if _, err := book.Ask(w.t.Context(), r); err != nil {
		w.t.Fatalf("Ask(%q) = %v", r.Server, err)
	}
	for _, q := range book.Questions(approval.ProgressPending) {
		if q.Server == r.Server && q.GrantDigest == r.Grant.Digest() && q.Kind != approval.KindTools {
			return q
		}
	}
	w.t.Fatalf("Ask(%q) recorded no question", r.Server)
	return approval.Question{}
}

// pending returns the newest pending question.
func (w *world) pending(book *office) approval.Question {
	w.t.Helper()
	list := book.Questions(approval.ProgressPending)
	if len(list) == 0 {
		w.t.Fatal("no question is pending")
	}
	return list[len(list)-1]
}

func (w *world) decide(book *office, q approval.Question, decision approval.Decision) {
	w.t.Helper()
	if err := book.Decide(w.t.Context(), q, decision); err != nil {
		w.t.Fatalf("Decide(%s) = %v", q.ID, err)
	}
}

// approve asks for a grant and approves it.
func (w *world) approve(book *office, g sandbox.Grant) {
	w.t.Helper()
	w.decide(book, w.ask(book, request(g)), by("terminal", approval.Approve))
}

// refresh lets books see at once what others decided.
func (w *world) refresh(books ...*office) {
	w.t.Helper()
	for _, book := range books {
		if err := book.Refresh(w.t.Context()); err != nil {
			w.t.Fatalf("Refresh = %v", err)
		}
	}
}

func (w *world) check(book *office, g sandbox.Grant, want approval.State) {
	w.t.Helper()
	if got := book.Check(key(g)); got.State != want {
		w.t.Errorf("Check(%q) = %v, want %v", g.Server, got.State, want)
	}
}

func (w *world) checkTool(book *office, g sandbox.Grant, spec string, want approval.State) {
	w.t.Helper()
	d := tools(spec)[0]
	if got := book.CheckTool(key(g), d.Name, d.Digest()); got.State != want {
		w.t.Errorf("CheckTool(%q) = %v, want %v", spec, got.State, want)
	}
}

func (w *world) pin(book *office, g sandbox.Grant, specs ...string) []string {
	w.t.Helper()
	held, err := book.Pin(w.t.Context(), request(g), tools(specs...))
	if err != nil {
		w.t.Fatalf("Pin(%q) = %v", g.Server, err)
	}
	return changes(held)
}

// changes renders tool changes as "+name" and "~name".
func changes(list []approval.ToolChange) []string {
	var out []string
	for _, c := range list {
		mark := "+"
		if c.Kind == approval.ToolChanged {
			mark = "~"
		}
		out = append(out, mark+c.Name)
	}
	return out
}

// pass lets time pass in the bubble, and everybody do what is due then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// within runs do and reports how long it took.
func within(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}
