package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decode reads YAML without unknown fields, and returns its top. The error
// joins a [*ConfigError] for each mistake, which says where it is, what is there
// and what is wanted; what can be read is read all the same.
func decode(path string, data []byte, into any) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	failure := decoder.Decode(into)
	var several *yaml.TypeError
	switch {
	case errors.Is(failure, io.EOF):
		return nil, nil
	case failure != nil && !errors.As(failure, &several):
		return nil, noYAML(path, failure)
	}
	root := top(data)
	if root == nil {
		return nil, nil
	}
	var mistakes []error
	for _, m := range misfits("", root, reflect.TypeOf(into)) {
		mistakes = append(mistakes, &ConfigError{Place: fmt.Sprintf("%s:%d", path, m.line), Problem: m.String()})
	}
	if several == nil {
		return root, errors.Join(mistakes...)
	}
	shapeless := len(mistakes) == 0
	for _, text := range several.Errors {
		if shapeless || !ofShape.MatchString(text) {
			mistakes = append(mistakes, yamlMistake(path, withKey(root, text)))
		}
	}
	return root, errors.Join(mistakes...)
}

// ofShape are the decoder's own words for what [misfits] finds.
var ofShape = regexp.MustCompile(`(?s)^line \d+: (cannot unmarshal .* into |field .* not found in type )`)

// noYAML is what the decoder says of a text that it cannot read. It names no
// line if that is the first.
func noYAML(path string, err error) *ConfigError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	mistake := yamlMistake(path, text)
	if mistake.Place == path {
		mistake.Place += ":1"
	}
	if strings.Contains(text, "cannot start any token") {
		mistake.Problem += "; a tab cannot indent, and @ and ` need quotes"
	}
	mistake.Problem = "is not YAML: " + mistake.Problem
	return mistake
}

// top returns the node of a document whose syntax was read already; nil if it
// is empty.
func top(data []byte) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	return resolved(document.Content[0])
}

// yamlMistake is one of the decoder's sentences, with its line at the place.
func yamlMistake(path, text string) *ConfigError {
	text = strings.ReplaceAll(text, "\n", `\n`) // a mistake is a line, and the value in it may be several
	mistake := &ConfigError{Place: path, Problem: text}
	if head, rest, ok := strings.Cut(text, ": "); ok {
		if line, err := strconv.Atoi(strings.TrimPrefix(head, "line ")); err == nil {
			mistake.Place, mistake.Problem = fmt.Sprintf("%s:%d", path, line), rest
		}
	}
	return mistake
}

// A mistake is a value that cannot be, by its key.
type mistake struct{ key, text string }

// typeError is how a value's own reader says what is wrong with it, so that
// the decoder goes on. A reader sees the value alone, so it says the column too,
// by which [withKey] finds the key.
func typeError(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d:%d: ", n.Line, n.Column) + fmt.Sprintf(format, args...)}}
}

// within is what a value's own reader says of a field in it, on a line.
func within(n *yaml.Node, line int, field, text string) string {
	if field != "" {
		text = "." + field + ": " + text
	}
	return fmt.Sprintf("line %d:%d@%d: %s", n.Line, n.Column, line, text)
}

var positioned = regexp.MustCompile(`(?s)^line (\d+):(\d+)(?:@(\d+))?: (.*)$`)

// withKey gives a sentence of [typeError] or [within] the key of its value.
// Others are returned as they are.
func withKey(root *yaml.Node, text string) string {
	found := positioned.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	line, problem := cmp.Or(found[3], found[1]), found[4]
	if key := keyAt(root, "", found[1]+":"+found[2]); strings.HasPrefix(problem, ".") {
		problem = strings.TrimPrefix(key+problem, ".")
	} else if key != "" {
		problem = key + ": " + problem
	}
	return "line " + line + ": " + problem
}

// keyAt returns the path of the value at a position, "" if there is none. A
// value that others refer to has the path of the place where it is written.
func keyAt(n *yaml.Node, path, position string) string {
	if n == nil {
		return ""
	}
	if path != "" && fmt.Sprintf("%d:%d", n.Line, n.Column) == position && n.Kind != yaml.AliasNode {
		return path
	}
	for i, value := range n.Content {
		inner := fmt.Sprintf("%s[%d]", path, i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			inner = strings.TrimPrefix(path+"."+n.Content[i-1].Value, ".")
		}
		if key := keyAt(value, inner, position); key != "" {
			return key
		}
	}
	return ""
}
