package setting

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
)

// Change returns settings with assignments applied, each "key=value" as in
// [Parse], or "key=" to unset it. Objects are joined, lists replaced. The error
// is that of [Parse].
func Change(server string, config json.RawMessage, before map[string]any, assignments []string) (map[string]any, error) {
	var set, unset []string
	for _, assignment := range assignments {
		if key, ok := strings.CutSuffix(assignment, "="); ok && key != "" && !strings.Contains(key, "=") {
			unset = append(unset, key)
			continue
		}
		set = append(set, assignment)
	}
	added, err := Parse(server, config, set)
	compiled, _ := Compile(config) // Parse has said what is wrong with it
	failure := &Error{Server: server, schema: compiled}
	if err != nil && !errors.As(err, &failure) {
		return nil, err
	}
	settings := overlay(before, added)
	for _, key := range unset {
		if !remove(settings, strings.Split(key, ".")) {
			failure.Problems = append(failure.Problems, Problem{Setting: key, Text: "is not set"})
		}
	}
	if len(failure.Problems) > 0 {
		return nil, failure
	}
	return settings, nil
}

// overlay returns the settings of below, where above says nothing else.
// Objects are joined, lists replaced.
func overlay(below, above map[string]any) map[string]any {
	joined := maps.Clone(below)
	if joined == nil {
		joined = make(map[string]any)
	}
	for name, value := range above {
		inner, isObject := value.(map[string]any)
		old, wasObject := joined[name].(map[string]any)
		if isObject && wasObject {
			value = overlay(old, inner)
		}
		joined[name] = value
	}
	return joined
}

// remove deletes a setting by its path and reports whether it was there.
func remove(settings map[string]any, path []string) bool {
	value, ok := settings[path[0]]
	if !ok {
		return false
	}
	if len(path) == 1 {
		delete(settings, path[0])
		return true
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return false
	}
	inner = maps.Clone(inner)
	settings[path[0]] = inner
	return remove(inner, path[1:])
}
