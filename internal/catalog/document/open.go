package document

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// Open returns the root node of the only document of a file; nil if there is
// none, which is then reported: empty says what the file must hold. What looks
// like JSON is read as JSON, with the comments and trailing commas that editors
// allow; the rest is YAML.
func (r *Reader) Open(data []byte, empty string) *yaml.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if r.isJSON(data) {
		root, ok := r.openJSON(data)
		if ok {
			return root
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		r.Problems = append(r.Problems, Problem{File: r.file, Text: "is empty; " + empty})
		return nil
	} else if err != nil {
		r.Problems = append(r.Problems, r.syntax(err))
		return nil
	}
	if err := decoder.Decode(&more); err == nil {
		r.Report(&more, "", "is a second document; a catalog has one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.Problems = append(r.Problems, r.syntax(err))
		return nil
	}
	return Target(root.Content[0])
}

var yamlLine = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)

// syntax turns an error of the YAML library, which has the line in its text
// only, into a problem.
func (r *Reader) syntax(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits only; one that is too long is no line
		return Problem{File: r.file, Line: line, Text: "is not YAML: " + m[2]}
	}
	return Problem{File: r.file, Text: "is not YAML: " + text}
}

// named reports that the file's name says that it is JSON.
func (r *Reader) named() bool {
	return slices.Contains([]string{".json", ".jsonc", ".json5"}, strings.ToLower(filepath.Ext(r.file)))
}

func (r *Reader) isJSON(data []byte) bool {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return false
	}
	return r.named() || bytes.IndexByte([]byte("{[/"), trimmed[0]) >= 0
}

// openJSON returns false if the file may be YAML all the same: a mapping in
// braces is both.
func (r *Reader) openJSON(data []byte) (*yaml.Node, bool) {
	value, err := hujson.Parse(data)
	if err != nil {
		if !r.named() {
			return nil, false
		}
		r.Problems = append(r.Problems, jsonProblem(r.file, err))
		return nil, true
	}
	c := jsonConverter{data: data}
	return c.convert(value, 0), true
}

var jsonLine = regexp.MustCompile(`(?s)^hujson: line (\d+), column \d+: (.*)$`)

func jsonProblem(file string, err error) Problem {
	if m := jsonLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits only; one that is too long is no line
		return Problem{File: file, Line: line, Text: "is not JSON: " + m[2]}
	}
	return Problem{File: file, Text: "is not JSON: " + strings.TrimPrefix(err.Error(), "hujson: ")}
}

// A jsonConverter makes the nodes of JSON values. The values come in the order
// of the file, so counting lines goes once over it.
type jsonConverter struct {
	data   []byte
	offset int
	line   int
}

func (c *jsonConverter) lineAt(offset int) int {
	c.line += bytes.Count(c.data[c.offset:offset], []byte("\n"))
	c.offset = offset
	return c.line + 1
}

// convert never nests deeper than an object may: what lies below is cut off,
// and reported when it is read.
func (c *jsonConverter) convert(value hujson.Value, depth int) *yaml.Node {
	n := &yaml.Node{Line: c.lineAt(value.StartOffset)}
	switch v := value.Value.(type) {
	case *hujson.Object:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, m := range v.Members {
			if depth <= 2*deepest {
				n.Content = append(n.Content, c.convert(m.Name, depth+1), c.convert(m.Value, depth+1))
			}
		}
	case *hujson.Array:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, element := range v.Elements {
			if depth <= 2*deepest {
				n.Content = append(n.Content, c.convert(element, depth+1))
			}
		}
	case hujson.Literal:
		n.Kind = yaml.ScalarNode
		switch v.Kind() {
		case '"':
			n.Tag, n.Value, n.Style = "!!str", v.String(), yaml.DoubleQuotedStyle
		case 'n':
			n.Tag, n.Value = "!!null", "null"
		case 't', 'f':
			n.Tag, n.Value = "!!bool", string(v)
		default:
			n.Tag, n.Value = "!!float", string(v)
			if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
				n.Tag = "!!int"
			}
		}
	}
	return n
}
