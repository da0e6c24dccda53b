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

func invokeWith(t *testing.T, session *mcp.ClientSession, params *mcp.CallToolParams) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
