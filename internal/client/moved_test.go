package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/client"
)

const sidecar = ".dockgate-moved"

// What was moved out of a file comes back as it was, comments too, whether the
// client has written in between or not.
func TestMove(t *testing.T) {
	tests := []struct {
		client, text string
		// meanwhile is what the client changes: the first text becomes the second.
		meanwhile [2]string
		want      string
	}{
		{
			"vscode",
			"{\n  \"servers\": {\n    // the first\n    \"a\": {\"command\": \"uvx\", \"args\": [\"a\"]}, // why\n    \"b\": {\n      \"command\": \"b\"\n    }\n  }\n}\n",
			[2]string{"\"servers\": {", "\"inputs\": [],\n  \"servers\": {"},
			"{\n  \"inputs\": [],\n  \"servers\": {\n    // the first\n    // why\n    \"b\": {\n      \"command\": \"b\"\n    },\n    \"a\": {\"command\": \"uvx\", \"args\": [\"a\"]}\n  }\n}\n",
		},
		{
			"codex",
			"[mcp_servers.a] # one\ncommand = \"uvx\"\n\n[mcp_servers.a.env]\nX = \"1\"\n\n[mcp_servers.b]\ncommand = \"b\"\n",
			[2]string{"command = \"b\"", "command = \"c\""},
			"\n[mcp_servers.b]\ncommand = \"c\"\n\n[mcp_servers.a] # one\ncommand = \"uvx\"\n\n[mcp_servers.a.env]\nX = \"1\"\n",
		},
		{
			"goose",
			"extensions:\n  a:\n    type: stdio\n    cmd: uvx # one\n  b:\n    type: stdio\n    cmd: b\n",
			[2]string{"cmd: b", "cmd: c"},
			"extensions:\n  a:\n    type: stdio\n    cmd: uvx # one\n  b:\n    type: stdio\n    cmd: c\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			c, path := find(t, tt.client), filepath.Join(t.TempDir(), "config")
			for _, meanwhile := range []bool{false, true} {
				write(t, path, tt.text)
				if _, err := c.Connect(path, command, "a", "nobody"); err != nil {
					t.Fatal(err)
				}
				again, err := c.Connect(path, command, "a")
				if err != nil || again.Outcome != client.Unchanged {
					t.Errorf("Connect again = %+v, %v, want unchanged", again, err)
				}
				servers, err := c.Servers(path)
				var got []string
				for _, s := range servers {
					got = append(got, s.Name+" "+s.Entry["command"].(string)+map[bool]string{true: " moved"}[s.Moved])
				}
				if diff := cmp.Diff([]string{"a uvx moved", "b b"}, got); err != nil || diff != "" {
					t.Errorf("Servers: %v (-want +got):\n%s", err, diff)
				}
				if info, err := os.Stat(path + sidecar); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("what was moved is kept with %v, %v, want the file's own mode", info, err)
				}
				want, outcome := tt.text, client.Restored
				if meanwhile {
					changed := strings.Replace(content(t, path), tt.meanwhile[0], tt.meanwhile[1], 1)
					write(t, path, changed)
					want, outcome = tt.want, client.Changed
				}
				change, err := c.Disconnect(path)
				if err != nil || change.Outcome != outcome || !cmp.Equal(change.PutBack, []string{"a"}) {
					t.Errorf("Disconnect = %+v, %v, want %s with a put back", change, err, outcome)
				}
				if diff := cmp.Diff(want, content(t, path)); diff != "" {
					t.Errorf("after Disconnect (-want +got):\n%s", diff)
				}
				if got := content(t, path+sidecar); got != "-" {
					t.Errorf("what was moved is kept still: %s", got)
				}
			}
		})
	}
}

// A client's entries are handed on in one form, whatever its own is.
func TestServers(t *testing.T) {
	env := map[string]any{"A": "b"}
	stdio := func(more map[string]any) map[string]any {
		more["command"], more["args"], more["env"] = "uvx", []any{"x"}, env
		return more
	}
	tests := []struct {
		client, text string
		want         map[string]any
	}{
		{"zed", `{"context_servers": {"s": {"command": {"path": "uvx", "args": ["x"], "env": {"A": "b"}}}}}`, stdio(map[string]any{})},
		{
			"opencode", `{"mcp": {"s": {"type": "local", "command": ["uvx", "x"], "environment": {"A": "b"}, "enabled": false}}}`,
			stdio(map[string]any{"type": "local", "environment": env, "enabled": false, "disabled": true}),
		},
		{
			"goose", "extensions: {s: {type: stdio, cmd: uvx, args: [x], envs: {A: b}}, developer: {type: builtin}}",
			stdio(map[string]any{"type": "stdio", "cmd": "uvx", "envs": env}),
		},
		{
			"codex", "[mcp_servers.s]\nurl = \"https://example.com\"\nhttp_headers = {A = \"b\"}",
			map[string]any{"url": "https://example.com", "headers": env, "http_headers": env},
		},
		{
			"codex", "[mcp_servers.s]\nurl = \"https://example.com\"\nbearer_token_env_var = \"T\"\nhttp_headers = {A = \"b\"}\nenv_http_headers = {X = \"Y\"}",
			map[string]any{
				"url": "https://example.com", "headers": map[string]any{"A": "b", "Authorization": "Bearer ${T}", "X": "${Y}"},
				"bearer_token_env_var": "T", "http_headers": env, "env_http_headers": map[string]any{"X": "Y"},
			},
		},
		{
			"windsurf", `{"mcpServers": {"s": {"serverUrl": "https://example.com"}}}`,
			map[string]any{"url": "https://example.com", "serverUrl": "https://example.com"},
		},
		{
			"gemini", `{"mcpServers": {"s": {"httpUrl": "https://example.com"}}}`,
			map[string]any{"url": "https://example.com", "httpUrl": "https://example.com"},
		},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "config")
		write(t, path, tt.text)
		got, err := find(t, tt.client).Servers(path)
		if diff := cmp.Diff([]client.Server{{Name: "s", Entry: tt.want}}, got); err != nil || diff != "" {
			t.Errorf("Servers(%s): %v (-want +got):\n%s", tt.text, err, diff)
		}
	}
}

func TestPrintEnv(t *testing.T) {
	with := client.Command{Program: "x", Env: map[string]string{"B": "2", "A": `1"`}}
	for name, want := range map[string]string{
		"cursor":   `"env": {"A": "1\"", "B": "2"}`,
		"opencode": `"environment": {"A": "1\"", "B": "2"}`,
		"codex":    `env = { "A" = "1\"", "B" = "2" }`,
		"goose":    `envs: {"A": "1\"", "B": "2"}`,
	} {
		if got, err := find(t, name).Print(with); err != nil || !strings.Contains(got, want) {
			t.Errorf("Print(%s) = %s, %v, want %s in it", name, got, err, want)
		}
	}
}
