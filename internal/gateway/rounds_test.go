//nolint:staticcheck // what is deprecated is still to work
package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// A tool that was written for rounds asks as often as it wants, whatever its
// server speaks: the SDK asks for the first round in a session, and returns the
// question of the next.
func TestRoundsInSession(t *testing.T) {
	q := &questioner{questions: everything()}
	legacy, modern := versions()[0], versions()[1]
	server := only(legacy, mcp.ServerOptions{}, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, q.tool(modern))
	})
	for _, client := range versions() {
		t.Run(client+" client", func(t *testing.T) {
			h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": server})
			var asked []string
			session := h.join(t, able(&asked), client)
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask"})
			if want := strings.Join(everythingAnswered(), "\n"); err != nil || text(result) != want {
				t.Errorf("ask = %s, %v, want %s", text(result), err, want)
			}
			if !slices.Equal(asked, everythingSeen()) {
				t.Errorf("asked %q, want %q", asked, everythingSeen())
			}
		})
	}
}

// A parked call is its principal's: whoever else has its handle gets neither
// the call nor an end of it.
func TestParkedIsPrincipals(t *testing.T) {
	q := &questioner{questions: everything()[:1]}
	legacy, modern := versions()[0], versions()[1]
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": q.server(legacy)})
	inRounds := func() *mcp.Client {
		return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
			Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
			MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		})
	}
	ann := h.joinAs(t, principal.Principal{ID: "ann", Role: principal.Local.Role}, inRounds(), modern)
	bob := h.joinAs(t, principal.Principal{ID: "bob", Role: principal.Local.Role}, inRounds(), modern)
	question := invoke(t, ann, "one__ask", map[string]any{})
	if !question.NeedsInput() || question.RequestState == "" {
		t.Fatalf("ask = %v, want a question", question)
	}
	answers := mcp.InputResponseMap{}
	for key := range question.InputRequests {
		answers[key] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
	}
	retry := &mcp.CallToolParams{Name: "one__ask", Arguments: map[string]any{}, RequestState: question.RequestState, InputResponses: answers}
	stolen, err := bob.CallTool(t.Context(), retry)
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("another principal's retry = %v, %v, want a refusal", stolen, err)
	}
	if got, err := ann.CallTool(t.Context(), retry); err != nil || text(got) != everythingAnswered()[0] {
		t.Errorf("the retry after that = %s, %v, want %s", text(got), err, everythingAnswered()[0])
	}
	if again, err := ann.CallTool(t.Context(), retry); !errors.As(err, &refusal) || refusal.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("the same retry again = %v, %v, want a refusal", again, err)
	}
}

// What a server asks at once in a session, a client without sessions is asked
// in one round, and again as far as it leaves the answer out.
func TestAskedAtOnce(t *testing.T) {
	legacy, modern := versions()[0], versions()[1]
	q := &questioner{questions: everything()}
	server := only(legacy, mcp.ServerOptions{}, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answers := make([]string, len(q.questions))
			var asking sync.WaitGroup
			for i, question := range q.questions {
				asking.Go(func() {
					answer, err := q.ask(ctx, req.Session, question)
					raw, _ := json.Marshal(answer)
					answers[i] = string(raw)
					if err != nil {
						answers[i] = err.Error()
					}
				})
			}
			asking.Wait()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(answers, "\n")}}}, nil
		})
	})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": server})
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}), modern)
	answer := func(asked mcp.InputRequest) mcp.InputResponse {
		switch asked := asked.(type) {
		case *mcp.ElicitParams:
			if asked.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}
		case *mcp.ListRootsParams:
			return &mcp.ListRootsResult{Roots: []*mcp.Root{{Name: "work", URI: "file:///work"}}}
		default:
			return &mcp.CreateMessageWithToolsResult{
				Model: "m", Role: "assistant", StopReason: "endTurn", Content: []mcp.Content{&mcp.TextContent{Text: "4"}},
			}
		}
	}
	result := invokeWith(t, session, &mcp.CallToolParams{Name: "one__ask", Arguments: map[string]any{}})
	most, left := 1, []string(nil) // of the first round one answer comes, of the others all
	for result.NeedsInput() {
		given := mcp.InputResponseMap{}
		for _, key := range left {
			if result.InputRequests[key] == nil {
				t.Errorf("asked %v, want what was left out: %s", result.InputRequests, key)
			}
		}
		left = nil
		for key, question := range result.InputRequests {
			if len(given) < most {
				given[key] = answer(question)
			} else {
				left = append(left, key)
			}
		}
		most = len(q.questions)
		result = invokeWith(t, session, &mcp.CallToolParams{Name: "one__ask", Arguments: map[string]any{}, RequestState: result.RequestState, InputResponses: given})
	}
	if got, want := text(result), strings.Join(everythingAnswered(), "\n"); got != want {
		t.Errorf("result = %s, want %s", got, want)
	}
}

// A server of which each set of capabilities has its own knows what its client
// can do, and everybody sees the tools for all.
func TestToldOfItsClient(t *testing.T) {
	legacy := versions()[0]
	said := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	schema := json.RawMessage(`{"type":"object"}`)
	server := only(legacy, mcp.ServerOptions{}, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "can", InputSchema: schema}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw, err := json.Marshal(req.ClientCapabilities())
			return said(string(raw)), err
		})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if hello, ok := req.GetParams().(*mcp.InitializeParams); ok && hello.Capabilities.Sampling != nil {
					s.AddTool(&mcp.Tool{Name: "sample", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return said("yes"), nil })
				}
				return next(ctx, method, req)
			}
		})
	})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}, catalog: "version: 1\nservers: {one: {image: test/one, isolation: capabilities}}"}, map[string]sandboxtest.Server{"test/one": server})
	var asked []string
	all := h.join(t, able(&asked), legacy)
	mute := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}), legacy)
	invoke(t, all, "one__can", map[string]any{}) // its list is not known before
	if got := text(invoke(t, mute, "one__can", map[string]any{})); strings.Contains(got, "sampling") || strings.Contains(got, "elicitation") {
		t.Errorf("can for a client that can do nothing = %s, want that", got)
	}
	if got := text(invoke(t, all, "one__can", map[string]any{})); !strings.Contains(got, `"sampling"`) || !strings.Contains(got, `"elicitation"`) {
		t.Errorf("can for a client that can do everything = %s, want that", got)
	}
	own := func(session *mcp.ClientSession) []string {
		return slices.DeleteFunc(names(t, session), func(name string) bool { return !strings.HasPrefix(name, "one__") })
	}
	h.Changed(t.Context())
	for who, session := range map[string]*mcp.ClientSession{"all": all, "mute": mute} {
		if got, want := own(session), []string{"one__can", "one__sample"}; !slices.Equal(got, want) {
			t.Errorf("%s: listed %q, want %q", who, got, want)
		}
	}
	if got := text(invoke(t, mute, "one__sample", map[string]any{})); !strings.Contains(got, "TOOL_NOT_FOUND") {
		t.Errorf("sample for a client that can do nothing = %s, want TOOL_NOT_FOUND", got)
	}
}

func invokeWith(t *testing.T, session *mcp.ClientSession, params *mcp.CallToolParams) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
