package meta

import (
	"encoding/json"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An Example shows how a tool is called.
type Example struct {
	Description string `json:"description"`
	// Parameters are the arguments, an object.
	Parameters json.RawMessage `json:"parameters"`
	// Made reports that nobody wrote it: the values are placeholders.
	Made bool `json:"made,omitempty"`
}

// examples returns the examples of the catalog; without those the schema's;
// without those one that is made from the required parameters, and says so.
func examples(entry catalog.Server, details Details) []Example {
	found := []Example{}
	for _, t := range entry.Tools {
		for _, example := range t.Examples {
			if t.Name == details.Tool && example.Parameters != nil {
				found = append(found, Example{Description: example.Description, Parameters: example.Parameters})
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	for example, err := range jsonrpc.Elements(jsonrpc.Lookup(details.InputSchema, "examples")) {
		if err == nil && len(example) > 0 && example[0] == '{' {
			found = append(found, Example{Description: "From the tool's schema", Parameters: example})
		}
	}
	if len(found) > 0 {
		return found
	}
	return made(details)
}

// made returns an example of required parameters, and of others that the
// schema has an example for.
func made(details Details) []Example {
	var body []byte
	placeholders, any := false, false
	for _, p := range details.Parameters {
		value, known := instance(details.InputSchema, p.schema, p.Name, 0)
		if !p.Required && !known {
			continue
		}
		any = true
		placeholders = placeholders || !known
		body = appendMember(body, p.Name, value)
	}
	if !any {
		return []Example{{Description: "Without parameters", Parameters: json.RawMessage("{}"), Made: true}}
	}
	example := Example{Description: "From the tool's schema", Parameters: append(append([]byte("{"), body...), '}')}
	if placeholders {
		example.Description, example.Made = "Made from the required parameters: the values are placeholders", true
	}
	return []Example{example}
}

func appendMember(body []byte, name string, value json.RawMessage) []byte {
	if len(body) > 0 {
		body = append(body, ',')
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return body
	}
	return append(append(append(body, quoted...), ':'), value...)
}

// maxInstance is how deep made values go.
const maxInstance = 4

// instance returns a value that a schema may take, and whether the schema
// itself has it as an example.
func instance(root, schema json.RawMessage, name string, depth int) (value json.RawMessage, known bool) {
	schema = resolve(root, schema)
	for example, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, "examples")) {
		if err == nil {
			return example, true
		}
	}
	if example := jsonrpc.Lookup(schema, "example"); example != nil {
		return example, true
	}
	for _, keyword := range []string{"const", "default"} {
		if value := jsonrpc.Lookup(schema, keyword); value != nil && string(value) != "null" {
			return value, false
		}
	}
	for value, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, "enum")) {
		if err == nil {
			return value, false
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for option, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, keyword)) {
			if err == nil && depth < maxInstance {
				return instance(root, option, name, depth+1)
			}
		}
	}
	return placeholder(root, schema, name, depth), false
}

// placeholder returns a value of a schema's type.
func placeholder(root, schema json.RawMessage, name string, depth int) json.RawMessage {
	kind := member(schema, "type")
	if kind == "" {
		if types := texts(jsonrpc.Lookup(schema, "type")); len(types) > 0 {
			kind = types[0]
		}
	}
	switch kind {
	case "integer", "number":
		if least := jsonrpc.Lookup(schema, "minimum"); least != nil {
			return least
		}
		return json.RawMessage("1")
	case "boolean":
		return json.RawMessage("true")
	case "null":
		return json.RawMessage("null")
	case "array":
		items := jsonrpc.Lookup(schema, "items")
		if items == nil || depth >= maxInstance {
			return json.RawMessage("[]")
		}
		item, _ := instance(root, items, name, depth+1)
		return append(append([]byte("["), item...), ']')
	case "object":
		return object(root, schema, depth)
	}
	quoted, err := json.Marshal("<" + name + ">")
	if err != nil {
		return json.RawMessage(`""`)
	}
	return quoted
}

// object returns an object with what it must have.
func object(root, schema json.RawMessage, depth int) json.RawMessage {
	var body []byte
	if depth < maxInstance {
		required := texts(jsonrpc.Lookup(schema, "required"))
		for _, name := range required {
			property := jsonrpc.Lookup(jsonrpc.Lookup(schema, "properties"), name)
			value, _ := instance(root, property, name, depth+1)
			body = appendMember(body, name, value)
		}
	}
	return append(append([]byte("{"), body...), '}')
}
