// Package template fills in the texts of an entry that depend on settings.
//
// It knows no more than placeholders and a few functions, so that what a
// catalog can make of a user's settings can be read in it. It refuses
// functions that it does not know, and a list where one text is wanted.
package template

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
	parts, err := Parse(template)
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 && parts[0].Path != nil {
		value, err := parts[0].evaluate(root)
		switch {
		case err != nil:
			return nil, fmt.Errorf("template %q: %w", template, err)
		case value.list && !value.spread:
			return nil, fmt.Errorf("template %q: %s is a list; add |into, |first or |last", template, parts[0].Name())
		}
		return value.items, nil
	}
	var whole strings.Builder
	for _, p := range parts {
		if p.Path == nil {
			whole.WriteString(p.Literal)
			continue
		}
		value, err := p.evaluate(root)
		switch {
		case err != nil:
			return nil, fmt.Errorf("template %q: %w", template, err)
		case value.list:
			return nil, fmt.Errorf("template %q: %s is a list, which must stand alone; or add |first or |last", template, p.Name())
		case len(value.items) == 1:
			whole.WriteString(value.items[0])
		}
	}
	return []string{whole.String()}, nil
}

// A Part is a piece of a template: a placeholder if it has a Path, else text.
type Part struct {
	Literal string
	// Path leads to the value, such as "config", "url".
	Path      []string
	Functions []Function
}

// A Function changes a value on its way.
type Function struct{ Name, Argument string }

// Name returns the path, dotted.
func (p Part) Name() string { return strings.Join(p.Path, ".") }

// Calls reports whether the placeholder uses one of the functions.
func (p Part) Calls(names ...string) bool {
	return slices.ContainsFunc(p.Functions, func(f Function) bool { return slices.Contains(names, f.Name) })
}

// Parse splits a template into its parts. An empty template has one
// part, the empty text.
func Parse(template string) ([]Part, error) {
	var parts []Part
	rest := template
	for {
		text, after, found := strings.Cut(rest, "{{")
		if text != "" || (!found && len(parts) == 0) {
			parts = append(parts, Part{Literal: text})
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

func parsePlaceholder(inner string) (Part, error) {
	pieces := strings.Split(inner, "|")
	path := strings.Split(strings.TrimSpace(pieces[0]), ".")
	for _, segment := range path {
		if segment == "" || strings.ContainsAny(segment, " \t\r\n{}") {
			return Part{}, fmt.Errorf("%q is not the name of a setting", strings.TrimSpace(pieces[0]))
		}
	}
	p := Part{Path: path}
	for _, piece := range pieces[1:] {
		name, argument, has := strings.Cut(strings.TrimSpace(piece), ":")
		switch name {
		case "volume", "volume-target", "into", "first", "last":
			if has {
				return Part{}, fmt.Errorf("function %q takes no argument", name)
			}
		case "or":
			if !has {
				return Part{}, fmt.Errorf("function %q needs an argument, such as or:value", name)
			}
		case "mount_as":
			if !strings.HasPrefix(argument, "/") {
				return Part{}, fmt.Errorf("function %q needs an absolute path, such as mount_as:/data:ro", name)
			}
		default:
			return Part{}, fmt.Errorf("unknown function %q", name)
		}
		p.Functions = append(p.Functions, Function{name, argument})
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

func (p Part) evaluate(root map[string]any) (value, error) {
	found, err := p.lookUp(root)
	if err != nil {
		return value{}, err
	}
	v, err := valueOf(p.Name(), found)
	if err != nil {
		return value{}, err
	}
	for _, f := range p.Functions {
		v = f.apply(v)
	}
	return v, nil
}

func (p Part) lookUp(root map[string]any) (any, error) {
	var current any = root
	for i, segment := range p.Path {
		if current == nil {
			return nil, nil
		}
		object, ok := current.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", strings.Join(p.Path[:i], "."))
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

func (f Function) apply(v value) value {
	each := func(change func(string) string) value {
		for i, item := range v.items {
			v.items[i] = change(item)
		}
		return v
	}
	switch f.Name {
	case "volume":
		return each(func(p string) string { return p + ":" + p })
	case "mount_as":
		return each(func(p string) string { return p + ":" + f.Argument })
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
			return value{items: []string{f.Argument}}
		}
	}
	return v
}

// String returns the part as it is written.
func (p Part) String() string {
	if p.Path == nil {
		return p.Literal
	}
	var b strings.Builder
	b.WriteString("{{" + p.Name())
	for _, f := range p.Functions {
		b.WriteString("|" + f.Name)
		if f.Name == "or" || f.Name == "mount_as" {
			b.WriteString(":" + f.Argument)
		}
	}
	b.WriteString("}}")
	return b.String()
}

// Join writes parts as one template.
func Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.String())
	}
	return b.String()
}
