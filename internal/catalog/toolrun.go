package catalog

import (
	"path"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog/template"
)

// Refusal says why a tool's container is never run, whatever its arguments and
// settings; it is empty if it may be. Arguments come from the model, which is
// to choose neither what is mounted nor as whom the container runs.
func (r ToolRun) Refusal() string {
	for _, m := range r.Mounts {
		switch {
		case takesArguments(m.Source) || takesArguments(m.Target):
			return "its arguments, which the model chooses, would say what is mounted"
		case isEngineSocket(m.Source):
			return "it mounts the engine's socket, which is the right to everything on this machine"
		}
	}
	if takesArguments(r.User) {
		return "its arguments, which the model chooses, would say as whom it runs"
	}
	return ""
}

func takesArguments(text string) bool {
	parts, err := template.Parse(text)
	if err != nil {
		return true // nobody knows what it takes
	}
	for _, p := range parts {
		if len(p.Path) > 0 && p.Path[0] == "arguments" {
			return true
		}
	}
	return false
}

func isEngineSocket(source string) bool {
	switch path.Base(strings.ReplaceAll(source, `\`, "/")) {
	case "docker.sock", "podman.sock", "docker_engine":
		return true
	}
	return false
}
