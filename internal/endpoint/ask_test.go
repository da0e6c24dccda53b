package endpoint_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// Two programs of one principal, without sessions, never get what the other is
// asked: what cannot be attributed is refused once, and from then on each call
// is asked by a server of its own.
func TestEachIsAskedItsOwn(t *testing.T) {
	legacy, modern := versions()[0], versions()[1]
	together := make(chan struct{}) // two calls meet here before they ask
	f := open(t, options{}, map[string]sandboxtest.Server{"test/one": gatewaytest.SDKServerWith(
		mcp.ServerOptions{SupportedProtocolVersions: []string{legacy}}, func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				select {
				case together <- struct{}{}:
				case <-together:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
					Mode: "form", Message: string(req.Params.Arguments), RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
				})
				if err != nil {
					return nil, err
				}
				name, _ := answer.Content["name"].(string)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
			})
		})})
	both := func() (texts []string) {
		texts = make([]string, 2)
		var calls sync.WaitGroup
		for i, name := range []string{"ann", "bob"} {
			session := f.join(t, modern, newClient(&mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if !strings.Contains(req.Params.Message, name) {
					t.Errorf("the program of %s was asked %q", name, req.Params.Message)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
			}}), "")
			calls.Go(func() {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__greet", Arguments: map[string]any{"name": name}})
				if err != nil {
					texts[i] = err.Error()
					return
				}
				texts[i] = result.Content[0].(*mcp.TextContent).Text
			})
		}
		calls.Wait()
		return texts
	}
	if first := strings.Join(both(), "\n"); !strings.Contains(first, "which of 2 clients") {
		t.Errorf("the first calls = %q, want that nobody knows who is asked", first)
	}
	if got, want := both(), []string{"ann", "bob"}; !slices.Equal(got, want) {
		t.Errorf("the calls after that = %q, want %q", got, want)
	}
}
