package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestBounds(t *testing.T) {
	many := func(s *mcp.Server) {
		for _, name := range []string{"a", "b", "c"} {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{}, nil
				})
		}
	}
	for _, tt := range []struct {
		bounds gateway.Bounds
		want   []string
	}{
		{gateway.Bounds{}, []string{"one__a", "one__b", "one__c", "two__promised"}},
		{gateway.Bounds{Tools: 3}, []string{"one__a", "one__b", "one__c"}},
		{gateway.Bounds{Tools: 2}, []string{"one__a", "one__b"}},
		{gateway.Bounds{Servers: 1}, []string{"one__a", "one__b", "one__c"}},
	} {
		h := build(t, options{mode: approval.ModeAll, expose: []meta.Group{gateway.Active}, active: []string{"one", "two"}},
			map[string]sandboxtest.Server{"test/one": sdkServer(many)})
		h.Bounds = tt.bounds
		client := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil))
		invoke(t, client, "one__a", map[string]any{}) // starts and lists it
		h.Changed(t.Context())
		if diff := cmp.Diff(tt.want, names(t, client)); diff != "" {
			t.Errorf("with %+v (-want +got):\n%s", tt.bounds, diff)
		}
	}
}
