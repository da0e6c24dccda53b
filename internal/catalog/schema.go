package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A schema is the compiled form of an entry's Config. The zero value is that
// of an entry without settings.
type schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// openConfig is a Config that admits every setting.
func openConfig() json.RawMessage { return json.RawMessage(`{"additionalProperties":true}`) }

// A schemaError says what is wrong with a schema, at a path within it.
type schemaError struct{ path, text string }

func (e *schemaError) Error() string {
	if e.path == "" {
		return "config " + e.text
	}
	return "config." + e.path + " " + e.text
}

// compileSchema compiles a Config. It is an object's schema without
// references: those could lead in circles, in which validation never ends.
func compileSchema(config json.RawMessage) (schema, *schemaError) {
	if config == nil {
		return schema{}, nil
	}
	root, resolved, err := resolve(config)
	if err != nil {
		return schema{}, locate(config, err)
	}
	if root.Type != "" && root.Type != "object" {
		return schema{}, &schemaError{"type", fmt.Sprintf("is %q; settings are an object", root.Type)}
	}
	if err := checkSchema("", root); err != nil {
		return schema{}, err
	}
	return schema{root, resolved}, nil
}

func resolve(raw json.RawMessage) (*jsonschema.Schema, *jsonschema.Resolved, error) {
	var root jsonschema.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, err
	}
	resolved, err := root.Resolve(nil)
	return &root, resolved, err
}

// locate finds the property that keeps a schema from being one; the library
// does not say.
func locate(config json.RawMessage, cause error) *schemaError {
	var members struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(config, &members) == nil {
		for _, name := range slices.Sorted(maps.Keys(members.Properties)) {
			if _, _, err := resolve(members.Properties[name]); err != nil {
				return &schemaError{"properties." + name, "is not a JSON Schema: " + innermost(err)}
			}
		}
	}
	return &schemaError{"", "is not a JSON Schema: " + innermost(cause)}
}

// checkSchema finds what the library lets pass: unknown types, required
// settings that do not exist, and references.
func checkSchema(path string, s *jsonschema.Schema) *schemaError {
	if s.Ref != "" || s.DynamicRef != "" {
		return &schemaError{path, "uses a reference, which settings may not"}
	}
	known := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	for _, name := range slices.Concat(s.Types, []string{s.Type}) {
		if name != "" && !slices.Contains(known, name) {
			return &schemaError{join(path, "type"), fmt.Sprintf("is %q, which is unknown%s", name, suggestion(name, known))}
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok && s.Properties != nil {
			return &schemaError{join(path, "required"), fmt.Sprintf("names %q, which is not among the properties", name)}
		}
	}
	for _, child := range children(s) {
		if err := checkSchema(join(path, child.name), child.schema); err != nil {
			return err
		}
	}
	return nil
}

// A child is a schema within another, by the path that leads to it.
type child struct {
	name   string
	schema *jsonschema.Schema
}

func children(s *jsonschema.Schema) []child {
	var all []child
	for keyword, schemas := range map[string]map[string]*jsonschema.Schema{
		"$defs": s.Defs, "definitions": s.Definitions, "properties": s.Properties,
		"patternProperties": s.PatternProperties, "dependentSchemas": s.DependentSchemas, "dependencies": s.DependencySchemas,
	} {
		for name, sub := range schemas {
			all = append(all, child{keyword + "." + name, sub})
		}
	}
	for keyword, schemas := range map[string][]*jsonschema.Schema{
		"prefixItems": s.PrefixItems, "items": s.ItemsArray, "allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf,
	} {
		for i, sub := range schemas {
			all = append(all, child{fmt.Sprintf("%s[%d]", keyword, i), sub})
		}
	}
	for keyword, sub := range map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems,
		"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames, "unevaluatedProperties": s.UnevaluatedProperties,
		"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else, "contentSchema": s.ContentSchema,
	} {
		if sub != nil {
			all = append(all, child{keyword, sub})
		}
	}
	slices.SortFunc(all, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return all
}

// at returns the schema of the setting that path leads to, and whether there
// may be such a setting. The schema is nil where any value may stand.
//
// Beyond the standard, a setting that the schema does not name is allowed only
// if the schema says so by additionalProperties or patternProperties: else a
// misspelt name would pass.
func (s schema) at(path []string) (*jsonschema.Schema, bool) {
	current := s.root
	if current == nil {
		return nil, false
	}
	for _, name := range path {
		next, known := property(current, name)
		if !known || next == nil {
			return nil, known
		}
		current = next
	}
	return current, true
}

func property(s *jsonschema.Schema, name string) (*jsonschema.Schema, bool) {
	if sub, ok := s.Properties[name]; ok {
		return sub, true
	}
	for _, alternatives := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, alternative := range alternatives {
			if sub, ok := property(alternative, name); ok {
				return sub, true
			}
		}
	}
	switch {
	case s.AdditionalProperties != nil && !isFalse(s.AdditionalProperties):
		return s.AdditionalProperties, true
	case len(s.PatternProperties) > 0:
		return nil, true
	}
	// An object that says nothing of its members takes any.
	open := len(s.Properties)+len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) == 0 && s.AdditionalProperties == nil
	return nil, open && slices.Contains(kinds(s), "object")
}

// isFalse reports whether s is the schema "false", as the library reads it.
func isFalse(s *jsonschema.Schema) bool {
	encoded, err := json.Marshal(s)
	return err == nil && string(encoded) == "false"
}

// kinds returns the types that s admits; none if it does not say.
func kinds(s *jsonschema.Schema) []string {
	switch {
	case s == nil:
		return nil
	case s.Type != "":
		return []string{s.Type}
	case len(s.Types) > 0:
		return s.Types
	}
	var all []string
	for _, alternatives := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf, s.AllOf} {
		for _, alternative := range alternatives {
			all = append(all, kinds(alternative)...)
		}
	}
	return all
}

// names returns the settings of the object that path leads to.
func (s schema) names(path []string) []string {
	object, _ := s.at(path)
	if object == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object.Properties))
}

// alone returns the schema with nothing but its properties, against which one
// setting can be judged by itself.
func (s schema) alone() (*jsonschema.Resolved, error) {
	properties := make(map[string]*jsonschema.Schema, len(s.root.Properties))
	for name, sub := range s.root.Properties {
		properties[name] = sub.CloneSchemas()
	}
	return (&jsonschema.Schema{
		Schema:               s.root.Schema,
		Properties:           properties,
		AdditionalProperties: s.root.AdditionalProperties.CloneSchemas(),
	}).Resolve(nil)
}

// innermost returns the message of the error at the bottom of a chain; the
// library's chains repeat the place on every floor.
func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		err = inner
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
