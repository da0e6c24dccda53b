package meta

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Schemas are read here as far as people and models are told of them. What is
// no schema, or speaks of what is elsewhere, has no parameters and any type.

// properties returns the properties of an object's schema, in their order.
func properties(schema json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for property, err := range jsonrpc.Members(jsonrpc.Lookup(schema, "properties")) {
			if err != nil || !yield(string(property.Name), property.Value) {
				return
			}
		}
	}
}

// resolve follows a reference within a schema, once.
func resolve(root, schema json.RawMessage) json.RawMessage {
	path, ok := strings.CutPrefix(member(schema, "$ref"), "#/")
	if !ok {
		return schema
	}
	found := root
	for step := range strings.SplitSeq(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if found = jsonrpc.Lookup(found, step); found == nil {
			return schema
		}
	}
	return found
}

// typeOf describes what a schema takes: "string", "string[]", "a|b" of an
// enumeration, "string|null", or "any".
func typeOf(root, schema json.RawMessage) string {
	schema = resolve(root, schema)
	if values := texts(jsonrpc.Lookup(schema, "enum")); len(values) > 0 && cost(strings.Join(values, "|")) <= 20 {
		return strings.Join(values, "|")
	}
	types := texts(jsonrpc.Lookup(schema, "type"))
	if one := member(schema, "type"); one != "" {
		types = []string{one}
	}
	if len(types) == 0 {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			for option, err := range jsonrpc.Elements(jsonrpc.Lookup(schema, keyword)) {
				if err != nil {
					break
				}
				if name := typeWord(root, resolve(root, option)); !slices.Contains(types, name) {
					types = append(types, name)
				}
			}
		}
	}
	for i, name := range types {
		if items := jsonrpc.Lookup(schema, "items"); name == "array" && items != nil {
			types[i] = typeWord(root, resolve(root, items)) + "[]"
		}
	}
	if len(types) == 0 {
		if jsonrpc.Lookup(schema, "properties") != nil {
			return "object"
		}
		return "any"
	}
	return strings.Join(types, "|")
}

// typeWord is the type of what is inside of another.
func typeWord(root, schema json.RawMessage) string {
	if name := member(resolve(root, schema), "type"); name != "" {
		return name
	}
	if jsonrpc.Lookup(schema, "enum") != nil {
		return "string"
	}
	return "any"
}

// texts returns the elements of an array that are text; nil if others are there.
func texts(array json.RawMessage) []string {
	var values []string
	if json.Unmarshal(array, &values) != nil {
		return nil
	}
	return values
}
