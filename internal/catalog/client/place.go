package client

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

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

// Keeps reports whether a path looks like one at which a client keeps its
// configuration, whichever folder that is in. Such a file is a client's also
// while it names no server, as most do at first.
func Keeps(file string) bool {
	file = "/" + filepath.ToSlash(file)
	return slices.ContainsFunc([]string{
		"/.docker/mcp-servers.json", "/claude_desktop_config.json", "/.claude.json", "/.mcp.json", "/.windsurf/mcp.json",
		"/windsurf/mcp_config.json", "/.cursor/mcp.json", "/Code/User/mcp.json", "/.vscode/mcp.json",
	}, func(end string) bool { return strings.HasSuffix(file, end) })
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
