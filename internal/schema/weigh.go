package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// A schema can make a validator run for ever, or for very long: by referring
// to itself in place, or by alternatives of alternatives. So it is counted
// beforehand how often schemas would be tried on a value and its parts, each
// pair once.

const (
	// maxTried is how many times schemas may be tried on parts of a value.
	maxTried = 100_000
	// maxPairs is how many pairs of a schema and a part are counted.
	maxPairs = 20_000
)

// A scale counts for one schema and one value.
type scale struct {
	root map[string]any
	// weights are the counts by pair; 0 is one that is being counted.
	weights map[pair]int
	over    bool
}

// A pair is a schema and a part of a value, by their JSON pointers.
type pair struct{ schema, part string }

// bearable reports that a value can be checked against a schema in bounded
// time.
func bearable(root map[string]any, value any) bool {
	s := scale{root: root, weights: make(map[pair]int)}
	return s.weigh("", root, "", value) <= maxTried && !s.over
}

// weigh returns how often schemas are tried for one to be tried on a part.
func (s *scale) weigh(at string, schema any, part string, value any) int {
	object, ok := schema.(map[string]any)
	if !ok || s.over {
		return 1
	}
	key := pair{at, part}
	if weight, counted := s.weights[key]; counted {
		s.over = s.over || weight == 0 // it would be tried again before it ends
		return weight
	}
	if len(s.weights) >= maxPairs {
		s.over = true
		return 1
	}
	s.weights[key] = 0
	total := 1 + s.inPlace(at, object, part, value) + s.below(at, object, part, value)
	if total > maxTried {
		s.over = true
		total = maxTried + 1
	}
	s.weights[key] = total
	return total
}

// inPlace counts what is tried on the same part.
func (s *scale) inPlace(at string, schema map[string]any, part string, value any) int {
	total := 0
	if ref, ok := schema["$ref"].(string); ok {
		target, path, found := s.follow(ref)
		s.over = s.over || !found // a validator may know better where it leads
		total += s.weigh(path, target, part, value)
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		if inner, ok := schema[keyword]; ok {
			total += s.weigh(at+"/"+keyword, inner, part, value)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[keyword].([]any)
		for i, inner := range list {
			total += s.weigh(at+"/"+keyword+"/"+strconv.Itoa(i), inner, part, value)
		}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		inner, _ := schema[keyword].(map[string]any)
		for name, inner := range inner {
			total += s.weigh(at+"/"+keyword+"/"+escape(name), inner, part, value)
		}
	}
	return total
}

// below counts what is tried on the members or elements of the part.
func (s *scale) below(at string, schema map[string]any, part string, value any) int {
	total := 0
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			total += s.member(at, schema, part+"/"+escape(name), name, member)
		}
	case []any:
		for i, element := range value {
			below := part + "/" + strconv.Itoa(i)
			for _, keyword := range []string{"items", "additionalItems", "contains", "unevaluatedItems"} {
				if inner, ok := schema[keyword]; ok {
					total += s.weigh(at+"/"+keyword, inner, below, element)
				}
			}
			for _, keyword := range []string{"prefixItems", "items"} {
				if list, _ := schema[keyword].([]any); i < len(list) {
					total += s.weigh(at+"/"+keyword+"/"+strconv.Itoa(i), list[i], below, element)
				}
			}
		}
	}
	return total
}

// member counts what is tried on one member.
func (s *scale) member(at string, schema map[string]any, below, name string, member any) int {
	total := 0
	properties, _ := schema["properties"].(map[string]any)
	if inner, ok := properties[name]; ok {
		total += s.weigh(at+"/properties/"+escape(name), inner, below, member)
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern, inner := range patterns {
		total += s.weigh(at+"/patternProperties/"+escape(pattern), inner, below, member)
	}
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties", "propertyNames"} {
		if inner, ok := schema[keyword]; ok {
			total += s.weigh(at+"/"+keyword, inner, below, member)
		}
	}
	return total
}

// follow returns what a reference leads to, and its own pointer: two ways to
// write one reference lead to the same.
func (s *scale) follow(ref string) (target any, path string, found bool) {
	decoded, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, "", false
	}
	target = s.root
	var at strings.Builder
	for i, step := range strings.Split(decoded, "/") {
		if i == 0 { // before the first slash
			continue
		}
		step = unescape(step)
		at.WriteString("/" + escape(step))
		switch value := target.(type) {
		case map[string]any:
			target, found = value[step]
		case []any:
			n, err := strconv.Atoi(step)
			if found = err == nil && n >= 0 && n < len(value); found {
				target = value[n]
			}
		default:
			return nil, "", false
		}
		if !found {
			return nil, "", false
		}
	}
	return target, at.String(), true // of "#" too, which has no step
}

// escape encodes a step of a JSON pointer.
func escape(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }
