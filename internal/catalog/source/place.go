package source

import (
	"path"
	"slices"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
)

// A Type is a kind of source that stands in a place of its own.
type Type string

// Toolkit is what Docker's toolkit keeps for a user.
const Toolkit Type = "docker-toolkit"

// Types are all kinds of source that have a place of their own: clients, and
// the toolkit.
func Types() []Type {
	var types []Type
	for _, t := range client.Types() {
		types = append(types, Type(t))
	}
	return append(types, Toolkit)
}

// Places returns where a kind of source is found here; nothing for one that is
// not among [Types].
func Places(t Type, around catalog.Surroundings) []string {
	switch {
	case client.Known(string(t)):
		return client.Places(client.Type(t), around)
	case t == Toolkit:
		return []string{path.Join(around.Home, ".docker/mcp")}
	}
	return nil
}

// Known reports whether a word is the name of a type.
func Known(word string) bool { return slices.Contains(Types(), Type(word)) }
