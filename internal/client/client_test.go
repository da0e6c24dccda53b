package client_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/client"
)

// machine is one on which some files exist.
func machine(goos, home string, env map[string]string, files ...string) client.Machine {
	return client.Machine{
		OS: goos, Home: home,
		Env:    func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Exists: func(path string) bool { return slices.Contains(files, path) },
	}
}

func find(t testing.TB, name string) client.Client {
	t.Helper()
	c, err := client.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFile(t *testing.T) {
	const (
		linux, mac, windows = "/home/ann", "/Users/ann", `C:\Users\ann`
	)
	want := map[string][3]string{
		"claude-desktop":  {"/.config/Claude/claude_desktop_config.json", "/Library/Application Support/Claude/claude_desktop_config.json", `\AppData\Roaming\Claude\claude_desktop_config.json`},
		"claude-code":     {"/.claude.json", "/.claude.json", `\.claude.json`},
		"cursor":          {"/.cursor/mcp.json", "/.cursor/mcp.json", `\.cursor\mcp.json`},
		"vscode":          {"/.config/Code/User/mcp.json", "/Library/Application Support/Code/User/mcp.json", `\AppData\Roaming\Code\User\mcp.json`},
		"vscode-insiders": {"/.config/Code - Insiders/User/mcp.json", "/Library/Application Support/Code - Insiders/User/mcp.json", `\AppData\Roaming\Code - Insiders\User\mcp.json`},
		"windsurf":        {"/.codeium/windsurf/mcp_config.json", "/.codeium/windsurf/mcp_config.json", `\.codeium\windsurf\mcp_config.json`},
		"zed":             {"/.config/zed/settings.json", "/.config/zed/settings.json", `\AppData\Roaming\Zed\settings.json`},
		"codex":           {"/.codex/config.toml", "/.codex/config.toml", `\.codex\config.toml`},
		"gemini":          {"/.gemini/settings.json", "/.gemini/settings.json", `\.gemini\settings.json`},
		"goose":           {"/.config/goose/config.yaml", "/.config/goose/config.yaml", `\AppData\Roaming\Block\goose\config\config.yaml`},
		"cline": {
			"/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			"/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			`\AppData\Roaming\Code\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json`,
		},
		"roo-code": {
			"/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
			"/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
			`\AppData\Roaming\Code\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json`,
		},
		"copilot-cli": {"/.copilot/mcp-config.json", "/.copilot/mcp-config.json", `\.copilot\mcp-config.json`},
		"opencode":    {"/.config/opencode/opencode.json", "/.config/opencode/opencode.json", `\.config\opencode\opencode.json`},
		"kiro":        {"/.kiro/settings/mcp.json", "/.kiro/settings/mcp.json", `\.kiro\settings\mcp.json`},
		"lmstudio":    {"/.lmstudio/mcp.json", "/.lmstudio/mcp.json", `\.lmstudio\mcp.json`},
		"qwen":        {"/.qwen/settings.json", "/.qwen/settings.json", `\.qwen\settings.json`},
	}
	var names []string
	for _, c := range client.Known() {
		names = append(names, c.Name)
		for i, m := range []client.Machine{
			machine("linux", linux, nil), machine("darwin", mac, nil), machine("windows", windows, nil),
		} {
			if got, want := c.File(m), m.Home+want[c.Name][i]; got != want {
				t.Errorf("File(%s on %s) = %s, want %s", c.Name, m.OS, got, want)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
}

func TestFileMoved(t *testing.T) {
	tests := []struct {
		client string
		on     client.Machine
		want   string
	}{
		{"claude-desktop", machine("linux", "/home/ann", map[string]string{"XDG_CONFIG_HOME": "/conf"}), "/conf/Claude/claude_desktop_config.json"},
		{"claude-desktop", machine("linux", "/home/ann", map[string]string{"XDG_CONFIG_HOME": ""}), "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", machine("darwin", "/Users/ann", map[string]string{"XDG_CONFIG_HOME": "/conf"}), "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json"},
		{"vscode", machine("windows", `C:\Users\ann`, map[string]string{"APPDATA": `D:\Roam`}), `D:\Roam\Code\User\mcp.json`},
		{"goose", machine("linux", "/home/ann", map[string]string{"XDG_CONFIG_HOME": "/conf"}), "/conf/goose/config.yaml"},
		{"codex", machine("linux", "/home/ann", map[string]string{"CODEX_HOME": "/srv/codex/"}), "/srv/codex/config.toml"},
		{"codex", machine("windows", `C:\Users\ann`, map[string]string{"CODEX_HOME": `D:\codex`}), `D:\codex\config.toml`},
		{"claude-code", machine("linux", "/home/ann", map[string]string{"CLAUDE_CONFIG_DIR": "/srv/claude"}), "/srv/claude/.claude.json"},
		{"windsurf", machine("linux", "/home/ann", nil, "/home/ann/.windsurf/mcp.json"), "/home/ann/.windsurf/mcp.json"},
		{"opencode", machine("linux", "/home/ann", nil, "/home/ann/.config/opencode/opencode.jsonc"), "/home/ann/.config/opencode/opencode.jsonc"},
	}
	for _, tt := range tests {
		if got := find(t, tt.client).File(tt.on); got != tt.want {
			t.Errorf("File(%s on %s) = %s, want %s", tt.client, tt.on.OS, got, tt.want)
		}
	}
}

func TestInstalled(t *testing.T) {
	tests := []struct {
		client string
		files  []string
		want   bool
	}{
		{"claude-desktop", nil, false},
		{"claude-desktop", []string{"/home/ann"}, false},
		{"claude-desktop", []string{"/home/ann/.config/Claude"}, true},
		{"claude-code", []string{"/home/ann"}, false},
		{"claude-code", []string{"/home/ann/.claude"}, true},
		{"claude-code", []string{"/home/ann/.claude.json"}, true},
		{"kiro", []string{"/home/ann/.kiro"}, true},
		{"windsurf", []string{"/home/ann/.windsurf"}, true},
	}
	for _, tt := range tests {
		if got := find(t, tt.client).Installed(machine("linux", "/home/ann", nil, tt.files...)); got != tt.want {
			t.Errorf("Installed(%s with %q) = %v, want %v", tt.client, tt.files, got, tt.want)
		}
	}
}

func TestFind(t *testing.T) {
	if c, err := client.Find("Cursor"); err != nil || c.Name != "cursor" {
		t.Errorf("Find(Cursor) = %q, %v, want cursor", c.Name, err)
	}
	_, err := client.Find("emacs")
	var unknown *client.UnknownError
	if !errors.As(err, &unknown) || err.Error() != `unknown client "emacs"` || !strings.Contains(unknown.Hint(), "claude-desktop, claude-code") {
		t.Errorf("Find(emacs) = %v, want an UnknownError that names the known", err)
	}
}

// What every client is given, as its own documentation has it.
func TestPrint(t *testing.T) {
	command := client.Command{Program: "/usr/bin/dockgate", Args: []string{"serve", `--state=C:\x "y"`}}
	const plain = `{
  "%": {
    "dockgate": {
      "command": "/usr/bin/dockgate",
      "args": ["serve", "--state=C:\\x \"y\""]
    }
  }
}
`
	typed := strings.Replace(plain, `      "command`, `      "type": "stdio",
      "command`, 1)
	in := func(text, section string) string { return strings.Replace(text, "%", section, 1) }
	want := map[string]string{
		"claude-desktop": in(plain, "mcpServers"), "cursor": in(plain, "mcpServers"), "windsurf": in(plain, "mcpServers"),
		"gemini": in(plain, "mcpServers"), "cline": in(plain, "mcpServers"), "roo-code": in(plain, "mcpServers"),
		"kiro": in(plain, "mcpServers"), "lmstudio": in(plain, "mcpServers"), "qwen": in(plain, "mcpServers"),
		"zed":    in(plain, "context_servers"),
		"vscode": in(typed, "servers"), "vscode-insiders": in(typed, "servers"), "claude-code": in(typed, "mcpServers"),
		"copilot-cli": `{
  "mcpServers": {
    "dockgate": {
      "type": "local",
      "command": "/usr/bin/dockgate",
      "args": ["serve", "--state=C:\\x \"y\""],
      "tools": ["*"]
    }
  }
}
`,
		"opencode": `{
  "mcp": {
    "dockgate": {
      "type": "local",
      "command": ["/usr/bin/dockgate", "serve", "--state=C:\\x \"y\""],
      "enabled": true
    }
  }
}
`,
		"codex": `[mcp_servers.dockgate]
command = "/usr/bin/dockgate"
args = ["serve", "--state=C:\\x \"y\""]
`,
		"goose": `extensions:
  dockgate:
    name: "dockgate"
    description: "MCP servers that run as isolated containers"
    type: "stdio"
    enabled: true
    cmd: "/usr/bin/dockgate"
    args:
      - "serve"
      - "--state=C:\\x \"y\""
    timeout: 300
`,
	}
	for _, c := range client.Known() {
		got, err := c.Print(command)
		if diff := cmp.Diff(want[c.Name], got); err != nil || diff != "" {
			t.Errorf("Print(%s): %v (-want +got):\n%s", c.Name, err, diff)
		}
	}
}
