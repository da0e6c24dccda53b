package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// modernCall is a call of a tool as somebody without a session makes it over HTTP.
func modernCall(who principal.Principal, tool string) (*gateway.Visit, error) {
	return gateway.NewVisit(who, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool))
}

// callAs makes such a call.
func (h *house) callAs(t *testing.T, who principal.Principal, tool string) string {
	t.Helper()
	v, err := modernCall(who, tool)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer v.Release()
	if err := h.Mirrored(t.Context(), v, func(string) []string { return nil }); err != nil {
		t.Error(err)
	}
	answer, ok := h.Direct(context.WithoutCancel(t.Context()), v)
	if !ok || answer.Error != nil {
		t.Errorf("%s as %s = %v, %t, want a result", tool, who.ID, answer.Error, ok)
	}
	return string(answer.Result)
}

// Any number of principals come by; those are remembered that came last, and
// those who have something under way or wait for news.
func TestManyPrincipals(t *testing.T) {
	began, let := make(chan struct{}), make(chan struct{})
	h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				close(began)
				select {
				case <-let:
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
	})})
	ann, bob := principal.Principal{ID: "ann"}, principal.Principal{ID: "bob"}
	names(t, h.joinAs(t, ann, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)))
	answered := make(chan string, 1)
	go func() { answered <- h.callAs(t, bob, "one__hang") }()
	<-began
	stranger := func(i int) principal.Principal { return principal.Principal{ID: fmt.Sprint("stranger ", i)} }
	const strangers = gateway.MaxVisitors + 20
	for i := range strangers {
		h.callAs(t, stranger(i), "mcp_active")
	}
	if menus, visitors := h.Remembered(); menus > gateway.MaxMenus || visitors > gateway.MaxVisitors {
		t.Errorf("%d menus and %d visitors are remembered, want at most %d and %d", menus, visitors, gateway.MaxMenus, gateway.MaxVisitors)
	}
	for _, tt := range []struct {
		who           principal.Principal
		menu, visitor bool
	}{
		{ann, true, false}, // has a session, and is told of changes of what she sees
		{bob, false, true}, // has a call under way
		{stranger(0), false, false},
		{stranger(strangers - 1), true, true},
	} {
		if menu, visitor := h.Remembers(tt.who); menu != tt.menu || visitor != tt.visitor {
			t.Errorf("%s: menu %t, visitor %t, want %t, %t", tt.who.ID, menu, visitor, tt.menu, tt.visitor)
		}
	}
	close(let)
	if got := <-answered; !strings.Contains(got, "done") {
		t.Errorf("the call of who was there first = %s, want its result", got)
	}
}
