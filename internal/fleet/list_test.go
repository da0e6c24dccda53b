package fleet_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestBadListing(t *testing.T) {
	tests := []struct {
		name   string
		result string
		took   time.Duration
		want   string // in the reason
	}{
		{"none", "-", fleet.DefaultList, `server "git" did not list what it offers within 10s`},
		{"no list", `{"tools":7}`, 0, "tools/list: tools"},
		{"no tools", `{}`, 0, "tools/list: result without tools"},
		{"only tools without a name", `{"tools":[{}]}`, 0, "tools/list: tool"},
		{"no end", `{"tools":[],"nextCursor":"more"}`, 0, "list does not end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				o := w.order("git", "mcp")
				w.lists(tt.result)
				// Without anything that was listed before, the start fails.
				var failed *fleet.StartError
				var err error
				if d := took(func() { err = w.ready(o) }); d != tt.took || !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Ready() = %v after %v, want a StartError with %q after %v", err, d, tt.want, tt.took)
				}
				var reason error
				w.unlisted = func(why error) error { reason = why; return nil }
				w.answers(o, "echo", answerOf(2))
				if reason == nil || !strings.Contains(reason.Error(), tt.want) {
					t.Errorf("the list is missing because of %v, want %q", reason, tt.want)
				}
				w.expectListings(-1, -1)
				w.expectRunning("git")
			})
		})
	}
}

// A server that goes while it lists has not started, whatever it listed before.
func TestCrashWhileListing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.unlisted = func(error) error { t.Error("a server that went is to go on"); return nil }
		w.lists("-")
		failed := make(chan error, 1)
		go func() { failed <- w.ready(w.order("git", "mcp")) }()
		synctest.Wait()
		w.fake.Kill("git")
		var start *fleet.StartError
		if err := <-failed; !errors.As(err, &start) || start.Exit == nil {
			t.Errorf("Ready() = %v, want a StartError with the exit", err)
		}
	})
}

// A bad list in the middle of a life keeps the old one, and the next good one
// takes its place.
func TestBadListingLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		w.unlisted = func(error) error { return nil }
		w.answers(o, "echo", answerOf(1))
		w.lists(`{"tools":7}`)
		w.answers(o, "grow", answerOf(1))
		synctest.Wait()
		w.expectListings(1, -1)
		w.lists("")
		w.answers(o, "grow", answerOf(1))
		pass(time.Second)
		w.expectListings(1, -1, 3)
		w.expectEvents("start git")
	})
}

// A server whose list changes all the time is not asked all the time.
func TestChangesAreNotFollowedBlindly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o := w.order("git", "mcp")
		w.fake.Servers["mcp"] = restless(w)
		if err := w.ready(o); err != nil {
			t.Fatal(err)
		}
		pass(10*time.Second - time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.listings); n < 5 || n > 11 {
			t.Errorf("it was asked %d times in 10 s, want about once a second", n)
		}
	})
}

// restless says with each list that it has changed.
func restless(w *world) sandboxtest.Server {
	serve := w.server(legacy)
	return func(ctx context.Context, c sandboxtest.Container) int {
		out := c.Stdout
		c.Stdout = writer(func(line []byte) (int, error) {
			n, err := out.Write(line)
			if strings.Contains(string(line), `"tools":[`) {
				_ = jsonrpc.NewWriter(out).Write(jsonrpc.Message{Method: "notifications/tools/list_changed"})
			}
			return n, err
		})
		return serve(ctx, c)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (w writer) Close() error { return nil }

// A server of the official SDK that is of the modern era, and gets new tools.
func TestModernServerReportsChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var server *mcp.Server
		nothing := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		}
		add := func(name string) {
			server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, nothing)
		}
		var listens, ended []string
		w.fake.Servers["sdk"] = func(ctx context.Context, c sandboxtest.Container) int {
			server = mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
			add("first")
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method != "subscriptions/listen" {
						return next(ctx, method, req)
					}
					w.mu.Lock()
					listens = append(listens, method)
					w.mu.Unlock()
					result, err := next(ctx, method, req)
					w.mu.Lock()
					ended = append(ended, method)
					w.mu.Unlock()
					return result, err
				}
			})
			if err := server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(c.Stdin), Writer: writer(c.Stdout.Write)}); err != nil {
				return 1
			}
			return 0
		}
		o := w.order("git", "sdk")
		o.Era = upstream.Modern
		if err := w.ready(o); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		w.expectListings(1)
		add("second")
		pass(time.Second)
		w.expectListings(1, 2)
		add("third")
		pass(2 * time.Second)
		w.expectListings(1, 2, 3)
		if status := w.fleet.Running(); len(status) != 1 || status[0].Calls != 0 {
			t.Errorf("Running() = %+v, want git without a call", status)
		}
		pass(fleet.DefaultIdle)
		w.expectRunning() // it was idle all the time
		w.mu.Lock()
		defer w.mu.Unlock()
		if diff := cmp.Diff([][]string{{"subscriptions/listen"}, {"subscriptions/listen"}}, [][]string{listens, ended}); diff != "" {
			t.Errorf("subscriptions that began and ended (-want +got):\n%s", diff)
		}
	})
}

// A subscription that the server ends in good order is begun anew, and what
// changed between is listed; one that it refuses is not.
func TestEndedSubscription(t *testing.T) {
	tests := []struct {
		name     string
		refuses  bool
		listens  int // in 25 s
		listings []int
	}{
		{"in good order", false, 3, []int{1, 1, 1}},
		{"refused", true, 1, []int{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.fake.Servers["brief"] = brief(w, tt.refuses)
				if err := w.ready(w.order("git", "brief")); err != nil {
					t.Fatal(err)
				}
				pass(25 * time.Second)
				got := strings.Count(strings.Join(w.received, " "), "subscriptions/listen")
				if got != tt.listens {
					t.Errorf("the server got %d subscriptions, want %d", got, tt.listens)
				}
				w.expectListings(tt.listings...)
			})
		})
	}
}

// brief is a modern server that acknowledges subscriptions and ends them, or
// refuses them.
func brief(w *world, refuses bool) sandboxtest.Server {
	return func(_ context.Context, c sandboxtest.Container) int {
		in, out := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
		for {
			m, err := in.Read()
			if err != nil {
				return 0
			}
			w.mu.Lock()
			w.received = append(w.received, m.Method)
			w.mu.Unlock()
			answer := jsonrpc.Message{ID: m.ID}
			switch {
			case m.Method == "server/discover":
				answer.Result = []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
			case m.Method == "tools/list":
				answer.Result = []byte(`{"tools":[{"name":"t"}]}`)
			case m.Method == "subscriptions/listen" && refuses:
				answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "what?"}
			case m.Method == "subscriptions/listen":
				_ = out.Write(jsonrpc.Message{Method: "notifications/subscriptions/acknowledged"})
				answer.Result = []byte(`{"resultType":"complete"}`)
			default:
				continue
			}
			_ = out.Write(answer) // the client may be gone
		}
	}
}
