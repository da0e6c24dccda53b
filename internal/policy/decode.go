package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decode reads YAML without unknown fields, and returns its top. The error
// joins a [*ConfigError] for each mistake; what can be read is read all the
// same.
func decode(path string, data []byte, into any) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		var several *yaml.TypeError
		if !errors.As(err, &several) {
			return nil, yamlMistake(path, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		var mistakes []error
		root := top(data)
		for _, text := range several.Errors {
			mistakes = append(mistakes, yamlMistake(path, withKey(root, text)))
		}
		return root, errors.Join(mistakes...)
	}
	return top(data), nil
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

var unknownField = regexp.MustCompile(`^field (.*) not found in type [\w.]+$`)

// yamlMistake is one of the decoder's sentences, with its line at the place.
func yamlMistake(path, text string) *ConfigError {
	text = strings.ReplaceAll(text, "\n", `\n`) // a mistake is a line, and the value in it may be several
	mistake := &ConfigError{Place: path, Problem: text}
	if head, rest, ok := strings.Cut(text, ": "); ok {
		if line, err := strconv.Atoi(strings.TrimPrefix(head, "line ")); err == nil {
			mistake.Place, mistake.Problem = fmt.Sprintf("%s:%d", path, line), rest
		}
	}
	if found := unknownField.FindStringSubmatch(mistake.Problem); found != nil {
		mistake.Problem = found[1] + ": unknown field; known fields are in: dockgate config schema"
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

var positioned = regexp.MustCompile(`(?s)^line (\d+):(\d+): (.*)$`)

// withKey gives a sentence of [typeError] the key of its value. Others are
// returned as they are.
func withKey(root *yaml.Node, text string) string {
	found := positioned.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	line, column, problem := found[1], found[2], found[3]
	if key := keyAt(root, "", line+":"+column); key != "" {
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
