package schema

import (
	"encoding/json"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The bounds of what is made.
const (
	maxDepth    = 4
	maxInstance = 4 << 10 // bytes
	maxExamples = 10
)

// Examples returns the arguments that a schema itself has as examples.
func Examples(schema json.RawMessage) []json.RawMessage {
	var found []json.RawMessage
	for example, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, "examples")) {
		if err != nil || len(found) >= maxExamples {
			break
		}
		if example[0] == '{' {
			found = append(found, example)
		}
	}
	return found
}

// Instance makes arguments of the required parameters, and of others that the
// schema has an example for. It reports whether every value is the schema's
// own example; otherwise there are placeholders.
func Instance(schema json.RawMessage) (arguments json.RawMessage, own bool) {
	m := maker{root: root(schema), left: maxInstance, own: true}
	var body []byte
	required := make(map[string]bool)
	for _, name := range texts(jsonrpc.Lookup(schema, "required")) {
		required[name] = true
	}
	n := 0
	for property, err := range jsonrpc.Members(jsonrpc.Lookup(schema, "properties")) {
		if n++; err != nil || n > maxParameters {
			break
		}
		name := string(property.Name)
		if !required[name] && example(resolve(m.root, property.Value)) == nil {
			continue
		}
		body = appendMember(body, name, m.make(property.Value, name, 0))
	}
	return object(body), m.own && len(body) > 0
}

// A maker makes one instance.
type maker struct {
	root json.RawMessage
	left int  // bytes that it may have still
	own  bool // all values so far are the schema's examples
}

// make returns a value that a schema may take.
func (m *maker) make(schema json.RawMessage, name string, depth int) json.RawMessage {
	schema = resolve(m.root, schema)
	if value := example(schema); value != nil && m.spend(value) {
		return value
	}
	m.own = false
	if value := given(schema); value != nil && m.spend(value) {
		return value
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for option, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, keyword)) {
			if err == nil && depth < maxDepth {
				return m.make(option, name, depth+1)
			}
			break
		}
	}
	return m.placeholder(schema, name, depth)
}

// spend reports whether there is room for a value, and takes it.
func (m *maker) spend(value json.RawMessage) bool {
	if len(value) > m.left {
		return false
	}
	m.left -= len(value)
	return true
}

// example is the schema's own example, or nil.
func example(schema json.RawMessage) json.RawMessage {
	for example, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, "examples")) {
		if err == nil {
			return example
		}
	}
	return jsonrpc.Lookup(schema, "example")
}

// given is a value that the schema names, or nil.
func given(schema json.RawMessage) json.RawMessage {
	for _, keyword := range []string{"const", "default"} {
		if value := jsonrpc.Lookup(schema, keyword); value != nil && string(value) != "null" {
			return value
		}
	}
	for value, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, "enum")) {
		if err == nil {
			return value
		}
	}
	return nil
}

// placeholder returns a value of a schema's type.
func (m *maker) placeholder(schema json.RawMessage, name string, depth int) json.RawMessage {
	kind := text(schema, "type")
	if types := texts(jsonrpc.Lookup(schema, "type")); kind == "" && len(types) > 0 {
		kind = types[0]
	}
	m.left -= len(name) + 4
	deeper := depth < maxDepth && m.left > 0
	switch kind {
	case "integer", "number":
		if least := jsonrpc.Lookup(schema, "minimum"); least != nil && m.spend(least) {
			return least
		}
		return json.RawMessage("1")
	case "boolean":
		return json.RawMessage("true")
	case "null":
		return json.RawMessage("null")
	case "array":
		items := jsonrpc.Lookup(schema, "items")
		if items == nil || !deeper {
			return json.RawMessage("[]")
		}
		return append(append([]byte("["), m.make(items, name, depth+1)...), ']')
	case "object":
		if !deeper {
			return json.RawMessage("{}")
		}
		return m.members(schema, depth)
	}
	return quote("<" + name + ">")
}

// members returns an object with what it must have.
func (m *maker) members(schema json.RawMessage, depth int) json.RawMessage {
	var body []byte
	properties := jsonrpc.Lookup(schema, "properties")
	for _, name := range texts(jsonrpc.Lookup(schema, "required")) {
		if m.left <= 0 {
			break
		}
		body = appendMember(body, name, m.make(jsonrpc.Lookup(properties, name), name, depth+1))
	}
	return object(body)
}

func object(members []byte) json.RawMessage { return append(append([]byte("{"), members...), '}') }

func appendMember(members []byte, name string, value json.RawMessage) []byte {
	if len(members) > 0 {
		members = append(members, ',')
	}
	return append(append(append(members, quote(name)...), ':'), value...)
}

// quote writes text as JSON. No text fails to encode.
func quote(text string) json.RawMessage {
	quoted, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return quoted
}
