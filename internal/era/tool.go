package era

import (
	"bytes"
	"encoding/json"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// ToolForLegacy returns a tool's definition for a client with sessions, which
// takes structured content, and so the schema of it, only if it is an object.
func ToolForLegacy(definition json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(definition, []byte(`"outputSchema"`)) {
		return definition, nil
	}
	return without(definition, func(m jsonrpc.Member) bool {
		return string(m.Name) == "outputSchema" && string(jsonrpc.Lookup(m.Value, "type")) != `"object"`
	})
}

// NeedsTasks reports whether a tool can be called as a task only (MCP
// 2025-11-25, basic/utilities/tasks), which a gateway does not carry.
func NeedsTasks(definition json.RawMessage) bool {
	return bytes.Contains(definition, []byte("taskSupport")) &&
		text(jsonrpc.Lookup(definition, "execution"), "taskSupport") == "required"
}
