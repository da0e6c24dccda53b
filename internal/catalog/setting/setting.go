// Package setting judges a user's settings of a server by the JSON Schema of
// its entry, and reads them from a command line.
//
// It refuses schemas with references, which could lead in circles, and
// settings that the schema does not name.
package setting

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dockgate/dockgate/internal/catalog/spelling"
)

// A Problem is what is wrong with one setting.
type Problem struct {
	// Setting is the setting's path, dotted; empty if no single one is wrong.
	Setting string
	Text    string
}

// A Error says what is wrong with the settings of a server.
type Error struct {
	Server   string
	Problems []Problem
	// schema is what the settings were held against; the zero one if the server
	// takes none.
	schema Schema
}

// Error names the server and each setting.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Text
		if p.Setting != "" {
			texts[i] = fmt.Sprintf("setting %q %s", p.Setting, p.Text)
		}
	}
	return fmt.Sprintf("server %q: %s", e.Server, strings.Join(texts, "; "))
}

// Hint shows the command that sets the first setting, or the one that was
// meant by it.
func (e *Error) Hint() string {
	key := "key"
	if len(e.Problems) > 0 && e.Problems[0].Setting != "" {
		key = e.Problems[0].Setting
		if e.schema.root == nil {
			return "add it without settings: dockgate add " + e.Server
		}
		path := strings.Split(key, ".")
		last := len(path) - 1
		if _, known := e.schema.At(path); !known {
			names := e.schema.Names(path[:last])
			meant, ok := spelling.Meant(path[last], names)
			if !ok {
				return "see which settings it takes: dockgate catalog show " + e.Server
			}
			path[last] = meant
			key = strings.Join(path, ".")
		}
	}
	return fmt.Sprintf("dockgate add %s --set %s=value", e.Server, key)
}

// Check checks a user's settings against a server's Config: that required ones
// are there, that no other is than the schema names, and that each has the
// form the schema wants. The error is an [*Error], or says that the schema
// itself is broken.
func Check(server string, config json.RawMessage, settings map[string]any) error {
	compiled, problems := Compile(config)
	if problems != nil {
		return fmt.Errorf("server %q: %w", server, problems)
	}
	if plain, ok := plainNumbers(settings).(map[string]any); ok && settings != nil {
		settings = plain
	}
	failure := &Error{Server: server, schema: compiled}
	report := func(setting, format string, args ...any) {
		failure.Problems = append(failure.Problems, Problem{setting, fmt.Sprintf(format, args...)})
	}
	if compiled.root == nil {
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			report(name, "is unknown: the server takes no settings")
		}
		return failure.orNil()
	}
	for _, name := range compiled.root.Required {
		if _, ok := settings[name]; !ok {
			report(name, "is required%s", description(compiled.root.Properties[name]))
		}
	}
	compiled.reportUnknown(nil, settings, report)
	if err := compiled.reportInvalid(settings, report); err != nil {
		return fmt.Errorf("server %q: config: %w", server, err)
	}
	if len(failure.Problems) == 0 {
		if settings == nil {
			settings = map[string]any{}
		}
		if err := compiled.resolved.Validate(settings); err != nil {
			report("", "settings do not fit together: %s", innermost(err))
		}
	}
	return failure.orNil()
}

func (e *Error) orNil() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

func description(s *jsonschema.Schema) string {
	if s == nil || s.Description == "" {
		return ""
	}
	return ": " + s.Description
}

// reportUnknown reports every setting that the schema does not name.
func (s Schema) reportUnknown(path []string, settings map[string]any, report func(string, string, ...any)) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		inner := append(slices.Clone(path), name)
		if _, known := s.At(inner); !known {
			report(strings.Join(inner, "."), "is unknown%s", spelling.Suggestion(name, s.Names(path)))
			continue
		}
		if object, ok := settings[name].(map[string]any); ok {
			s.reportUnknown(inner, object, report)
		}
	}
}

// reportInvalid reports every setting that is wrong by itself.
func (s Schema) reportInvalid(settings map[string]any, report func(string, string, ...any)) error {
	if len(settings) == 0 {
		return nil
	}
	alone, err := s.alone()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, known := s.At([]string{name}); !known {
			continue
		}
		if err := alone.Validate(map[string]any{name: settings[name]}); err != nil {
			report(name, "is invalid: %s", innermost(err))
		}
	}
	return nil
}

// Parse reads assignments of the form "key=value", as they stand on a command
// line. Dots in a key lead into objects. The schema of the setting says what
// the value is: text, a number, "true" or "false"; for a list the elements with
// commas between them, and more of them where the key comes again; for an
// object, or a list whose elements hold commas, its JSON.
//
// Required settings may be missing: what was read may add to older settings,
// and [Check] judges the whole. The error is an [*Error], or says that the
// schema itself is broken.
func Parse(server string, config json.RawMessage, assignments []string) (map[string]any, error) {
	compiled, problems := Compile(config)
	if problems != nil {
		return nil, fmt.Errorf("server %q: %w", server, problems)
	}
	failure := &Error{Server: server, schema: compiled}
	settings := make(map[string]any)
	for _, assignment := range assignments {
		key, text, found := strings.Cut(assignment, "=")
		if !found || key == "" {
			failure.Problems = append(failure.Problems, Problem{"", fmt.Sprintf("%q is not of the form key=value", assignment)})
			continue
		}
		if err := compiled.assign(settings, key, text); err != nil {
			failure.Problems = append(failure.Problems, Problem{key, err.Error()})
		}
	}
	if err := failure.orNil(); err != nil {
		return nil, err
	}
	return settings, nil
}

func (s Schema) assign(settings map[string]any, key, text string) error {
	path := strings.Split(key, ".")
	wanted, known := s.At(path)
	switch {
	case s.root == nil:
		return errors.New("is unknown: the server takes no settings")
	case !known || slices.Contains(path, ""):
		return fmt.Errorf("is unknown%s", spelling.Suggestion(path[len(path)-1], s.Names(path[:len(path)-1])))
	}
	parsed, err := parseValue(text, wanted)
	if err != nil {
		return err
	}
	object := settings
	for _, name := range path[:len(path)-1] {
		if _, ok := object[name]; !ok {
			object[name] = make(map[string]any)
		}
		inner, ok := object[name].(map[string]any)
		if !ok {
			return fmt.Errorf("lies in %q, which was set to something else", name)
		}
		object = inner
	}
	return add(object, path[len(path)-1], parsed)
}

// add sets a member that is not set yet, and lengthens a list that is.
func add(object map[string]any, name string, parsed any) error {
	old, exists := object[name]
	oldList, wasList := old.([]any)
	list, isList := parsed.([]any)
	switch {
	case !exists:
		object[name] = parsed
	case wasList && isList:
		object[name] = slices.Concat(oldList, list)
	default:
		return errors.New("is set twice")
	}
	return nil
}

// parseValue reads a value in the first form that its schema admits; without
// a schema it is text.
func parseValue(text string, wanted *jsonschema.Schema) (any, error) {
	admitted := Kinds(wanted)
	var refusal error
	for _, kind := range []string{"integer", "number", "boolean", "array", "object", "string"} {
		if !slices.Contains(admitted, kind) {
			continue
		}
		parsed, err := parseKind(kind, text, wanted)
		if err == nil {
			return parsed, nil
		}
		refusal = err
	}
	if refusal != nil {
		return nil, refusal
	}
	return text, nil
}

func parseKind(kind, text string, wanted *jsonschema.Schema) (any, error) {
	switch kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("is %q, want a whole number", text)
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, fmt.Errorf("is %q, want a number", text)
		}
		return n, nil
	case "boolean":
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("is %q, want true or false", text)
		}
		return text == "true", nil
	case "array":
		return parseList(text, wanted.Items)
	case "object":
		object, ok := parseJSON(text).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("is %q, want a JSON object", text)
		}
		return object, nil
	}
	return text, nil
}

func parseList(text string, element *jsonschema.Schema) ([]any, error) {
	if list, ok := parseJSON(text).([]any); ok {
		return list, nil
	}
	list := []any{}
	if text == "" {
		return list, nil
	}
	for _, piece := range strings.Split(text, ",") {
		parsed, err := parseValue(piece, element)
		if err != nil {
			return nil, fmt.Errorf("has an element that %w", err)
		}
		list = append(list, parsed)
	}
	return list, nil
}

// parseJSON returns what text stands for in JSON; nil if it is not JSON.
func parseJSON(text string) any {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	var parsed any
	if decoder.Decode(&parsed) != nil {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return parsed
}
