package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/client"
	"github.com/dockgate/dockgate/internal/client/section"
)

var command = client.Command{Program: "dockgate", Args: []string{"serve"}}

// Each text is connected and disconnected. Where restored is empty, taking the
// entry out gives the text itself.
func TestEdit(t *testing.T) {
	tests := []struct {
		name, client string
		text, want   string
		restored     string
	}{
		{
			name: "json, beside others", client: "claude-desktop",
			text: "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"git\": {\"command\": \"uvx\"}\n\t}\n}\n",
			want: "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"git\": {\"command\": \"uvx\"},\n\t\t\"dockgate\": {\n\t\t\t\"command\": \"dockgate\",\n\t\t\t\"args\": [\"serve\"]\n\t\t}\n\t}\n}\n",
		},
		{
			name: "json, no section", client: "claude-desktop",
			text:     "{\n    \"theme\": \"dark\"\n}",
			want:     "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"dockgate\": {\n            \"command\": \"dockgate\",\n            \"args\": [\"serve\"]\n        }\n    }\n}",
			restored: "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {}\n}",
		},
		{
			name: "json, empty section", client: "claude-desktop",
			text: "{\r\n  \"mcpServers\": {}\r\n}\r\n",
			want: "{\r\n  \"mcpServers\": {\r\n    \"dockgate\": {\r\n      \"command\": \"dockgate\",\r\n      \"args\": [\"serve\"]\r\n    }\r\n  }\r\n}\r\n",
		},
		{
			name: "json, null section", client: "claude-desktop",
			text:     "{\n  \"mcpServers\": null,\n  \"a\": 1\n}\n",
			want:     "{\n  \"mcpServers\": {\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  },\n  \"a\": 1\n}\n",
			restored: "{\n  \"mcpServers\": {},\n  \"a\": 1\n}\n",
		},
		{
			name: "json, on one line", client: "claude-code",
			text: `{"a":1e2,"mcpServers":{"git":{"command":"uvx"}},"b":"<&>"}`,
			want: `{"a":1e2,"mcpServers":{"git":{"command":"uvx"}, "dockgate": {"type": "stdio", "command": "dockgate", "args": ["serve"]}},"b":"<&>"}`,
		},
		{
			name: "json, empty file", client: "claude-desktop", text: "",
			want:     "{\n  \"mcpServers\": {\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
			restored: "{\n  \"mcpServers\": {}\n}\n",
		},
		{
			name: "json, byte order mark", client: "claude-desktop", text: "\uFEFF{\n  \"mcpServers\": {}\n}\n",
			want: "\uFEFF{\n  \"mcpServers\": {\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
		},
		{
			name: "jsonc, comments and trailing comma", client: "vscode",
			text: "// mine\n{\n  \"inputs\": [], // none\n  \"servers\": {\n    // the first\n    \"git\": {\"command\": \"uvx\"}, // why\n    // the end\n  },\n}\n",
			want: "// mine\n{\n  \"inputs\": [], // none\n  \"servers\": {\n    // the first\n    \"git\": {\"command\": \"uvx\"}, // why\n    \"dockgate\": {\n      \"type\": \"stdio\",\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    },\n    // the end\n  },\n}\n",
		},
		{
			name: "jsonc, comment without a comma", client: "zed",
			text: "{\n  \"context_servers\": {\n    \"git\": {\"command\": \"uvx\"} // why\n  } /* servers */\n}\n",
			want: "{\n  \"context_servers\": {\n    \"git\": {\"command\": \"uvx\"}, // why\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  } /* servers */\n}\n",
		},
		{
			name: "jsonc, comments alone", client: "vscode",
			text: "{\n  \"servers\": {\n    // none yet\n  }\n}\n",
			want: "{\n  \"servers\": {\n    // none yet\n    \"dockgate\": {\n      \"type\": \"stdio\",\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n",
		},
		{
			name: "json, ours in the middle", client: "claude-desktop",
			text:     "{\n  \"mcpServers\": {\n    \"dockgate\": {\"command\": \"old\", \"env\": {}},\n    \"git\": {\"command\": \"uvx\"}\n  }\n}\n",
			want:     "{\n  \"mcpServers\": {\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    },\n    \"git\": {\"command\": \"uvx\"}\n  }\n}\n",
			restored: "{\n  \"mcpServers\": {\n    \"git\": {\"command\": \"uvx\"}\n  }\n}\n",
		},
		{
			name: "toml, beside others", client: "codex",
			text: "# mine\nmodel = \"x\" # the big one\n\n[mcp_servers.git]\ncommand = \"uvx\"\n",
			want: "# mine\nmodel = \"x\" # the big one\n\n[mcp_servers.git]\ncommand = \"uvx\"\n\n[mcp_servers.dockgate]\ncommand = \"dockgate\"\nargs = [\"serve\"]\n",
		},
		{
			name: "toml, no newline at the end", client: "codex",
			text:     "model = \"x\"",
			want:     "model = \"x\"\n\n[mcp_servers.dockgate]\ncommand = \"dockgate\"\nargs = [\"serve\"]\n",
			restored: "model = \"x\"\n",
		},
		{
			name: "toml, ours in the middle", client: "codex",
			text:     "[mcp_servers.dockgate] # ours\ncommand = \"old\"\nargs = [\n  # why\n  \"x\",\n]\n\n[mcp_servers.dockgate.env]\nA = \"\"\"\n# no comment\n\"\"\"\n\n# the next\n[mcp_servers.git]\ncommand = \"uvx\"\n",
			want:     "[mcp_servers.dockgate]\ncommand = \"dockgate\"\nargs = [\"serve\"]\n\n# the next\n[mcp_servers.git]\ncommand = \"uvx\"\n",
			restored: "\n# the next\n[mcp_servers.git]\ncommand = \"uvx\"\n",
		},
		{
			name: "yaml, beside others", client: "goose",
			text: "GOOSE_PROVIDER: x # mine\nextensions:\n  # the first\n  developer:\n    type: builtin\n\nother: 1\n",
			want: "GOOSE_PROVIDER: x # mine\nextensions:\n" + yamlEntry + "  # the first\n  developer:\n    type: builtin\n\nother: 1\n",
		},
		{
			name: "yaml, empty section", client: "goose",
			text: "extensions: {}\nother: 1\n",
			want: "extensions:\n" + yamlEntry + "other: 1\n",
		},
		{
			name: "yaml, nothing below", client: "goose",
			text:     "extensions: # none\nother: 1\n",
			want:     "extensions: # none\n" + yamlEntry + "other: 1\n",
			restored: "extensions: {} # none\nother: 1\n",
		},
		{
			name: "yaml, no section", client: "goose",
			text:     "other: 1",
			want:     "other: 1\nextensions:\n" + yamlEntry,
			restored: "other: 1\nextensions: {}\n",
		},
		{
			name: "yaml, ours in the middle", client: "goose",
			text:     "extensions:\n    a: {type: builtin}\n    dockgate:\n        cmd: old\n\n        # inside\n        args: [x,\n          y]\n\n    # the last\n    b:\n        type: builtin\n",
			want:     "extensions:\n    a: {type: builtin}\n" + deeper(yamlEntry) + "\n    # the last\n    b:\n        type: builtin\n",
			restored: "extensions:\n    a: {type: builtin}\n\n    # the last\n    b:\n        type: builtin\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := find(t, tt.client)
			got, err := c.Put([]byte(tt.text), command)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("Put (-want +got):\n%s", diff)
			}
			restored := tt.restored
			if restored == "" {
				restored = tt.text
			}
			back, err := c.Take(got)
			if diff := cmp.Diff(restored, string(back)); err != nil || diff != "" {
				t.Errorf("Take: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

const yamlEntry = `  dockgate:
    name: "dockgate"
    description: "MCP servers that run as isolated containers"
    type: "stdio"
    enabled: true
    cmd: "dockgate"
    args:
      - "serve"
    timeout: 300
`

// deeper indents an entry by two more.
func deeper(entry string) string {
	return "  " + strings.TrimSuffix(strings.ReplaceAll(entry, "\n", "\n  "), "  ")
}

// What cannot be read or edited is said with its line, and left alone.
func TestEditRefuses(t *testing.T) {
	tests := []struct {
		name, client, text string
		line               int
		want               string
	}{
		{"json, broken", "claude-desktop", "{\n  \"mcpServers\": {\n    \"git\": }\n}\n", 3, "invalid character"},
		{"json, cut off", "claude-desktop", "{\n  \"mcpServers\": {\n", 3, "unexpected EOF"},
		{"json, list", "cursor", "\n[]", 2, "want an object"},
		{"json, section is a list", "cursor", "{\"mcpServers\": []}", 0, "want a mapping of servers"},
		{"json, twice", "cursor", "{\n\"mcpServers\": {},\n\"mcpServers\": {}}", 3, "is there twice"},
		{"json, ours twice", "cursor", "{\"mcpServers\": {\"dockgate\": {},\n\"dockgate\": {}}}", 2, "is there twice"},
		{"json with comments", "claude-desktop", "{\n  // mine\n}\n", 2, "reads neither comments nor trailing commas"},
		{"json with a trailing comma", "claude-desktop", "{\n  \"a\": 1,\n}\n", 3, "reads neither comments nor trailing commas"},
		{"toml, broken", "codex", "model = \"x\"\n[mcp_servers\n", 2, "expected"},
		{"toml, twice", "codex", "a = 1\na = 2\n", 2, "a"},
		{"toml, inline", "codex", "mcp_servers = {git = {command = \"uvx\"}}\n", 0, "cannot be changed here"},
		{"toml, ours dotted", "codex", "mcp_servers.dockgate.command = \"x\"\n", 0, "cannot be changed here"},
		{"yaml, broken", "goose", "a: 1\nb: [\n", 2, "did not find"},
		{"yaml, tab", "goose", "a:\n\tb: 1\n", 2, "cannot start any token"},
		{"yaml, list", "goose", "- a\n", 1, "want a mapping"},
		{"yaml, two documents", "goose", "a: 1\n---\nb: 1\n", 2, "want one document"},
		{"yaml, twice", "goose", "a: 1\na: 2\n", 2, "already defined"},
		{"yaml, braces", "goose", "extensions: {a: {type: builtin}}\n", 1, "braces"},
		{"yaml, all braces", "goose", "{a: 1}\n", 1, "braces"},
		{"yaml, alias", "goose", "x: &x {a: {type: builtin}}\nextensions: *x\n", 2, "is an alias"},
	}
	for _, tt := range tests {
		_, err := find(t, tt.client).Put([]byte(tt.text), command)
		var problem *section.Problem
		if !errors.As(err, &problem) || problem.Line != tt.line || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Put = %v (%#v), want line %d: …%s…", tt.name, err, problem, tt.line, tt.want)
		}
	}
}

// Whatever the text, an edit changes the entry alone, and is taken back.
func FuzzEdit(f *testing.F) {
	for i, c := range client.Known() {
		seed, err := c.Print(command)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), seed)
	}
	f.Add(byte(0), `{"mcpServers": {"a": {"command": "x"}, "b": {}}}`)
	f.Add(byte(7), "[mcp_servers.a]\ncommand = \"x\" # y\n[mcp_servers.a.env]\nb = 1\n[c]\n")
	f.Add(byte(9), "extensions:\n  a:\n    cmd: x\n\n  # y\n  b: {cmd: z}\n")
	f.Add(byte(3), "{\"servers\": {/* a */ \"a\": {}, // b\n}, }")
	f.Add(byte(7), "[mcp_servers.\"dockgate\".env]\na = 1\n[[b]]\n")
	f.Add(byte(9), "extensions:\n- a\n? b\n: c\n")
	f.Fuzz(func(t *testing.T, which byte, text string) {
		known := client.Known()
		c := known[int(which)%len(known)]
		put, err := c.Put([]byte(text), command)
		if err != nil {
			return
		}
		if again, err := c.Put(put, command); err != nil {
			t.Errorf("Put(%q) = %q, %v, from %q", put, again, err, text)
		}
		taken, err := c.Take(put)
		if err != nil {
			t.Fatalf("Take(%q) = %v, from %q", put, err, text)
		}
		before, err := c.Rest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		after, err := c.Rest(taken)
		if diff := cmp.Diff(before, after); err != nil || diff != "" {
			t.Errorf("Take(Put(%q)) = %q, %v (-want +got):\n%s", text, taken, err, diff)
		}
		there, err := c.There([]byte(text))
		if err != nil {
			return // what cannot be moved stays
		}
		whole, err := c.Whole([]byte(text))
		if diff := cmp.Diff(whole, there); err != nil || diff != "" {
			t.Errorf("There(%q): %v (-want +got):\n%s", text, err, diff)
		}
	})
}
