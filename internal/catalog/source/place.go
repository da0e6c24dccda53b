package source

import (
	"path"
	"slices"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
	"github.com/dockgate/dockgate/internal/catalog/registry"
)

// A Type is a kind of source that stands in a place of its own.
type Type string

// The types that are no client's.
const (
	// Toolkit is what Docker's toolkit keeps for a user.
	Toolkit Type = "docker-toolkit"
	// LocalRegistry are the local registries of the user and the project.
	LocalRegistry Type = "mcp-registry"
)

// Types are all kinds of source that have a place of their own: clients, the
// toolkit, and local registries.
func Types() []Type {
	var types []Type
	for _, t := range client.Types() {
		types = append(types, Type(t))
	}
	return append(types, Toolkit, LocalRegistry)
}

// Places returns where a kind of source is found here; nothing for one that is
// not among [Types].
func Places(t Type, around catalog.Surroundings) []string {
	switch {
	case client.Known(string(t)):
		return client.Places(client.Type(t), around)
	case t == Toolkit:
		return []string{path.Join(around.Home, ".docker/mcp")}
	case t == LocalRegistry:
		return registry.Places(around)
	}
	return nil
}

// Known reports whether a word is the name of a type.
func Known(word string) bool { return slices.Contains(Types(), Type(word)) }
