package gateway

import (
	"encoding/json"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// For the tests in package gateway_test.

// Rename returns a definition under the name that clients see.
var Rename = rename

// A Listing is a menu with tools alone.
type Listing struct{ writer *menuWriter }

// NewListing returns a menu without tools.
func NewListing(prefix Prefix) Listing { return Listing{newMenuWriter(prefix, principal.Local)} }

// Add lists a tool. Names are of our own tools, which others do not get.
func (l Listing) Add(ref tool.Ref, definition json.RawMessage, names ...string) error {
	for _, name := range names {
		l.writer.own[name] = true
	}
	return l.writer.tool(ref, definition)
}

// Tools returns the list as clients get it.
func (l Listing) Tools() json.RawMessage { return l.writer.finish().lists["tools/list"] }

// Resolve returns the tool that a client means.
func (l Listing) Resolve(name string, servers *catalog.Catalog) (tool.Ref, bool) {
	return l.writer.resolve(name, servers)
}
