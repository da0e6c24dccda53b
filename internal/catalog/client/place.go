package client

import (
	"path"
	"slices"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A Type is a client whose configuration can be read.
type Type string

// The types of client.
const (
	DockerMCP     Type = "docker-mcp"
	ClaudeDesktop Type = "claude-desktop"
	ClaudeCode    Type = "claude-code"
	Windsurf      Type = "windsurf"
	Cursor        Type = "cursor"
	VSCode        Type = "vscode"
)

// Types are all of them.
func Types() []Type {
	return []Type{DockerMCP, ClaudeDesktop, ClaudeCode, Windsurf, Cursor, VSCode}
}

// Known reports whether a word is the name of a type.
func Known(word string) bool { return slices.Contains(Types(), Type(word)) }

// Places returns where a client keeps its configuration, the user's first and
// then the project's, with slashes between folders.
func Places(t Type, around catalog.Surroundings) []string {
	home, dir := around.Home, around.Dir
	var places []string
	switch t {
	case DockerMCP:
		places = []string{path.Join(home, ".docker/mcp-servers.json")}
	case ClaudeDesktop:
		places = []string{path.Join(settings(around), "Claude/claude_desktop_config.json")}
	case ClaudeCode:
		places = []string{path.Join(home, ".claude.json"), path.Join(dir, ".mcp.json")}
	case Windsurf:
		places = []string{path.Join(home, ".windsurf/mcp.json"), path.Join(home, ".codeium/windsurf/mcp_config.json")}
	case Cursor:
		places = []string{path.Join(home, ".cursor/mcp.json"), path.Join(dir, ".cursor/mcp.json")}
	case VSCode:
		places = []string{path.Join(settings(around), "Code/User/mcp.json"), path.Join(dir, ".vscode/mcp.json")}
	}
	var unique []string
	for _, place := range places { // the home folder may be the working directory
		if !slices.Contains(unique, place) {
			unique = append(unique, place)
		}
	}
	return unique
}

// settings is the folder in which programs keep their settings.
func settings(around catalog.Surroundings) string {
	switch around.OS {
	case "darwin":
		return path.Join(around.Home, "Library/Application Support")
	case "windows":
		if folder := around.Variable("APPDATA"); folder != "" {
			return folder
		}
		return path.Join(around.Home, "AppData/Roaming")
	}
	if folder := around.Variable("XDG_CONFIG_HOME"); folder != "" {
		return folder
	}
	return path.Join(around.Home, ".config")
}
