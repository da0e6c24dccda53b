package menu

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// listable returns a tool's definition as every client can read it. Several
// clients read a list as a whole and refuse all of it for one member of
// another kind than the schema of MCP has (schema: Tool), and so one server's
// tool would cost the tools of all others.
//
// What it may do without changing what the tool is, listable does: it takes
// optional members away that are null, and says of an input schema that it is
// of type object, since arguments are nothing else (server/tools, "Tool").
// Other flaws are an error.
func listable(definition json.RawMessage) (json.RawMessage, error) {
	sound, schemas := true, 0
	for m, err := range jsonrpc.Members(definition) {
		if err != nil {
			return nil, err
		}
		if string(m.Name) == "inputSchema" {
			schemas++
			sound = sound && isObjectSchema(m.Value)
			continue
		}
		kind := optional(m.Name)
		if kind == 0 || m.Value[0] == kind {
			continue
		}
		if m.Value[0] != 'n' {
			return nil, fmt.Errorf("%s is of another kind than it must be", m.Name)
		}
		sound = false
	}
	if sound && schemas > 0 {
		return definition, nil
	}
	return repaired(definition)
}

// optional returns how the value of an optional member of a tool begins, or 0
// for other members.
func optional(name []byte) byte {
	switch string(name) {
	case "title", "description":
		return '"'
	case "annotations", "outputSchema", "execution", "_meta":
		return '{'
	case "icons":
		return '['
	}
	return 0
}

const anyObject = `{"type":"object"}`

func isObjectSchema(schema json.RawMessage) bool {
	return schema[0] == '{' && string(jsonrpc.Lookup(schema, "type")) == `"object"`
}

// repaired mends what listable has found.
func repaired(definition json.RawMessage) (json.RawMessage, error) {
	mended := make([]byte, 1, len(definition)+len(anyObject))
	mended[0] = '{'
	schema := json.RawMessage(anyObject)
	for m, err := range jsonrpc.Members(definition) {
		switch {
		case err != nil:
			return nil, err
		case string(m.Name) == "inputSchema":
			if schema, err = objectSchema(m.Value); err != nil {
				return nil, err
			}
		case optional(m.Name) != 0 && m.Value[0] == 'n':
		default:
			mended = append(append(mended, m.Raw...), ',')
		}
	}
	mended = append(append(mended, `"inputSchema":`...), schema...)
	return append(mended, '}'), nil
}

var (
	errNoSchema   = errors.New("inputSchema is not an object")
	errOtherInput = errors.New("inputSchema is of a type that arguments never have")
)

// objectSchema returns an input schema of type object that accepts the same
// arguments.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	switch schema[0] {
	case 'n':
		return json.RawMessage(anyObject), nil
	case '{':
	default:
		return nil, errNoSchema
	}
	kind := jsonrpc.Lookup(schema, "type")
	if kind != nil && string(kind) != `"object"` && !allows(kind, `"object"`) {
		return nil, errOtherInput
	}
	return jsonrpc.With(schema, "type", json.RawMessage(`"object"`))
}

// allows reports whether a list of types has one.
func allows(kinds json.RawMessage, one string) bool {
	for kind, err := range jsonrpc.Elements(kinds) {
		if err == nil && string(kind) == one {
			return true
		}
	}
	return false
}
