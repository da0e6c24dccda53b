package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func ruled(t *testing.T, list ...rules.Rule) rules.Rules {
	t.Helper()
	set, err := rules.Compile(list, rules.Default{})
	check(t, err)
	return set
}

// A disabled tool is not listed, and no name of it can be called.
func TestDisabledTools(t *testing.T) {
	no := false
	h := build(t, options{
		mode: approval.ModeAll, active: []string{"one", "two"},
		rules: ruled(t, rules.Rule{Pattern: []string{"echo", "prom*"}, Enabled: &no}),
	}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	session := h.join(t, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	if added := text(invoke(t, session, "mcp_add", map[string]any{"name": "one"})); !strings.Contains(added, "no tools") {
		t.Errorf("mcp_add = %q, want no tools", added)
	}
	h.Changed(t.Context())
	if listed := names(t, session); slices.Contains(listed, "one__echo") || slices.Contains(listed, "two__promised") {
		t.Errorf("tools %v, want no disabled ones", listed)
	}
	for name, arguments := range map[string]map[string]any{
		"one__echo": {}, "one.echo": {}, "two__promised": {}, "execute_tool": {"server": "one", "tool": "echo", "arguments": map[string]any{}},
	} {
		if result := invoke(t, session, name, arguments); !result.IsError || !strings.HasPrefix(text(result), "TOOL_DISABLED: ") {
			t.Errorf("%s = %s, want TOOL_DISABLED", name, text(result))
		}
	}
}
