package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// A MismatchError is arguments that a schema does not take.
type MismatchError struct{ Problem string }

// Error says what does not fit.
func (e *MismatchError) Error() string { return e.Problem }

// A Checker checks arguments. It keeps the schemas it has compiled. The zero
// value is ready, and may be used by several goroutines at once.
type Checker struct {
	mu   sync.Mutex
	each map[string]*compiled
}

// maxCompiled bounds how many schemas are kept.
const maxCompiled = 1000

// A compiled schema is ready to be tried; both are nil if it cannot be.
type compiled struct {
	resolved *jsonschema.Resolved
	document map[string]any
}

// Check returns a [*MismatchError] if arguments do not fit a schema. A schema
// that cannot be read, speaks of what is elsewhere or would take too long
// takes everything.
func (c *Checker) Check(schema, arguments json.RawMessage) error {
	if len(schema) > maxSchema {
		return nil
	}
	found := c.compiled(schema)
	if found.resolved == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return &MismatchError{Problem: err.Error()}
	}
	if !bearable(found.document, value) {
		return nil
	}
	if err := found.resolved.Validate(value); err != nil {
		return &MismatchError{Problem: said(err)}
	}
	return nil
}

func (c *Checker) compiled(schema json.RawMessage) *compiled {
	c.mu.Lock()
	found := c.each[string(schema)]
	c.mu.Unlock()
	if found != nil {
		return found
	}
	found = compile(schema)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.each == nil || len(c.each) >= maxCompiled {
		c.each = make(map[string]*compiled)
	}
	c.each[string(schema)] = found
	return found
}

func compile(schema json.RawMessage) *compiled {
	var root jsonschema.Schema
	var document map[string]any
	if json.Unmarshal(schema, &document) != nil || document == nil || !localRoot(document) || json.Unmarshal(schema, &root) != nil {
		return &compiled{}
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return &compiled{}
	}
	return &compiled{resolved: resolved, document: document}
}

// localRoot is local for a whole schema, which may say where it is published.
func localRoot(document map[string]any) bool {
	for name, member := range document {
		if name != "$id" && !local(map[string]any{name: member}) {
			return false
		}
	}
	return true
}

// local reports that a schema has no types that there are not, and refers to
// itself by JSON pointers alone, so that it is known what a reference leads to.
func local(document any) bool {
	switch value := document.(type) {
	case map[string]any:
		for name, member := range value {
			switch name {
			case "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef":
				if _, isText := member.(string); isText {
					return false
				}
			case "type": // one that there is not, such as "str", would refuse everything
				if name, isText := member.(string); isText && !slices.Contains(types(), name) {
					return false
				}
			case "$ref":
				if ref, isText := member.(string); isText && ref != "#" && !strings.HasPrefix(ref, "#/") {
					return false
				}
			}
			if disguised(name) || !localMember(name, member) {
				return false
			}
		}
	case []any:
		for _, element := range value {
			if !local(element) {
				return false
			}
		}
	}
	return true
}

// localMember is local for a member of a schema. Some are maps whose names are
// no keywords.
func localMember(name string, member any) bool {
	named, isMap := member.(map[string]any)
	if !isMap || !slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}, name) {
		return local(member)
	}
	for _, inner := range named {
		if !local(inner) {
			return false
		}
	}
	return true
}

// disguised reports whether a name is a keyword but for its case. The
// validator's decoder takes it for that keyword; nothing here does.
func disguised(name string) bool {
	return slices.ContainsFunc(keywords(), func(keyword string) bool {
		return name != keyword && strings.EqualFold(name, keyword)
	})
}

func keywords() []string {
	return []string{
		"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$ref", "$defs", "definitions",
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "properties", "patternProperties",
		"additionalProperties", "propertyNames", "unevaluatedProperties", "items", "additionalItems", "prefixItems", "contains",
		"unevaluatedItems", "type",
	}
}

// types are those that JSON Schema has.
func types() []string {
	return []string{"array", "boolean", "integer", "null", "number", "object", "string"}
}

// said is a validator's error without the places of schemas in it.
func said(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ">: "); i >= 0 {
		text = text[i+len(">: "):]
	}
	return text
}
