package policy

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed schema.json
var schema []byte //nolint:gochecknoglobals // embedded data

// Schema returns the JSON Schema of a configuration file, as an editor reads
// it. What it says is kept beside the types, and held together with them by a
// test; the lists of known words are filled in here.
func Schema() (map[string]any, error) {
	var whole map[string]any
	if err := json.Unmarshal(schema, &whole); err != nil {
		return nil, fmt.Errorf("schema of the configuration: %w", err)
	}
	member := func(object map[string]any, path ...string) map[string]any {
		for _, name := range path {
			object, _ = object[name].(map[string]any)
		}
		return object
	}
	member(whole, "properties", "discovery", "properties", "sources", "items", "properties", "type")["enum"] = sourceTypes()
	member(whole, "$defs", "groups", "items")["enum"] = knownGroups()
	return whole, nil
}
