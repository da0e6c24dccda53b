package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/spelling"
)

// A misfit is a value, or a field, that cannot be where it stands.
type misfit struct {
	line int
	key  string
	text string
}

func (m misfit) String() string {
	if m.key == "" {
		return m.text
	}
	return m.key + ": " + m.text
}

// misfits returns what in a node does not have the shape of a type: fields that
// the type does not have, and values of another kind. The decoder finds them
// too, and says them in words of Go. What reads itself is not looked into.
func misfits(key string, n *yaml.Node, t reflect.Type) []misfit {
	n = resolved(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if document.IsNull(n) || t == reflect.TypeFor[yaml.Node]() || reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()) {
		return nil
	}
	wrong := func(want string) []misfit {
		return []misfit{{n.Line, key, fmt.Sprintf("is %s, want %s", document.Describe(n), want)}}
	}
	var all []misfit
	switch t.Kind() { //nolint:exhaustive // a configuration has no others
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return wrong("a mapping")
		}
		return fieldMisfits(key, n, t)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return wrong("a mapping")
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = append(all, misfits(key+"."+n.Content[i].Value, n.Content[i+1], t.Elem())...)
		}
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return wrong("a list")
		}
		for i, item := range n.Content {
			all = append(all, misfits(fmt.Sprintf("%s[%d]", key, i), item, t.Elem())...)
		}
	default:
		want := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.String: "text", reflect.Float64: "a number"}[t.Kind()]
		if want == "" {
			want = "a whole number"
		}
		// The decoder would cut 1.5 to 1.
		if n.Kind != yaml.ScalarNode || n.Decode(reflect.New(t).Interface()) != nil || want == "a whole number" && n.ShortTag() != "!!int" {
			return wrong(want)
		}
	}
	return all
}

// fieldMisfits looks at the fields of a mapping.
func fieldMisfits(key string, n *yaml.Node, t reflect.Type) []misfit {
	known := map[string]reflect.Type{}
	open := false
	for field := range t.Fields() {
		switch name, option, _ := strings.Cut(field.Tag.Get("yaml"), ","); {
		case option == "inline":
			open = true
		case name != "" && name != "-":
			known[name] = field.Type
		}
	}
	var all []misfit
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		inner := strings.TrimPrefix(key+"."+name.Value, ".")
		inside, ok := known[name.Value]
		switch {
		case ok:
			all = append(all, misfits(inner, value, inside)...)
		case name.ShortTag() == "!!merge":
			all = append(all, misfits(key, value, t)...)
		case !open:
			all = append(all, misfit{name.Line, inner, "unknown field" + suggested(name.Value, known)})
		}
	}
	return all
}

// suggested says which field was likely meant, or which there are.
func suggested(name string, known map[string]reflect.Type) string {
	var names []string
	for one := range known {
		names = append(names, one)
	}
	slices.Sort(names)
	if meant := spelling.Suggestion(name, names); meant != "" {
		return meant
	}
	return "; known: " + strings.Join(names, ", ")
}
