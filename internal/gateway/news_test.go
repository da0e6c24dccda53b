//nolint:staticcheck // what is deprecated is still to work
package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// talkative is a server that logs and reports progress during a call, and
// completes prompts and templates.
func talkative(version string) sandboxtest.Server {
	return only(version, mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
				Values: []string{req.Params.Ref.Name + req.Params.Ref.URI + ":" + req.Params.Argument.Value},
			}}, nil
		},
		Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
	}, func(s *mcp.Server) {
		echo(s)
		s.AddTool(&mcp.Tool{Name: "talk", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for _, level := range []mcp.LoggingLevel{"debug", "warning", "error"} {
					if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: "says " + string(level)}); err != nil {
						return nil, err
					}
				}
				if token := req.Params.GetProgressToken(); token != nil {
					for n := range 3 {
						if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n + 1)}); err != nil {
							return nil, err
						}
					}
				}
				return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
			})
		s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t", URITemplate: "test://t/{id}"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		})
	})
}

func TestLogProgressCompletion(t *testing.T) {
	eachCombination(t, func(t *testing.T, client, server string) {
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": talkative(server)})
		var mu sync.Mutex
		var log, progress []string
		session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, fmt.Sprint(req.Params.Data))
			},
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				progress = append(progress, fmt.Sprintf("%v %v", req.Params.ProgressToken, req.Params.Progress))
			},
		}), client)
		other := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
				t.Errorf("a client that set no level was sent %v", req.Params.Data)
			},
		}), client)
		talk := func(level string) *mcp.CallToolParams {
			params := &mcp.CallToolParams{Name: "one__talk", Meta: mcp.Meta{}}
			if client == versions()[1] && level != "" {
				params.Meta["io.modelcontextprotocol/logLevel"] = level
			}
			return params
		}
		_, err := session.CallTool(t.Context(), talk(""))
		check(t, err)
		_, err = other.CallTool(t.Context(), talk(""))
		check(t, err)
		if client == versions()[0] {
			check(t, session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "warning"}))
		}
		params := talk("warning")
		params.SetProgressToken("mine")
		_, err = session.CallTool(t.Context(), params)
		check(t, err)
		eventually(t, "all that was logged", func() bool { mu.Lock(); defer mu.Unlock(); return len(log) == 2 && len(progress) == 3 })
		if want := []string{"says warning", "says error"}; !slices.Equal(log, want) {
			t.Errorf("logged %q, want %q", log, want)
		}
		if want := []string{"mine 1", "mine 2", "mine 3"}; !slices.Equal(progress, want) {
			t.Errorf("progress %q, want %q", progress, want)
		}

		h.Changed(t.Context())
		for ref, want := range map[mcp.CompleteReference]string{
			{Type: "ref/prompt", Name: "one__greet"}:     "greet:a",
			{Type: "ref/resource", URI: "test://t/{id}"}: "test://t/{id}:a",
		} {
			completed, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: &ref, Argument: mcp.CompleteParamsArgument{Name: "x", Value: "a"}})
			if err != nil || !slices.Equal(completed.Completion.Values, []string{want}) {
				t.Errorf("complete %v = %+v, %v, want %s", ref, completed, err, want)
			}
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://t/7"}); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("read of what is not there = %v, want the server's error", err)
		}
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come within 30 s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// changing is a server whose resource changes when its tool is called.
func changing(version string, subscribed func(event string)) sandboxtest.Server {
	return func(ctx context.Context, c sandboxtest.Container) int {
		var server *mcp.Server
		return only(version, mcp.ServerOptions{
			SubscribeHandler: func(_ context.Context, req *mcp.SubscribeRequest) error { subscribed("+" + req.Params.URI); return nil },
			UnsubscribeHandler: func(_ context.Context, req *mcp.UnsubscribeRequest) error {
				subscribed("-" + req.Params.URI)
				return nil
			},
		}, func(s *mcp.Server) {
			server = s
			echo(s)
			s.AddResource(&mcp.Resource{Name: "a", URI: "test://a"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "content"}}}, nil
			})
			s.AddTool(&mcp.Tool{Name: "grow", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					server.AddTool(&mcp.Tool{Name: "grown", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
					return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
				})
			s.AddTool(&mcp.Tool{Name: "change", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{}}, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://a"})
				})
		})(ctx, c)
	}
}

func TestSubscriptions(t *testing.T) {
	eachCombination(t, func(t *testing.T, client, server string) {
		events := make(chan string, 10)
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}},
			map[string]sandboxtest.Server{"test/one": changing(server, func(event string) { events <- event })})
		expect := func(want string) {
			t.Helper()
			select {
			case got := <-events:
				if got != want {
					t.Errorf("the server got %s, want %s", got, want)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("the server did not get %s", want)
			}
		}
		updates := make(chan string, 10)
		watching := func(name string) *mcp.ClientSession {
			return h.join(t, mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
					updates <- name + " " + req.Params.URI
				},
			}), client)
		}
		a, b := watching("a"), watching("b")
		invoke(t, a, "one__echo", map[string]any{})
		h.Changed(t.Context())

		check(t, a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}))
		expect("+test://a")
		// A client without sessions is told that it is subscribed, but its SDK
		// does not say so.
		reaches := func(want string) func() bool {
			return func() bool {
				invoke(t, b, "one__change", map[string]any{})
				for {
					select {
					case got := <-updates:
						if got == want {
							return true
						}
						if got != "a test://a" {
							t.Errorf("updated %s, which has not subscribed", got)
						}
					case <-time.After(20 * time.Millisecond):
						return false
					}
				}
			}
		}
		eventually(t, "the first subscription", reaches("a test://a"))
		check(t, b.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}))
		eventually(t, "the second subscription", reaches("b test://a"))
		check(t, a.Close())
		invoke(t, b, "one__change", map[string]any{})
		check(t, b.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://a"}))
		expect("-test://a")
		if server == versions()[0] && len(events) > 0 {
			t.Errorf("the server got %s too", <-events)
		}
	})
}

// What belongs to sessions alone passes between a client and a server that
// both have them: that the roots are others, and that an address is done with.
func TestSessionNews(t *testing.T) {
	changed := make(chan struct{}, 4)
	server := only(legacyVersion(), mcp.ServerOptions{
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { changed <- struct{}{} },
	}, func(s *mcp.Server) {
		echo(s)
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if _, err := req.Session.ListRoots(ctx, nil); err != nil {
					return nil, err
				}
				if _, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: "m", URL: "https://example.com", ElicitationID: "e7"}); err != nil {
					return nil, err
				}
				return &mcp.CallToolResult{Content: []mcp.Content{}}, req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "e7"})
			})
	})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": server})
	completed := make(chan string, 4)
	open := func(name string) (*mcp.Client, *mcp.ClientSession) {
		client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{
				RootsV2:     &mcp.RootCapabilities{ListChanged: true},
				Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}},
			},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
			ElicitationCompleteHandler: func(_ context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
				completed <- name + " " + req.Params.ElicitationID
			},
		})
		return client, h.join(t, client, legacyVersion())
	}
	client, session := open("a")
	other, otherSession := open("b")
	invoke(t, otherSession, "one__echo", map[string]any{})
	other.AddRoots(&mcp.Root{URI: "file:///other"}) // nobody has asked for its roots
	invoke(t, session, "one__ask", map[string]any{})
	if got := <-completed; got != "a e7" {
		t.Errorf("completed %s, want a e7", got)
	}
	client.AddRoots(&mcp.Root{URI: "file:///more"})
	within(t, changed, "the news of other roots")
	if len(changed) > 0 {
		t.Error("the server heard of roots that it had not asked for")
	}
}

// A rawClient speaks line by line.
type rawClient struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Reader
}

type rawMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// raw joins a client that sends and gets bytes.
func (h *house) raw(t *testing.T) *rawClient {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve(context.WithoutCancel(t.Context()), toServer, fromServer, principal.Local) }()
	t.Cleanup(func() {
		_ = fromClient.Close()
		_ = toClient.Close()
		if err := <-served; err != nil && !strings.Contains(err.Error(), "closed pipe") {
			t.Errorf("Serve = %v", err)
		}
	})
	return &rawClient{t: t, in: fromClient, lines: bufio.NewReader(toClient)}
}

func (c *rawClient) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	check(c.t, err)
}

func (c *rawClient) read() rawMessage {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	check(c.t, err)
	var m rawMessage
	check(c.t, json.Unmarshal(line, &m))
	return m
}

// answer reads until a message is the answer to id.
func (c *rawClient) answer(id string) string {
	c.t.Helper()
	for {
		if m := c.read(); string(m.ID) == id && m.Method == "" {
			return string(m.Result) + string(m.Error)
		}
	}
}

// offer is what the server one has listed last.
func (h *house) offer(t *testing.T) (inventory.Offer, bool, error) {
	t.Helper()
	made, err := h.Desk.Planner.Plan(t.Context(), principal.Local, "one")
	check(t, err)
	return h.Caller.Offer(t.Context(), made)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// Several listens of one connection go side by side, and end alone.
func TestListens(t *testing.T) {
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}},
		map[string]sandboxtest.Server{"test/one": changing(versions()[1], func(string) {})})
	c := h.raw(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{},` + modernMeta + `}}`)
	c.answer("1")
	h.Changed(t.Context())
	c.send(`{"jsonrpc":"2.0","id":"x","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`)
	if m := c.read(); m.Method != "notifications/subscriptions/acknowledged" ||
		string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":"x"},"notifications":{"toolsListChanged":true}}` {
		t.Errorf("first of all came %s %s", m.Method, m.Params)
	}
	c.send(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["test://a","test://nobody"]},` + modernMeta + `}}`)
	if m := c.read(); string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"resourceSubscriptions":["test://a"]}}` {
		t.Errorf("first of the second came %s %s", m.Method, m.Params)
	}
	change := func(id string) {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"one__change","arguments":{},` + modernMeta + `}}`)
	}
	news := func(want string) {
		t.Helper()
		for {
			if m := c.read(); m.Method != "" {
				if got := m.Method + " " + string(m.Params); got != want {
					t.Errorf("news %s, want %s", got, want)
				}
				return
			}
		}
	}
	change("2")
	news(`notifications/resources/updated {"_meta":{"io.modelcontextprotocol/subscriptionId":7},"uri":"test://a"}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	change("3")
	c.answer("3")
	// The server has lost no list for having been subscribed to anew.
	c.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"one__grow","arguments":{},` + modernMeta + `}}`)
	c.answer("5")
	eventually(t, "the listing of a new tool", func() bool {
		offer, ok, err := h.offer(t)
		check(t, err)
		_, grown := offer.Tool("grown")
		return ok && grown
	})
	c.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"mcp_remove","arguments":{"name":"one"},` + modernMeta + `}}`)
	news(`notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}`)
}
