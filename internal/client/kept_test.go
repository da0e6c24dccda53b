package client_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/client"
)

// What the user has added to the entry survives another command; what would
// start something else, or nothing, does not.
func TestConnectKeepsAdditions(t *testing.T) {
	tests := []struct{ client, before, want string }{
		{
			"cursor",
			`{"mcpServers": {"dockgate": {"command": "old", "args": ["serve"], "env": {"TOKEN": "t", "A": "1"}, "alwaysAllow": ["x"], "timeout": 1.50, "deep": {"a": [1]}, "disabled": true, "url": "http://x"}}}` + "\n",
			`{"mcpServers": {"dockgate": {"command": "new", "args": ["serve", "--share"], "env": {"A": "2", "TOKEN": "t"}, "alwaysAllow": ["x"], "deep": {"a":[1]}, "timeout": 1.50}}}` + "\n",
		},
		{
			"codex",
			"[mcp_servers.dockgate]\ncommand = \"old\"\nstartup_timeout_sec = 20\n\n[mcp_servers.dockgate.env]\nTOKEN = \"t\"\n\n[mcp_servers.dockgate.tools.x]\nask = true\n",
			"[mcp_servers.dockgate]\ncommand = \"new\"\nargs = [\"serve\", \"--share\"]\nenv = { \"A\" = \"2\", \"TOKEN\" = \"t\" }\nstartup_timeout_sec = 20\n",
		},
		{
			"goose",
			"extensions:\n  dockgate:\n    enabled: false\n    cmd: old\n    bundled: null\n    available_tools: [a]\n    timeout: 60\n",
			"extensions:\n  dockgate:\n    name: \"dockgate\"\n    description: \"MCP servers that run as isolated containers\"\n    type: \"stdio\"\n    enabled: true\n    cmd: \"new\"\n    args:\n      - \"serve\"\n      - \"--share\"\n    timeout: 60\n    envs: {\"A\": \"2\"}\n    available_tools:\n      - \"a\"\n    bundled: null\n",
		},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "config")
		write(t, path, tt.before)
		command := client.Command{Program: "new", Args: []string{"serve", "--share"}, Env: map[string]string{"A": "2"}}
		for _, want := range []client.Outcome{client.Changed, client.Unchanged} {
			got, err := find(t, tt.client).Connect(path, command)
			if err != nil || got.Outcome != want {
				t.Errorf("Connect(%s) = %q, %v, want %q", tt.client, got.Outcome, err, want)
			}
			if diff := cmp.Diff(tt.want, content(t, path)); diff != "" {
				t.Errorf("%s after Connect (-want +got):\n%s", tt.client, diff)
			}
		}
	}
}
