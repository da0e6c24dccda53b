// Package schema reads the JSON Schemas of tools' arguments: it says what
// parameters a tool takes, makes examples, and checks arguments.
//
// Schemas come from servers that nobody has to trust. Whatever one says, it is
// read in bounded time and room: what speaks of itself without end, or is too
// much, has fewer parameters and examples, and checks nothing. It is then the
// server that checks.
package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The bounds of what is read of one schema.
const (
	// maxSchema is how long a schema may be to be checked against, and to have
	// its references followed, in bytes.
	maxSchema = 256 << 10
	// maxParameters is how many parameters are told of.
	maxParameters = 500
	// maxEnum is how long an enumeration is written as a type, in bytes.
	maxEnum = 60
)

// A Parameter is one of the arguments that a tool takes.
type Parameter struct {
	Name string `json:"name"`
	// Type is "string", "string[]", "a|b" of an enumeration, "string|null", or
	// "any".
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Parameters returns the outermost properties of a schema: the required ones
// and then the others, each in the order in which the schema has them.
func Parameters(schema json.RawMessage) []Parameter {
	root := root(schema)
	required := texts(jsonrpc.Lookup(schema, "required"))
	needed := make(map[string]bool, len(required))
	for _, name := range required {
		needed[name] = true
	}
	found := []Parameter{}
	for m, err := range jsonrpc.Members(jsonrpc.Lookup(schema, "properties")) {
		if err != nil || len(found) >= maxParameters {
			break
		}
		property := resolve(root, m.Value)
		found = append(found, Parameter{
			Name: string(m.Name), Type: typeOf(root, property), Required: needed[string(m.Name)],
			Description: strings.Join(strings.Fields(text(property, "description")), " "),
		})
	}
	slices.SortStableFunc(found, func(a, b Parameter) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return found
}

// root is where references are looked up; one that is too long has none.
func root(schema json.RawMessage) json.RawMessage {
	if len(schema) > maxSchema {
		return nil
	}
	return schema
}

// resolve follows a reference within a schema, once.
func resolve(root, schema json.RawMessage) json.RawMessage {
	if root == nil {
		return schema
	}
	path, ok := strings.CutPrefix(text(schema, "$ref"), "#/")
	if !ok {
		return schema
	}
	found := root
	for step := range strings.SplitSeq(path, "/") {
		if found = jsonrpc.Lookup(found, unescape(step)); found == nil {
			return schema
		}
	}
	return found
}

// unescape decodes a step of a JSON pointer (RFC 6901).
func unescape(step string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(step) }

func typeOf(root, schema json.RawMessage) string {
	if values := texts(jsonrpc.Lookup(schema, "enum")); len(values) > 0 && len(strings.Join(values, "|")) <= maxEnum {
		return strings.Join(values, "|")
	}
	types := texts(jsonrpc.Lookup(schema, "type"))
	if one := text(schema, "type"); one != "" {
		types = []string{one}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if len(types) > 0 {
			break
		}
		types = options(root, jsonrpc.Lookup(schema, keyword))
	}
	for i, name := range types {
		if items := jsonrpc.Lookup(schema, "items"); name == "array" && items != nil {
			types[i] = typeWord(resolve(root, items)) + "[]"
		}
	}
	switch {
	case len(types) > 0:
		return strings.Join(types, "|")
	case jsonrpc.Lookup(schema, "properties") != nil:
		return "object"
	}
	return "any"
}

// maxOptions is how many alternatives a type is told with.
const maxOptions = 8

// options returns the types of alternatives, each once.
func options(root, list json.RawMessage) []string {
	var types []string
	for option, err := range jsonrpc.Elements(list) {
		if err != nil || len(types) >= maxOptions {
			break
		}
		if name := typeWord(resolve(root, option)); !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return types
}

// typeWord is the type of what is inside of another.
func typeWord(schema json.RawMessage) string {
	if name := text(schema, "type"); name != "" {
		return name
	}
	if jsonrpc.Lookup(schema, "enum") != nil {
		return "string"
	}
	return "any"
}

// text returns a member of an object that is text, or "".
func text(object json.RawMessage, name string) string {
	var value string
	if json.Unmarshal(jsonrpc.Lookup(object, name), &value) != nil {
		return ""
	}
	return value
}

// texts returns the elements of an array that are text; nil if others are there.
func texts(array json.RawMessage) []string {
	var values []string
	if json.Unmarshal(array, &values) != nil {
		return nil
	}
	return values
}
