package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Expand fills in a template: a text with placeholders "{{path|function|…}}".
// The path leads through root by dots; native entries have their settings
// below "config". Functions change the value on its way, each element of a
// list by itself:
//
//	volume          p becomes p:p
//	volume-target   p stays p
//	mount_as:/t:ro  p becomes p:/t:ro (":ro" may be missing)
//	first, last     one element of a list
//	into            a list becomes several results
//	or:x            x, if there is no value or an empty one
//
// A template that is exactly one placeholder yields no result if the value is
// missing, and several if it is a list with "into". Any other template yields
// one result, in which a missing value is nothing. A list without "into",
// "first" or "last" is an error, and so is an object.
func Expand(template string, root map[string]any) ([]string, error) {
	parts, err := parseTemplate(template)
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 && parts[0].path != nil {
		value, err := parts[0].evaluate(root)
		switch {
		case err != nil:
			return nil, fmt.Errorf("template %q: %w", template, err)
		case value.list && !value.spread:
			return nil, fmt.Errorf("template %q: %s is a list; add |into, |first or |last", template, parts[0].name())
		}
		return value.items, nil
	}
	var whole strings.Builder
	for _, p := range parts {
		if p.path == nil {
			whole.WriteString(p.literal)
			continue
		}
		value, err := p.evaluate(root)
		switch {
		case err != nil:
			return nil, fmt.Errorf("template %q: %w", template, err)
		case value.list:
			return nil, fmt.Errorf("template %q: %s is a list, which must stand alone; or add |first or |last", template, p.name())
		case len(value.items) == 1:
			whole.WriteString(value.items[0])
		}
	}
	return []string{whole.String()}, nil
}

// A part is a piece of a template: a placeholder if it has a path, else text.
type part struct {
	literal   string
	path      []string
	functions []function
}

type function struct{ name, argument string }

func (p part) name() string { return strings.Join(p.path, ".") }

func (p part) calls(names ...string) bool {
	return slices.ContainsFunc(p.functions, func(f function) bool { return slices.Contains(names, f.name) })
}

// parseTemplate splits a template into its parts. An empty template has one
// part, the empty text.
func parseTemplate(template string) ([]part, error) {
	var parts []part
	rest := template
	for {
		text, after, found := strings.Cut(rest, "{{")
		if text != "" || (!found && len(parts) == 0) {
			parts = append(parts, part{literal: text})
		}
		if !found {
			return parts, nil
		}
		inner, tail, closed := strings.Cut(after, "}}")
		if !closed {
			return nil, fmt.Errorf("template %q: {{ without }}", template)
		}
		placeholder, err := parsePlaceholder(inner)
		if err != nil {
			return nil, fmt.Errorf("template %q: %w", template, err)
		}
		parts = append(parts, placeholder)
		rest = tail
	}
}

func parsePlaceholder(inner string) (part, error) {
	pieces := strings.Split(inner, "|")
	path := strings.Split(strings.TrimSpace(pieces[0]), ".")
	for _, segment := range path {
		if segment == "" || strings.ContainsAny(segment, " \t\r\n{}") {
			return part{}, fmt.Errorf("%q is not the name of a setting", strings.TrimSpace(pieces[0]))
		}
	}
	p := part{path: path}
	for _, piece := range pieces[1:] {
		name, argument, has := strings.Cut(strings.TrimSpace(piece), ":")
		switch name {
		case "volume", "volume-target", "into", "first", "last":
			if has {
				return part{}, fmt.Errorf("function %q takes no argument", name)
			}
		case "or":
			if !has {
				return part{}, fmt.Errorf("function %q needs an argument, such as or:value", name)
			}
		case "mount_as":
			if !strings.HasPrefix(argument, "/") {
				return part{}, fmt.Errorf("function %q needs an absolute path, such as mount_as:/data:ro", name)
			}
		default:
			return part{}, fmt.Errorf("unknown function %q", name)
		}
		p.functions = append(p.functions, function{name, argument})
	}
	return p, nil
}

// A value is what a placeholder stands for: no item if it is missing, one for
// a scalar, any number for a list.
type value struct {
	items []string
	list  bool
	// spread reports that the list becomes several results.
	spread bool
}

func (v value) empty() bool {
	return len(v.items) == 0 || (!v.list && v.items[0] == "")
}

func (p part) evaluate(root map[string]any) (value, error) {
	found, err := p.lookUp(root)
	if err != nil {
		return value{}, err
	}
	v, err := valueOf(p.name(), found)
	if err != nil {
		return value{}, err
	}
	for _, f := range p.functions {
		v = f.apply(v)
	}
	return v, nil
}

func (p part) lookUp(root map[string]any) (any, error) {
	var current any = root
	for i, segment := range p.path {
		if current == nil {
			return nil, nil
		}
		object, ok := current.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", strings.Join(p.path[:i], "."))
		}
		current = object[segment]
	}
	return current, nil
}

func valueOf(name string, found any) (value, error) {
	switch list := found.(type) {
	case nil:
		return value{}, nil
	case []string:
		return value{items: slices.Clone(list), list: true}, nil
	case []any:
		v := value{list: true}
		for _, element := range list {
			text, err := scalar(name, element)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, text)
		}
		return v, nil
	}
	text, err := scalar(name, found)
	return value{items: []string{text}}, err
}

// scalar writes a number as JSON would, but never with an exponent: "1e+06"
// is not what anybody set.
func scalar(name string, found any) (string, error) {
	switch x := found.(type) {
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int:
		return strconv.Itoa(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case uint64:
		return strconv.FormatUint(x, 10), nil
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), nil
	case json.Number:
		return x.String(), nil
	}
	return "", fmt.Errorf("%s is neither text, a number, a boolean nor a list of these", name)
}

func (f function) apply(v value) value {
	each := func(change func(string) string) value {
		for i, item := range v.items {
			v.items[i] = change(item)
		}
		return v
	}
	switch f.name {
	case "volume":
		return each(func(p string) string { return p + ":" + p })
	case "mount_as":
		return each(func(p string) string { return p + ":" + f.argument })
	case "into":
		v.spread = true
	case "first":
		if v.list {
			return value{items: v.items[:min(1, len(v.items))]}
		}
	case "last":
		if v.list {
			return value{items: v.items[max(0, len(v.items)-1):]}
		}
	case "or":
		if v.empty() {
			return value{items: []string{f.argument}}
		}
	}
	return v
}
