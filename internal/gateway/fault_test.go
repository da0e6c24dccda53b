//nolint:staticcheck // what is deprecated is still to work
package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// legacyVersion and modernVersion are what clients and servers here speak.
func legacyVersion() string { return versions()[0] }
func modernVersion() string { return versions()[1] }

// curious is a server with sessions that asks for a name, and says what came.
func curious(outcome chan<- string) sandboxtest.Server {
	return only(legacyVersion(), mcp.ServerOptions{}, func(s *mcp.Server) {
		echo(s)
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				// Its own context, so that it hears what the gateway says and not only
				// that the call is over.
				answer, err := req.Session.Elicit(context.Background(), &mcp.ElicitParams{Message: "Your name?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
				if err != nil {
					outcome <- err.Error()
					return nil, err
				}
				outcome <- answer.Action
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action}}}, nil
			})
	})
}

func rounds() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("asked although the rounds are ours")
		},
	})
}

func accepted(key string) mcp.InputResponseMap {
	return mcp.InputResponseMap{key: &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}}
}

// A client that leaves while it is asked has decided nothing.
func TestClientLeavesWhileAsked(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			outcome := make(chan string, 1)
			h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": curious(outcome)})
			asked, leave := make(chan struct{}), make(chan struct{})
			client := rounds()
			if version == legacyVersion() {
				client = mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
					ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						close(asked)
						<-leave
						return nil, errors.New("too late")
					},
				})
			}
			session := h.join(t, client, version)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "one__ask"})
				if err == nil && result.NeedsInput() {
					close(asked)
				}
				ended <- err
			}()
			within(t, asked, "the question")
			if version == legacyVersion() {
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("CallTool = %v, want the context's error", err)
				}
			} else {
				check(t, <-ended)
				check(t, session.Close())
			}
			if got := <-outcome; got != "cancel" {
				t.Errorf("the server was answered %q, want cancel", got)
			}
			close(leave)
			cancel()
		})
	}
}

// A server that goes while its question is open leaves an error, not a riddle.
func TestServerDiesWhileParked(t *testing.T) {
	outcome := make(chan string, 1)
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": curious(outcome)})
	session := h.join(t, rounds(), modernVersion())
	asked := invoke(t, session, "one__ask", nil)
	if !asked.NeedsInput() {
		t.Fatalf("one__ask = %+v, want a question", asked)
	}
	_, err := h.fleet.Stop(t.Context(), "one")
	check(t, err)
	<-outcome
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask", RequestState: asked.RequestState, InputResponses: accepted("question")})
	check(t, err)
	if !result.IsError || !strings.HasPrefix(text(result), call.CodeConnection) {
		t.Errorf("the retry = %s, want %s", text(result), call.CodeConnection)
	}
	if again := invoke(t, session, "one__ask", nil); !again.NeedsInput() {
		t.Errorf("one__ask after that = %s, want a question of a new server", text(again))
	}
}

// What was not declared is refused where the server asks, with the error that
// the specification has for it.
func TestAskedBeyondAbilities(t *testing.T) {
	for _, version := range versions() {
		outcome := make(chan string, 1)
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": curious(outcome)})
		session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}},
		}), version)
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask"})
		if got := <-outcome; err == nil || !strings.Contains(got, "does not support elicitation") {
			t.Errorf("%s: the server was answered %q, and CallTool = %v; want a refusal", version, got, err)
		}
	}
}

// Two clients of one server: nobody's question reaches the other, and after
// the first refusal each has a server of its own.
func TestTwoClientsAreAsked(t *testing.T) {
	q := &questioner{questions: everything()}
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": q.server(legacyVersion())})
	var first, second []string
	asked, hold := make(chan struct{}, 4), make(chan struct{})
	slow := mcp.NewClient(&mcp.Implementation{Name: "slow", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- struct{}{}
			<-hold
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
	a, b := h.join(t, slow, legacyVersion()), h.join(t, able(&second), legacyVersion())
	ended := make(chan error, 1)
	go func() {
		_, err := a.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__ask"})
		ended <- err
	}()
	within(t, asked, "the question of the first call") // which only it can have caused
	_, err := b.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask"})
	if err == nil || !strings.Contains(err.Error(), "which of 2 clients") || len(second) > 0 {
		t.Errorf("the second call = %v, asked %q; want a refusal, and nothing asked", err, second)
	}
	close(hold)
	if err := <-ended; err == nil {
		t.Error("the first call, of a client that is asked more than it can, succeeded")
	}
	c := h.join(t, able(&first), legacyVersion())
	done := make(chan *mcp.CallToolResult, 2)
	for _, session := range []*mcp.ClientSession{b, c} {
		go func() {
			result, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__ask"})
			if err != nil {
				t.Errorf("one__ask of who has a server of its own = %v", err)
			}
			done <- result
		}()
	}
	for range 2 {
		if got, want := text(<-done), strings.Join(everythingAnswered(), "\n"); got != want {
			t.Errorf("one__ask = %s, want %s", got, want)
		}
	}
	if len(first) != len(everythingSeen()) || len(second) != len(everythingSeen()) {
		t.Errorf("asked %q and %q, want each the same", first, second)
	}
}

// A server that fails as only its own era does.
func outdated(err error) sandboxtest.Server {
	return only(legacyVersion(), mcp.ServerOptions{}, func(s *mcp.Server) {
		echo(s)
		fresh := true
		s.AddTool(&mcp.Tool{Name: "fail", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if !fresh {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
				}
				fresh = false
				return nil, err
			})
	})
}

func TestErrorsOfTheOtherEra(t *testing.T) {
	elicitations := json.RawMessage(`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://example.com/in","message":"Log in"}],"x":1.0}`)
	required := &jsonrpc.Error{Code: -32042, Message: "log in", Data: elicitations}
	failing := func(err error) *house {
		return build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": outdated(err)})
	}
	code := func(err error) int64 {
		var answer *jsonrpc.Error
		if !errors.As(err, &answer) {
			return 0
		}
		return answer.Code
	}
	fail := func(session *mcp.ClientSession, state string, answers mcp.InputResponseMap) (*mcp.CallToolResult, error) {
		return session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__fail", RequestState: state, InputResponses: answers})
	}

	var asked []string
	_, err := fail(failing(required).join(t, able(&asked), legacyVersion()), "", nil)
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code != -32042 || string(answer.Data) != string(elicitations) {
		t.Errorf("legacy client: %v, want the server's own error", err)
	}

	session := failing(required).join(t, rounds(), modernVersion())
	result, err := fail(session, "", nil)
	check(t, err)
	question, ok := result.InputRequests["url1"].(*mcp.ElicitParams)
	if !ok || question.Message != "one asks: Log in" || question.URL != "https://example.com/in" || question.ElicitationID != "" {
		t.Fatalf("modern client: %+v, want the address", result.InputRequests)
	}
	if _, err := fail(session, result.RequestState, mcp.InputResponseMap{"url1": &mcp.ElicitResult{Action: "decline"}}); code(err) != -32600 {
		t.Errorf("modern client that declines: %v, want a refusal", err)
	}
	if result, err = fail(session, result.RequestState, accepted("url1")); err != nil || text(result) != "done" {
		t.Errorf("modern client that accepts: %s, %v, want the result", text(result), err)
	}

	plain := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	if _, err := fail(failing(required).join(t, plain, modernVersion()), "", nil); code(err) != -32021 {
		t.Errorf("modern client that opens no addresses: %v, want -32021", err)
	}
	if _, err := fail(failing(&jsonrpc.Error{Code: -32002, Message: "not found"}).join(t, plain, modernVersion()), "", nil); code(err) != -32602 {
		t.Errorf("modern client: %v, want -32602 for what is not found", err)
	}
}

// States that a client made up, or of another request, go nowhere.
func TestForeignStates(t *testing.T) {
	q := &questioner{questions: everything()[:2]}
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": q.server(modernVersion())})
	session := h.join(t, rounds(), modernVersion())
	retry := func(state string, arguments any) (*mcp.CallToolResult, error) {
		return session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask", Arguments: arguments, RequestState: state, InputResponses: accepted("q0")})
	}
	asked, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask", Arguments: map[string]any{"a": 1}})
	check(t, err)
	if !asked.NeedsInput() || strings.Contains(asked.RequestState, "[]") {
		t.Fatalf("one__ask = %+v, want a question, and a state that is not the server's as it is", asked)
	}
	for name, try := range map[string]func() (*mcp.CallToolResult, error){
		"the server's own":  func() (*mcp.CallToolResult, error) { return retry("[]", map[string]any{"a": 1}) },
		"another request's": func() (*mcp.CallToolResult, error) { return retry(asked.RequestState, map[string]any{"a": 2}) },
		"no handle":         func() (*mcp.CallToolResult, error) { return retry("dockgate:ABC", map[string]any{"a": 1}) },
	} {
		if result, err := try(); err == nil {
			t.Errorf("%s: %s, want a refusal", name, text(result))
		}
	}
	if next, err := retry(asked.RequestState, map[string]any{"a": 1}); err != nil || !next.NeedsInput() {
		t.Errorf("its own: %+v, %v, want the next question", next, err)
	}
}

// rawTools is a server with sessions that has these tools.
func rawTools(tools string) sandboxtest.Server {
	return speaking(func(m rawMessage) string {
		switch m.Method {
		case "initialize":
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			return `{"tools":` + tools + `}`
		}
		return `!{"code":-32601,"message":"no"}`
	})
}

// Tools that can be called as a task only are not there, and clients with
// sessions get no schema that they cannot read.
func TestTaskOnlyTools(t *testing.T) {
	server := rawTools(`[{"name":"quick","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
		`{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
		`{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]`)
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}, expose: nil}, map[string]sandboxtest.Server{"test/one": server})
	c := h.raw(t)
	c.send(hello)
	c.answer(`"hello"`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp_add","arguments":{"name":"one"}}}`)
	c.answer("2")
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	got := c.answer("3")
	if !strings.Contains(got, `"one__quick"`) || strings.Contains(got, "one__long") {
		t.Errorf("tools %s, want quick and not long", got)
	}
	if !strings.Contains(got, `{"name":"one__list","inputSchema":{"type":"object"}}`) {
		t.Errorf("tools %s, want list without the schema of an array", got)
	}
	modern := h.raw(t)
	modern.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}}`)
	if got := modern.answer("1"); !strings.Contains(got, `"outputSchema":{"type":"array"}`) {
		t.Errorf("tools for a modern client %s, want the schema of the array", got)
	}
}
