package search

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dockgate/dockgate/internal/tool"
)

// maxParameters bounds what is read of one tool.
const maxParameters = 256

// ToolOf reads a tool out of its definition: name, title, description, and the
// parameters of its input schema with those inside of them. What is not as MCP
// has it is left out.
func ToolOf(definition tool.Definition) Tool {
	var entry struct {
		Title       any `json:"title"`
		Description any `json:"description"`
		Annotations any `json:"annotations"`
		InputSchema any `json:"inputSchema"`
	}
	t := Tool{Name: definition.Name}
	if json.Unmarshal(definition.JSON, &entry) != nil {
		return t
	}
	t.Title, _ = entry.Title.(string)
	t.Description, _ = entry.Description.(string)
	if annotations, _ := entry.Annotations.(map[string]any); t.Title == "" {
		t.Title, _ = annotations["title"].(string)
	}
	t.Parameters = parameters(nil, entry.InputSchema)
	return t
}

// ParametersOf returns the parameters of a JSON Schema with those inside of
// them, the names of a level in order. What is no schema has none.
func ParametersOf(schema json.RawMessage) []Parameter {
	var value any
	if json.Unmarshal(schema, &value) != nil {
		return nil
	}
	return parameters(nil, value)
}

func parameters(all []Parameter, schema any) []Parameter {
	object, _ := schema.(map[string]any)
	if items, ok := object["items"]; ok {
		all = parameters(all, items)
	}
	properties, _ := object["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(all) >= maxParameters {
			return all
		}
		property, _ := properties[name].(map[string]any)
		description, _ := property["description"].(string)
		all = append(all, Parameter{name, description})
		all = parameters(all, property)
	}
	return all
}
