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
		for _, text := range several.Errors {
			mistakes = append(mistakes, yamlMistake(path, text))
		}
		return top(data), errors.Join(mistakes...)
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
// the decoder goes on.
func typeError(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: ", n.Line) + fmt.Sprintf(format, args...)}}
}
