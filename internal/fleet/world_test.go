package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a fleet over an engine in memory, and what became of it.
type world struct {
	t     *testing.T
	fake  *sandboxtest.Fake
	fleet *fleet.Fleet

	// How the servers and what stands around the fleet behave.
	broken    atomic.Bool // servers exit at their start
	unlock    func() error
	recorded  func(fleet.Event) error
	listed    func(upstream.Offer) error
	eraFails  error
	mu        sync.Mutex
	eras      map[string]string
	events    []string
	failures  []error  // of the events that have one
	received  []string // the methods that servers got, in order
	listings  []int    // how many tools each listing had; -1 for one that failed
	tools     int      // of every server
	listing   string   // what servers answer to tools/list in place of their tools; "-" is nothing
	unlisted  func(error) error
	cancelled []string // the reasons servers were given
}

// inWorld runs a test in a bubble with a fleet of its own, and checks that
// nothing is left of it.
func inWorld(t *testing.T, run func(*testing.T, *world)) {
	t.Helper()
	inWorldWith(t, fleet.Quota{}, run)
}

// inWorldWith is inWorld where every owner has a quota.
func inWorldWith(t *testing.T, quota fleet.Quota, run func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, eras: make(map[string]string), tools: 1}
		w.fake = &sandboxtest.Fake{Servers: map[string]sandboxtest.Server{
			"mcp": w.server(legacy), "modern": w.server(modern), "touchy": w.server(touchy), "fickle": w.server(fickle),
			"mute": mute, "stubborn": w.stubborn,
		}}
		w.fleet = fleet.New(fleet.Options{
			Runner: w.fake,
			Client: upstream.Implementation{Name: "test", Version: "1"},
			Eras:   w,
			Unlock: func(_ context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
				if w.unlock != nil {
					return spec, w.unlock()
				}
				return spec, nil
			},
			Record: w.record,
			Quota:  quota,
			Logger: slog.New(slog.DiscardHandler),
		})
		run(t, w)
		if err := w.fleet.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		w.expectRunning()
		if left := w.fleet.Running(); len(left) > 0 {
			t.Errorf("Running() after Close = %v, want none", left)
		}
	})
}

func (w *world) Era(_ context.Context, image string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eras[image], w.eraFails
}

func (w *world) PutEra(_ context.Context, image, era string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.eras[image] = era
	return nil
}

func (w *world) record(e fleet.Event) error {
	if w.recorded != nil {
		if err := w.recorded(e); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, strings.TrimSpace(e.Kind+" "+e.Server+" "+e.Scope))
	if e.Err != nil {
		w.failures = append(w.failures, e.Err)
	}
	return nil
}

// order returns an order for a server of the image.
func (w *world) order(server, image string) fleet.Order {
	spec := sandbox.Spec{
		Server: server,
		Image:  sandbox.Image{Ref: image, Pin: sandbox.Pin{Kind: sandbox.LocalID, Digest: "sha256:" + image}},
	}
	return fleet.Order{
		Spec: spec, Digest: spec.Digest(),
		Listed: func(_ context.Context, _ upstream.Info, offer upstream.Offer) error {
			w.mu.Lock()
			w.listings = append(w.listings, len(offer.Tools))
			w.mu.Unlock()
			if w.listed != nil {
				return w.listed(offer)
			}
			return nil
		},
		Unlisted: func(_ context.Context, _ upstream.Info, reason error) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.listings = append(w.listings, -1)
			if w.unlisted != nil {
				return w.unlisted(reason)
			}
			return reason
		},
	}
}

// changed returns the order with another Spec.
func changed(o fleet.Order) fleet.Order {
	o.Spec.Command = append(o.Spec.Command, "changed")
	o.Digest = o.Spec.Digest()
	return o
}

func scoped(o fleet.Order, scope string) fleet.Order {
	o.Scope = scope
	return o
}

// call calls a tool and returns the id of the container that answered.
func (w *world) call(ctx context.Context, o fleet.Order, tool string) (string, error) {
	result, err := w.fleet.Call(ctx, o, "tools/call", params(tool), func(json.RawMessage) {})
	return string(result), err
}

// ready makes the ordered server ready, and lets it go.
func (w *world) ready(o fleet.Order) error {
	hold, err := w.fleet.Ready(w.t.Context(), o)
	hold.Release()
	hold.Release()
	return err
}

func params(tool string) json.RawMessage { return json.RawMessage(`{"name":"` + tool + `"}`) }

// answers makes a call that must succeed.
func (w *world) answers(o fleet.Order, tool, want string) {
	w.t.Helper()
	if got, err := w.call(w.t.Context(), o, tool); err != nil || got != want {
		w.t.Errorf("Call(%s) = %s, %v, want %s", tool, got, err, want)
	}
}

// starts makes a call in the background.
func (w *world) starts(o fleet.Order, tool string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := w.call(w.t.Context(), o, tool)
		ended <- err
	}()
	synctest.Wait()
	return ended
}

// answerOf is what container n answers.
func answerOf(n int) string { return fmt.Sprintf(`{"container":%d}`, n) }

func (w *world) expectEvents(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.events, ", "); got != strings.Join(want, ", ") {
		w.t.Errorf("recorded %s, want %s", got, strings.Join(want, ", "))
	}
}

func (w *world) expectStarted(want int) {
	w.t.Helper()
	if got := w.fake.Started(); got != want {
		w.t.Errorf("%d containers were started, want %d", got, want)
	}
}

// expectRunning waits until what is due has been done.
func (w *world) expectRunning(want ...string) {
	w.t.Helper()
	synctest.Wait()
	if got := strings.Join(w.fake.Running(), " "); got != strings.Join(want, " ") {
		w.t.Errorf("containers of %q exist, want %q", got, strings.Join(want, " "))
	}
}

// lists makes servers answer tools/list in another way.
func (w *world) lists(result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listing = result
}

func (w *world) expectListings(want ...int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.listings); diff != "" {
		w.t.Errorf("listings (-want +got):\n%s", diff)
	}
}

func (w *world) reasons() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.cancelled...)
}

// pass lets time pass, and everybody do what is due then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// took reports how long do took.
func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// The generations of servers.
const (
	legacy = "legacy"
	modern = "modern"
	touchy = "touchy" // exits when it gets anything before initialize
	fickle = "fickle" // says after each listing that it changed
)

// server returns a server with a tool for each way to behave.
func (w *world) server(kind string) sandboxtest.Server {
	var containers atomic.Int64
	return func(ctx context.Context, c sandboxtest.Container) int {
		if w.broken.Load() {
			_, _ = io.WriteString(c.Stderr, "starting\ncannot open \x1b[31mthe door\n")
			return 1
		}
		s := &server{world: w, kind: kind, out: jsonrpc.NewWriter(c.Stdout), answer: answerOf(int(containers.Add(1)))}
		in := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{})
		for {
			m, err := in.Read()
			if err != nil {
				return 0
			}
			w.mu.Lock()
			w.received = append(w.received, m.Method)
			w.mu.Unlock()
			if code := s.handle(ctx, c, m); code != goesOn {
				return code
			}
		}
	}
}

const goesOn = -100

type server struct {
	*world
	kind   string
	out    *jsonrpc.Writer
	answer string
}

func (s *server) send(m jsonrpc.Message) { _ = s.out.Write(m) } // the client may be gone

func (s *server) reply(m jsonrpc.Message, result string) {
	s.send(jsonrpc.Message{ID: m.ID, Result: json.RawMessage(result)})
}

func (s *server) handle(ctx context.Context, c sandboxtest.Container, m jsonrpc.Message) int {
	switch m.Method {
	case "server/discover":
		switch s.kind {
		case modern:
			s.reply(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case touchy:
			return 1
		default:
			s.send(jsonrpc.Message{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "what?"}})
		}
	case "initialize":
		s.reply(m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}`)
	case "ping":
		s.reply(m, `{}`)
	case "tools/list":
		s.mu.Lock()
		n, other := s.tools, s.listing
		s.mu.Unlock()
		switch {
		case other == "-":
			return goesOn
		case other != "":
			s.reply(m, other)
			return goesOn
		}
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`{"name":"t%d"}`, i))
		}
		s.reply(m, `{"tools":[`+strings.Join(names, ",")+`]}`)
		if s.kind == fickle {
			s.send(jsonrpc.Message{Method: "notifications/tools/list_changed"})
		}
	case "notifications/cancelled":
		var reason string
		_ = json.Unmarshal(jsonrpc.Lookup(m.Params, "reason"), &reason)
		s.mu.Lock()
		s.cancelled = append(s.cancelled, reason)
		s.mu.Unlock()
	case "tools/call":
		return s.call(ctx, c, m)
	}
	return goesOn
}

func (s *server) call(ctx context.Context, c sandboxtest.Container, m jsonrpc.Message) int {
	var tool string
	_ = json.Unmarshal(jsonrpc.Lookup(m.Params, "name"), &tool)
	switch tool {
	case "echo":
		s.reply(m, s.answer)
	case "fail":
		s.send(jsonrpc.Message{ID: m.ID, Error: &jsonrpc.Error{Code: -32042, Message: "no", Data: json.RawMessage(`{"why":9007199254740993}`)}})
	case "hang": // and answer pings
	case "deaf":
		select {
		case <-ctx.Done():
		case <-c.Killed:
		}
		return 143
	case "wait":
		<-time.After(10 * time.Second)
		s.reply(m, s.answer)
	case "work": // for 100 s, and say so
		for n := range 5 {
			<-time.After(20 * time.Second)
			token := jsonrpc.Lookup(jsonrpc.Lookup(m.Params, "_meta"), "progressToken")
			s.send(jsonrpc.Message{Method: "notifications/progress", Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, token, n)})
		}
		s.reply(m, s.answer)
	case "grow":
		s.mu.Lock()
		s.tools++
		s.mu.Unlock()
		s.send(jsonrpc.Message{Method: "notifications/tools/list_changed"})
		s.reply(m, s.answer)
	case "crash":
		_, _ = io.WriteString(c.Stderr, "going down\nboom\n")
		return 3
	case "killed":
		return 137
	case "eat":
		return sandboxtest.OutOfMemory
	case "leave": // the conversation, but stay
		c.Stdout.(interface{ CloseWrite(error) }).CloseWrite(nil)
		select {
		case <-ctx.Done():
		case <-c.Killed:
		}
		return 143
	}
	return goesOn
}

// mute never answers; it exits when its stdin is closed.
func mute(_ context.Context, c sandboxtest.Container) int {
	_, _ = io.WriteString(c.Stderr, "thinking\n")
	_, _ = io.Copy(io.Discard, c.Stdin)
	return 0
}

// stubborn serves, but goes only when it is killed.
func (w *world) stubborn(ctx context.Context, c sandboxtest.Container) int {
	w.server(legacy)(ctx, c)
	<-c.Killed
	return 0
}

var errTest = errors.New("told to fail")
