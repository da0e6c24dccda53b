package gateway_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// A server that speaks both generations of the protocol is spoken to in the
// client's own, by all who come, and clients of both find it at the same time.
func TestServerOfBothEras(t *testing.T) {
	server := func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "version", InputSchema: map[string]any{"type": "object"}},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.ProtocolVersion()}}}, nil
			})
	}
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(server)})
	sessions := map[string]*mcp.ClientSession{}
	for _, version := range versions() {
		sessions[version] = h.join(t, answering("approve", nil), version)
	}
	for range 3 {
		for version, session := range sessions {
			if got := text(invoke(t, session, "one__version", map[string]any{})); got != version {
				t.Errorf("the server is spoken to in version %s for a client of %s", got, version)
			}
		}
	}
	// One for each, and the first of them may have been started twice.
	if got := h.fake.Started(); got != 2 && got != 3 {
		t.Errorf("%d starts, want 2 or 3", got)
	}
}
