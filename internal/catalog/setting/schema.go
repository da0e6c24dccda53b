package setting

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/spelling"
)

// A Schema is the compiled form of an entry's Config. The zero value is that
// of an entry without settings.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Open is a Config that admits every setting.
func Open() json.RawMessage { return json.RawMessage(`{"additionalProperties":true}`) }

// A SchemaError is what is wrong with a schema. Their fields are relative to
// the entry, and they have no lines.
type SchemaError []document.Problem

// Error names each field.
func (p SchemaError) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.Field + " " + problem.Text
	}
	return strings.Join(texts, "; ")
}

// maxDepth is how deep a Config may nest. The library decodes every level once
// more for each that is around it, so that what is deep costs far more than
// its length says.
const maxDepth = 128

// tooDeep reports that JSON nests deeper than maxDepth. Braces in texts are
// none.
func tooDeep(data json.RawMessage) bool {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Compile compiles a Config. It is an object's schema without
// references: those could lead in circles, in which validation never ends.
func Compile(config json.RawMessage) (Schema, SchemaError) {
	if config == nil || string(config) == "null" {
		return Schema{}, nil
	}
	if tooDeep(config) {
		return Schema{}, SchemaError{{Field: "config", Text: fmt.Sprintf("nests deeper than %d levels", maxDepth)}}
	}
	root, resolved, err := resolve(config)
	var problems SchemaError
	if root != nil {
		if root.Type != "" && root.Type != "object" {
			problems = append(problems, document.Problem{Field: "config.type", Text: fmt.Sprintf("is %q; settings are an object", root.Type)})
		}
		problems = append(problems, checkSchema("config", root)...)
	}
	if err != nil {
		known := make(map[string]bool)
		for _, problem := range problems {
			known[problem.Field] = true
		}
		for _, problem := range locate(config, err) {
			if !document.Reported(known, problem.Field) {
				problems = append(problems, problem)
			}
		}
	}
	if len(problems) > 0 {
		return Schema{}, problems
	}
	return Schema{root, resolved}, nil
}

// Empty reports that there are no settings.
func (s Schema) Empty() bool { return s.root == nil }

// resolve returns no schema if raw is none, and an error if it cannot be used.
func resolve(raw json.RawMessage) (*jsonschema.Schema, *jsonschema.Resolved, error) {
	var root jsonschema.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, err
	}
	resolved, err := root.Resolve(nil)
	return &root, resolved, err
}

// locate finds the properties that keep a schema from being one; the library
// does not say.
func locate(config json.RawMessage, cause error) SchemaError {
	var members struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var problems SchemaError
	notOne := func(field string, err error) {
		text := strings.TrimPrefix(innermost(err), "jsonschema.Schema: <anonymous schema>: ")
		problems = append(problems, document.Problem{Field: field, Text: "is not a JSON Schema: " + text})
	}
	if json.Unmarshal(config, &members) == nil {
		for _, name := range slices.Sorted(maps.Keys(members.Properties)) {
			if _, _, err := resolve(members.Properties[name]); err != nil {
				notOne("config.properties."+name, err)
			}
		}
	}
	if len(problems) == 0 {
		notOne("config", cause)
	}
	return problems
}

// checkSchema finds what the library lets pass: unknown types, required
// settings that do not exist, and references.
func checkSchema(field string, s *jsonschema.Schema) SchemaError {
	var problems SchemaError
	report := func(field, format string, args ...any) {
		problems = append(problems, document.Problem{Field: field, Text: fmt.Sprintf(format, args...)})
	}
	if s == nil {
		report(field, "is empty, want a JSON Schema")
		return problems
	}
	if s.Ref != "" || s.DynamicRef != "" {
		report(field, "uses a reference, which settings may not")
	}
	known := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	for _, name := range slices.Concat(s.Types, []string{s.Type}) {
		if name != "" && !slices.Contains(known, name) {
			report(field+".type", "is %q, which is no type%s", name, spelling.Suggestion(name, known))
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok && s.Properties != nil {
			report(field+".required", "names %q, which is not among the properties", name)
		}
	}
	for _, child := range children(s) {
		problems = append(problems, checkSchema(field+"."+child.name, child.schema)...)
	}
	return problems
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

// At returns the schema of the setting that path leads to, and whether there
// may be such a setting. The schema is nil where any value may stand.
//
// Beyond the standard, a setting that the schema does not name is allowed only
// if the schema says so by additionalProperties or patternProperties: else a
// misspelt name would pass.
func (s Schema) At(path []string) (*jsonschema.Schema, bool) {
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
	return nil, open && slices.Contains(Kinds(s), "object")
}

// isFalse reports whether s is the schema "false", as the library reads it.
func isFalse(s *jsonschema.Schema) bool {
	encoded, err := json.Marshal(s)
	return err == nil && string(encoded) == "false"
}

// Kinds returns the types that s admits; none if it does not say.
func Kinds(s *jsonschema.Schema) []string {
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
			all = append(all, Kinds(alternative)...)
		}
	}
	return all
}

// Names returns the settings of the object that path leads to.
func (s Schema) Names(path []string) []string {
	object, _ := s.At(path)
	if object == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object.Properties))
}

// alone returns the schema with nothing but its properties, against which one
// setting can be judged by itself.
func (s Schema) alone() (*jsonschema.Resolved, error) {
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
