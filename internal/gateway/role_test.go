package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// Each caller is listed what their role has, and gets no more by any other way.
func TestRoles(t *testing.T) {
	no := false
	servers := func(patterns ...string) access.Names {
		compiled, err := access.CompileNames(patterns)
		check(t, err)
		return compiled
	}
	roles := access.Roles{Each: map[string]*access.Role{
		"first": {Name: "first", Catalogs: access.AnyName(), Servers: servers("one"), Expose: []string{"active", "meta"}},
		"quiet": {Name: "quiet", Catalogs: access.AnyName(), Servers: access.AnyName(), Tools: ruled(t, rules.Rule{Pattern: []string{"echo"}, Enabled: &no})},
		"all":   {Name: "all", Catalogs: access.AnyName(), Servers: access.AnyName(), Expose: []string{"direct"}},
		"none":  {Name: "none"},
	}}
	h := build(t, options{mode: approval.ModeAll, active: []string{"one", "two"}, roles: roles}, map[string]sandboxtest.Server{
		"test/one": sdkServer(echo), "test/two": sdkServer(echo),
	})
	join := func(role string) *mcp.ClientSession {
		return h.joinAs(t, principal.Principal{ID: "ann", Role: role}, mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil))
	}
	owner := join("owner")
	for _, server := range []string{"one", "two"} {
		if added := invoke(t, owner, "mcp_add", map[string]any{"name": server}); added.IsError {
			t.Fatalf("mcp_add(%s) = %s", server, text(added))
		}
	}
	metaTools := []string{"execute_tool", "get_tool_details", "list_mcp_servers", "list_tools", "search_tools"}
	own := append([]string{"mcp_active", "mcp_add", "mcp_find", "mcp_remove"}, metaTools...)
	sessions := map[string]*mcp.ClientSession{}
	for role, want := range map[string][]string{
		"owner": append([]string{"one__echo", "two__echo"}, own...),
		"first": append([]string{"one__echo"}, metaTools...),
		"quiet": own,
		"all":   {"one__echo", "two__echo"},
		"none":  own,
		"gone":  own,
	} {
		sessions[role] = join(role)
		listed := names(t, sessions[role])
		slices.Sort(listed)
		slices.Sort(want)
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("tools of the role %s (-want +got):\n%s", role, diff)
		}
	}
	run := func(server string) map[string]any {
		return map[string]any{"server": server, "tool": "echo", "arguments": map[string]any{}}
	}
	for _, tt := range []struct {
		role, tool string
		arguments  map[string]any
		want       string // how the result begins; empty is a success
	}{
		{"first", "one__echo", nil, ""},
		{"first", "execute_tool", run("one"), ""},
		{"first", "execute_tool", run("two"), access.CodeDenied},
		{"first", "two.echo", nil, access.CodeDenied},
		{"quiet", "execute_tool", run("one"), "TOOL_DISABLED"},
		{"quiet", "one.echo", nil, "TOOL_DISABLED"},
		{"none", "execute_tool", run("one"), access.CodeDenied},
		{"none", "mcp_add", map[string]any{"name": "one"}, access.CodeDenied},
		{"none", "mcp_add", map[string]any{"name": "nowhere"}, access.CodeDenied},
		{"gone", "execute_tool", run("one"), access.CodeDenied},
		{"all", "two__echo", nil, ""},
	} {
		result := invoke(t, sessions[tt.role], tt.tool, tt.arguments)
		if result.IsError != (tt.want != "") || !strings.HasPrefix(text(result), tt.want) {
			t.Errorf("%s(%v) with the role %s = %s, want %q", tt.tool, tt.arguments, tt.role, text(result), tt.want)
		}
	}
	// What is not listed for a role is no tool for it.
	if _, err := sessions["first"].CallTool(t.Context(), &mcp.CallToolParams{Name: "mcp_add", Arguments: map[string]any{"name": "one"}}); err == nil {
		t.Error("mcp_add with a role to which it is not exposed succeeded")
	}
	for role, want := range map[string]string{"owner": "Found 2 servers", "none": "Found no servers"} {
		if found := text(invoke(t, sessions[role], "mcp_find", map[string]any{"query": "server"})); !strings.HasPrefix(found, want) {
			t.Errorf("mcp_find with the role %s = %s, want %s", role, found, want)
		}
	}
	if active := text(invoke(t, sessions["none"], "mcp_active", nil)); !strings.HasPrefix(active, "No server is active") {
		t.Errorf("mcp_active with the role none = %s, want no server", active)
	}
	if instructions := sessions["first"].InitializeResult().Instructions; !strings.Contains(instructions, "start on use: one.") || strings.Contains(instructions, "mcp_find") {
		t.Errorf("instructions for the role first = %q, want one, and no mcp_find", instructions)
	}
}
