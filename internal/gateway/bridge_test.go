//nolint:staticcheck // what is deprecated is still to work
package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// combinations are the eras of a client and of a server.
func combinations() [][2]string {
	var all [][2]string
	for _, client := range versions() {
		for _, server := range versions() {
			all = append(all, [2]string{client, server})
		}
	}
	return all
}

func eachCombination(t *testing.T, run func(t *testing.T, client, server string)) {
	t.Helper()
	for _, c := range combinations() {
		t.Run(c[0]+" client, "+c[1]+" server", func(t *testing.T) { run(t, c[0], c[1]) })
	}
}

// only is a server of the official SDK that speaks one version of the protocol.
func only(version string, options mcp.ServerOptions, build func(s *mcp.Server)) sandboxtest.Server {
	options.SupportedProtocolVersions = []string{version}
	return gatewaytest.SDKServerWith(options, build)
}

// A questioner asks its client one thing after the other: in requests of its
// own if it has sessions, else in rounds.
type questioner struct {
	questions []mcp.InputRequest
}

func (q *questioner) ask(ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest) (mcp.InputResponse, error) {
	switch question := question.(type) {
	case *mcp.ElicitParams:
		return session.Elicit(ctx, question)
	case *mcp.CreateMessageWithToolsParams:
		return session.CreateMessageWithTools(ctx, question)
	default:
		return session.ListRoots(ctx, nil)
	}
}

// next returns the next question, or what the answers were.
func (q *questioner) next(state string, answers mcp.InputResponseMap) (mcp.InputRequestMap, string, error) {
	var given []json.RawMessage
	if state != "" {
		if err := json.Unmarshal([]byte(state), &given); err != nil {
			return nil, "", err
		}
		raw, err := json.Marshal(answers[fmt.Sprintf("q%d", len(given))])
		if err != nil {
			return nil, "", err
		}
		given = append(given, raw)
	}
	if len(given) == len(q.questions) {
		return nil, spoken(given), nil
	}
	if given == nil {
		given = []json.RawMessage{}
	}
	kept, err := json.Marshal(given)
	return mcp.InputRequestMap{fmt.Sprintf("q%d", len(given)): q.questions[len(given)]}, string(kept), err
}

func spoken(answers []json.RawMessage) string {
	texts := make([]string, len(answers))
	for i, answer := range answers {
		texts[i] = string(answer)
	}
	return strings.Join(texts, "\n")
}

func (q *questioner) interview(ctx context.Context, session *mcp.ServerSession) (string, error) {
	var given []json.RawMessage
	for _, question := range q.questions {
		answer, err := q.ask(ctx, session, question)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			return "", err
		}
		given = append(given, raw)
	}
	return spoken(given), nil
}

func (q *questioner) server(version string) sandboxtest.Server {
	return only(version, mcp.ServerOptions{}, func(s *mcp.Server) {
		echo(s)
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, q.tool(version))
		s.AddPrompt(&mcp.Prompt{Name: "ask"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if version == versions()[0] {
				text, err := q.interview(ctx, req.Session)
				return &mcp.GetPromptResult{Description: text, Messages: []*mcp.PromptMessage{}}, err
			}
			requests, text, err := q.next(req.Params.RequestState, req.Params.InputResponses)
			if requests != nil {
				return &mcp.GetPromptResult{InputRequests: requests, RequestState: text}, err
			}
			return &mcp.GetPromptResult{Description: text, Messages: []*mcp.PromptMessage{}}, err
		})
		s.AddResource(&mcp.Resource{Name: "ask", URI: "test://ask"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			answered := func(text string) []*mcp.ResourceContents {
				return []*mcp.ResourceContents{{URI: req.Params.URI, Text: text}}
			}
			if version == versions()[0] {
				text, err := q.interview(ctx, req.Session)
				return &mcp.ReadResourceResult{Contents: answered(text)}, err
			}
			requests, text, err := q.next(req.Params.RequestState, req.Params.InputResponses)
			if requests != nil {
				return &mcp.ReadResourceResult{InputRequests: requests, RequestState: text}, err
			}
			return &mcp.ReadResourceResult{Contents: answered(text)}, err
		})
	})
}

func (q *questioner) tool(version string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := func(text string) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
		}
		if version == versions()[0] {
			text, err := q.interview(ctx, req.Session)
			if err != nil {
				return nil, err
			}
			return said(text), nil
		}
		requests, text, err := q.next(req.Params.RequestState, req.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		if requests != nil {
			return &mcp.CallToolResult{InputRequests: requests, RequestState: text}, nil
		}
		return said(text), nil
	}
}

// everything a server can ask.
func everything() []mcp.InputRequest {
	form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	return []mcp.InputRequest{
		&mcp.ElicitParams{Mode: "form", Message: "Your name?", RequestedSchema: form},
		&mcp.ElicitParams{Mode: "url", Message: "Log in", URL: "https://example.com/login", ElicitationID: "e1"},
		&mcp.CreateMessageWithToolsParams{
			MaxTokens: 10, SystemPrompt: "Be brief",
			Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "2+2?"}}}},
			Tools:    []*mcp.Tool{{Name: "add", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		},
		&mcp.ListRootsParams{},
	}
}

// everythingAnswered is what the able client answers to everything.
func everythingAnswered() []string {
	return []string{
		`{"action":"accept","content":{"name":"Ann"}}`,
		`{"action":"accept"}`,
		`{"content":{"type":"text","text":"4"},"model":"m","role":"assistant","stopReason":"endTurn"}`,
		`{"roots":[{"name":"work","uri":"file:///work"}]}`,
	}
}

// able is a client that can be asked everything, and notes what it was asked.
func able(asked *[]string) *mcp.Client {
	var mu sync.Mutex
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, text)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			note(strings.TrimSpace(req.Params.Mode + " " + req.Params.Message + " " + req.Params.URL))
			if req.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
		},
		CreateMessageWithToolsHandler: func(_ context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			note(fmt.Sprintf("sample %s, %d messages, %d tools", req.Params.SystemPrompt, len(req.Params.Messages), len(req.Params.Tools)))
			return &mcp.CreateMessageWithToolsResult{
				Model: "m", Role: "assistant", StopReason: "endTurn", Content: []mcp.Content{&mcp.TextContent{Text: "4"}},
			}, nil
		},
	})
	client.AddRoots(&mcp.Root{Name: "work", URI: "file:///work"})
	return client
}

// everythingSeen is what the able client is asked.
func everythingSeen() []string {
	return []string{
		"form one asks: Your name?", "url one asks: Log in https://example.com/login", "sample Be brief, 1 messages, 1 tools",
	}
}

func TestServerAsks(t *testing.T) {
	eachCombination(t, func(t *testing.T, client, server string) {
		q := &questioner{questions: everything()}
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": q.server(server)})
		var asked []string
		session := h.join(t, able(&asked), client)
		invoke(t, session, "one__echo", map[string]any{})
		h.Changed(t.Context())
		want := strings.Join(everythingAnswered(), "\n")

		compare := func(kind, got string, err error) {
			t.Helper()
			if err != nil || got != want {
				t.Errorf("%s = %s, %v, want %s", kind, got, err, want)
			}
			if !slices.Equal(asked, everythingSeen()) {
				t.Errorf("%s: asked %q, want %q", kind, asked, everythingSeen())
			}
			asked = nil
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__ask"})
		compare("tool", text(result), err)
		result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"server": "one", "tool": "ask"}})
		compare("execute_tool", text(result), err)
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__ask"})
		if prompt == nil {
			prompt = &mcp.GetPromptResult{}
		}
		compare("prompt", prompt.Description, err)
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://ask"})
		if err != nil {
			t.Fatalf("resource: %v", err)
		}
		compare("resource", read.Contents[0].Text, nil)
	})
}
