package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// A call that a rule has confirmed is asked about with its arguments, in both
// eras, and "for this session" is remembered.
func TestAskTools(t *testing.T) {
	for _, version := range versions() {
		h := build(t, options{
			mode: approval.ModeAll, active: []string{"one"}, wait: time.Minute,
			rules: ruled(t, rules.Rule{Pattern: []string{"*"}, Ask: true}),
		}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
		for _, tt := range []struct {
			decision string
			asked    int
			fails    bool
		}{{"approve", 2, false}, {"deny", 2, true}, {"approve for this session", 1, false}} {
			var asked []string
			session := h.join(t, answering(tt.decision, &asked), version)
			for range 2 {
				result := invoke(t, session, "one__echo", map[string]any{"text": "hello"})
				if result.IsError != tt.fails {
					t.Errorf("%s, %s: %s, want it to fail: %t", version, tt.decision, text(result), tt.fails)
				}
			}
			if len(asked) != tt.asked || !strings.Contains(asked[0], `arguments: {"text":"hello"}`) {
				t.Errorf("%s, %s: asked %q, want %d times with the arguments", version, tt.decision, asked, tt.asked)
			}
		}
	}
}
