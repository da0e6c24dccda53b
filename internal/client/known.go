package client

import "github.com/dockgate/dockgate/internal/client/section"

// Known returns every client, in the order in which they are listed.
func Known() []Client {
	all := []Client{
		{
			Name: "claude-desktop", Title: "Claude Desktop", Format: section.JSON, Section: "mcpServers",
			Next: "quit Claude Desktop and start it again", shape: plain,
			places: applications("Claude/claude_desktop_config.json"),
		},
		{
			Name: "claude-code", Title: "Claude Code", Format: section.JSON, Section: "mcpServers",
			Next: "start a new session of Claude Code", shape: typed,
			variable: "CLAUDE_CONFIG_DIR", moved: ".claude.json",
			places: everywhere("~/.claude.json"), signs: []string{"~/.claude"},
		},
		{
			Name: "cursor", Title: "Cursor", Format: section.JSONC, Section: "mcpServers",
			Next: "switch the server on in Cursor's settings, or restart Cursor", shape: plain,
			places: everywhere("~/.cursor/mcp.json"),
		},
		{
			Name: "vscode", Title: "VS Code", Format: section.JSONC, Section: "servers",
			Next: `start the server with the command "MCP: List Servers", or restart VS Code`, shape: typed,
			places: applications("Code/User/mcp.json"),
		},
		{
			Name: "vscode-insiders", Title: "VS Code Insiders", Format: section.JSONC, Section: "servers",
			Next: `start the server with the command "MCP: List Servers", or restart VS Code Insiders`, shape: typed,
			places: applications("Code - Insiders/User/mcp.json"),
		},
		{
			Name: "windsurf", Title: "Windsurf", Format: section.JSONC, Section: "mcpServers",
			Next: "refresh the list of MCP servers in Windsurf, or restart Windsurf", shape: plain,
			places: everywhere("~/.codeium/windsurf/mcp_config.json", "~/.windsurf/mcp.json"),
			signs:  []string{"~/.codeium/windsurf", "~/.windsurf"},
		},
		{
			Name: "zed", Title: "Zed", Format: section.JSONC, Section: "context_servers",
			Next: "Zed sees it at once", shape: plain,
			places: places{
				linux:   []string{"$CONFIG/zed/settings.json"},
				darwin:  []string{"~/.config/zed/settings.json"},
				windows: []string{"$APPDATA/Zed/settings.json"},
			},
		},
		{
			Name: "codex", Title: "Codex", Format: section.TOML, Section: "mcp_servers",
			Next: "start a new session of Codex", shape: plain,
			variable: "CODEX_HOME", moved: "config.toml",
			places: everywhere("~/.codex/config.toml"),
		},
		{
			Name: "gemini", Title: "Gemini CLI", Format: section.JSONC, Section: "mcpServers",
			Next: "start a new session of Gemini CLI", shape: plain,
			places: everywhere("~/.gemini/settings.json"),
		},
		{
			Name: "goose", Title: "goose", Format: section.YAML, Section: "extensions",
			Next: "start a new session of goose", shape: extension,
			places: places{
				linux:   []string{"$CONFIG/goose/config.yaml"},
				darwin:  []string{"~/.config/goose/config.yaml"},
				windows: []string{"$APPDATA/Block/goose/config/config.yaml"},
			},
		},
	}
	return append(all, others()...)
}

// others are the clients that fewer people ask for.
func others() []Client {
	return []Client{
		{
			Name: "cline", Title: "Cline", Format: section.JSON, Section: "mcpServers",
			Next: "Cline sees it at once", shape: plain,
			places: applications("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
		},
		{
			Name: "roo-code", Title: "Roo Code", Format: section.JSON, Section: "mcpServers",
			Next: "Roo Code sees it at once", shape: plain,
			places: applications("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
		},
		{
			Name: "copilot-cli", Title: "GitHub Copilot CLI", Format: section.JSON, Section: "mcpServers",
			Next: "start a new session of copilot", shape: local,
			places: everywhere("~/.copilot/mcp-config.json"),
		},
		{
			Name: "opencode", Title: "opencode", Format: section.JSONC, Section: "mcp",
			Next: "start opencode again", shape: joined,
			places: places{
				linux:   []string{"$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc"},
				darwin:  []string{"~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"},
				windows: []string{"~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"},
			},
		},
		{
			Name: "kiro", Title: "Kiro", Format: section.JSONC, Section: "mcpServers",
			Next: "Kiro sees it at once", shape: plain,
			places: everywhere("~/.kiro/settings/mcp.json"), signs: []string{"~/.kiro"},
		},
		{
			Name: "lmstudio", Title: "LM Studio", Format: section.JSON, Section: "mcpServers",
			Next: "switch the server on in LM Studio", shape: plain,
			places: everywhere("~/.lmstudio/mcp.json"),
		},
		{
			Name: "qwen", Title: "Qwen Code", Format: section.JSONC, Section: "mcpServers",
			Next: "start a new session of Qwen Code", shape: plain,
			places: everywhere("~/.qwen/settings.json"),
		},
	}
}

// everywhere are paths that are the same on every system.
func everywhere(paths ...string) places { return places{paths, paths, paths} }

// applications is a path in the folder where each system's desktop programs
// keep their data.
func applications(path string) places {
	return places{[]string{"$CONFIG/" + path}, []string{"$SUPPORT/" + path}, []string{"$APPDATA/" + path}}
}
