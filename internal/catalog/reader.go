package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"
)

// A reader walks the YAML nodes of one file, or of one entry, and gathers
// what is wrong with them. It remembers where each field stands, so that what
// is found wrong later has a line too.
type reader struct {
	file     string
	problems Problems
	lines    map[string]int
	// bad holds the fields that were reported.
	bad map[string]bool
	// written counts the JSON made of the whole file, see jsonWriter.
	written *int
}

func newReader(file string) *reader {
	return &reader{file: file, lines: make(map[string]int), bad: make(map[string]bool), written: new(int)}
}

// inner returns a reader for an entry that stands at a line.
func (r *reader) inner(line int) *reader {
	inner := newReader(r.file)
	inner.lines[""] = line
	inner.written = r.written
	return inner
}

// A read takes the node of a field.
type read func(field string, n *yaml.Node)

func (r *reader) report(n *yaml.Node, field, format string, args ...any) {
	r.bad[field] = true
	r.problems = append(r.problems, Problem{File: r.file, Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// line returns the line of a field, or of the nearest one around it; 0 if
// there is none.
func (r *reader) line(field string) int {
	for {
		if line, ok := r.lines[field]; ok || field == "" {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// target follows an alias to what it stands for.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// describe says what a node is, for "is …, want …".
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "empty"
	}
	const longest = 60
	if len(n.Value) > longest {
		return strconv.Quote(strings.ToValidUTF8(n.Value[:longest], "")) + "…"
	}
	return strconv.Quote(n.Value)
}

// each reads a mapping with free keys, in their order.
func (r *reader) each(field string, n *yaml.Node, entry func(key, value *yaml.Node)) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		r.report(n, field, "is %s, want a mapping", describe(n))
		return
	}
	first := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := target(n.Content[i]), target(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.report(key, field, "has a key that is %s, want a name", describe(key))
			continue
		}
		path := join(field, key.Value)
		if line, ok := first[key.Value]; ok {
			r.report(key, path, "is here again; it was on line %d already", line)
			continue
		}
		first[key.Value] = key.Line
		r.lines[path] = key.Line
		entry(key, value)
	}
}

// mapping reads a mapping whose keys are known.
func (r *reader) mapping(known map[string]read) read {
	return func(field string, n *yaml.Node) {
		r.each(field, n, func(key, value *yaml.Node) {
			path := join(field, key.Value)
			if read, ok := known[key.Value]; ok {
				read(path, value)
				return
			}
			r.report(key, path, "unknown field%s", suggestion(key.Value, slices.Collect(maps.Keys(known))))
		})
	}
}

// list reads a sequence.
func (r *reader) list(element read) read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.report(n, field, "is %s, want a list", describe(n))
			return
		}
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", field, i)
			r.lines[path] = item.Line
			element(path, target(item))
		}
	}
}

// text reads a scalar as it is written, so that an unquoted 8080 or no is the
// text it looks like.
func (r *reader) text(to *string) read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || isNull(n) {
			r.report(n, field, "is %s, want text", describe(n))
			return
		}
		*to = n.Value
	}
}

func (r *reader) texts(to *[]string) read {
	return r.list(func(field string, n *yaml.Node) {
		var text string
		r.text(&text)(field, n)
		*to = append(*to, text)
	})
}

func (r *reader) boolean(to *bool) read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(to) != nil {
			r.report(n, field, "is %s, want true or false", describe(n))
		}
	}
}

// Zero is refused wherever a limit is read: elsewhere it means "no limit",
// and here it would silently mean the default.

func (r *reader) integer(to *int64) read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(to) != nil || *to <= 0 {
			r.report(n, field, "is %s, want a whole number above 0", describe(n))
		}
	}
}

func (r *reader) number(to *float64) read {
	return func(field string, n *yaml.Node) {
		tagged := n.ShortTag() == "!!int" || n.ShortTag() == "!!float"
		if n.Kind != yaml.ScalarNode || !tagged || n.Decode(to) != nil || !(*to > 0) || math.IsInf(*to, 0) {
			r.report(n, field, "is %s, want a number above 0", describe(n))
		}
	}
}

// size reads a size as the Docker CLI reads --memory: 500MB, 500MiB and 500m
// are all 500 times 1024 times 1024 bytes.
func (r *reader) size(to *int64) read {
	return func(field string, n *yaml.Node) {
		bytes, err := units.RAMInBytes(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || bytes <= 0 {
			r.report(n, field, "is %s, want a size above 0, such as 500MB or 2GB", describe(n))
			return
		}
		*to = bytes
	}
}

func (r *reader) duration(to *time.Duration) read {
	return func(field string, n *yaml.Node) {
		d, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || d <= 0 {
			r.report(n, field, "is %s, want a duration above 0, such as 30s or 5m", describe(n))
			return
		}
		*to = d
	}
}

// object reads free-form YAML as a JSON object whose members keep their order.
func (r *reader) object(to *json.RawMessage) read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			r.report(n, field, "is %s, want a mapping", describe(n))
			return
		}
		before := len(r.problems)
		w := jsonWriter{reader: r}
		w.write(field, n, 0)
		*r.written += w.out.Len()
		if len(r.problems) == before {
			*to = w.out.Bytes()
		}
	}
}

// A jsonWriter writes nodes as JSON. Aliases can make a small file stand for
// an endless one, so depth and size are bounded, the size for the whole file.
type jsonWriter struct {
	reader *reader
	out    bytes.Buffer
	full   bool
}

const (
	deepest = 64
	largest = 4 << 20
)

func (w *jsonWriter) write(field string, n *yaml.Node, depth int) {
	n = target(n)
	if w.full {
		return
	}
	if depth > deepest || w.out.Len()+*w.reader.written > largest {
		w.full = true
		w.reader.report(n, field, "is nested too deeply or too large")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.out.WriteByte('{')
		separator := ""
		w.reader.each(field, n, func(key, value *yaml.Node) {
			w.out.WriteString(separator)
			separator = ","
			w.value(key, field, key.Value)
			w.out.WriteByte(':')
			w.write(join(field, key.Value), value, depth+1)
		})
		w.out.WriteByte('}')
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.write(fmt.Sprintf("%s[%d]", field, i), item, depth+1)
		}
		w.out.WriteByte(']')
	default:
		w.scalar(field, n)
	}
}

func (w *jsonWriter) scalar(field string, n *yaml.Node) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		w.value(n, field, n.Value)
	case "!!null", "!!bool", "!!int", "!!float":
		var decoded any
		if err := n.Decode(&decoded); err != nil {
			w.reader.report(n, field, "is %s, which is not what its tag %s says", describe(n), n.ShortTag())
			return
		}
		w.value(n, field, decoded)
	default:
		w.reader.report(n, field, "has the tag %s, which JSON has no word for", n.ShortTag())
	}
}

func (w *jsonWriter) value(n *yaml.Node, field string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		w.reader.report(n, field, "is %s, which JSON has no word for", describe(n))
		return
	}
	w.out.Write(encoded)
}
