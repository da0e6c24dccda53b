package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Malformed returns what is wrong with the params of a request, where the SDK
// would say it with another code than JSON-RPC has for it, or with none.
func Malformed(m jsonrpc.Message) *jsonrpc.Error {
	missing := m.Params == nil || string(m.Params) == "null"
	switch {
	case m.Kind() != jsonrpc.Request:
		return nil
	case missing && needsParams(m.Method):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the params of " + m.Method + " are missing"}
	case missing:
		return nil
	}
	switch m.Method {
	case "initialize":
		if !Decodes[mcp.InitializeParams](m.Params) {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the params of initialize are not those of MCP"}
		}
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		switch cursor := jsonrpc.Lookup(m.Params, "cursor"); string(cursor) {
		case "", "null", `""`:
		default: // each list is one page
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no list has a page with the cursor " + quoted(cursor)}
		}
	}
	return nil
}

// quoted shortens what a client wrote.
func quoted(value json.RawMessage) string {
	const most = 100
	if len(value) > most {
		return string(value[:most]) + "…"
	}
	return string(value)
}

// needsParams reports whether requests of a method cannot be without params.
func needsParams(method string) bool {
	switch method {
	case "initialize", "tools/call", "prompts/get", "resources/read", "resources/subscribe",
		"resources/unsubscribe", "completion/complete", "logging/setLevel", "subscriptions/listen":
		return true
	}
	return false
}

// Decodes reports whether the SDK can read an object.
func Decodes[T any](object json.RawMessage) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	return string(object) == "{}" || json.Unmarshal(object, new(T)) == nil
}
