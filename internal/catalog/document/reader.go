// Package document reads YAML and JSON with the place of everything in it, so
// that every mistake of a file is Reported at once, as "file:line: field:
// problem".
//
// It refuses keys that stand twice, values of another kind than was asked for,
// and documents that aliases blow up.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/spelling"
)

// A Reader walks the YAML nodes of one file, or of one entry, and gathers
// what is wrong with them. It remembers where each field stands, so that what
// is found wrong later has a line too.
type Reader struct {
	file string
	// Problems are what is wrong, in the order of finding.
	Problems Problems
	lines    map[string]int
	// bad holds the fields that were reported.
	bad map[string]bool
	// written counts the JSON made of the whole file, see jsonWriter.
	written *int
}

// New returns a reader of a file.
func New(file string) *Reader {
	return &Reader{file: file, lines: make(map[string]int), bad: make(map[string]bool), written: new(int)}
}

// Inner returns a Reader for an entry that stands at a line.
func (r *Reader) Inner(line int) *Reader {
	inner := New(r.file)
	inner.lines[""] = line
	inner.written = r.written
	return inner
}

// A Read takes the node of a field.
type Read func(field string, n *yaml.Node)

// Report adds a problem with the node of a field.
func (r *Reader) Report(n *yaml.Node, field, format string, args ...any) {
	r.bad[field] = true
	r.Problems = append(r.Problems, Problem{File: r.file, Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// Line returns the line of a field, or of the nearest one around it; 0 if
// there is none.
func (r *Reader) Line(field string) int {
	for {
		if line, ok := r.lines[field]; ok || field == "" {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// ReportAt adds a problem with a field that was found later; its line is that
// of the field, or of the nearest one around it.
func (r *Reader) ReportAt(field, format string, args ...any) {
	r.Report(&yaml.Node{Line: r.Line(field)}, field, format, args...)
}

// Bad reports whether a problem of the field, or of one around or inside it, is
// known already.
func (r *Reader) Bad(field string) bool { return Reported(r.bad, field) }

// Fields yields every field that was reported.
func (r *Reader) Fields() iter.Seq[string] { return maps.Keys(r.bad) }

// BadAsWhole reports that the entry is not even a mapping.
func (r *Reader) BadAsWhole() bool { return r.bad[""] }

// Adopt takes over what a reader for an inner entry has found.
func (r *Reader) Adopt(field string, inner *Reader) {
	for _, problem := range inner.Problems {
		problem.Field = Join(field, problem.Field)
		r.Problems = append(r.Problems, problem)
	}
}

// Entries reads a mapping of named entries, each with a reader of its own; an
// empty one holds none.
func (r *Reader) Entries(entry func(r *Reader, name string, line int, n *yaml.Node)) Read {
	return func(field string, n *yaml.Node) {
		if IsNull(n) {
			return
		}
		r.Each(field, n, func(key, value *yaml.Node) {
			inner := r.Inner(key.Line)
			entry(inner, key.Value, key.Line, value)
			r.Adopt(Join(field, key.Value), inner)
		})
	}
}

// Err returns everything that is wrong, in the order of the lines, as
// [Problems]; nil if nothing is.
func (r *Reader) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	r.Problems.Sort()
	return r.Problems
}

// Target follows an alias to what it stands for.
func Target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether a node says that there is nothing.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Describe says what a node is, for "is …, want …".
func Describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case IsNull(n):
		return "empty"
	}
	const longest = 60
	if len(n.Value) > longest {
		return strconv.Quote(strings.ToValidUTF8(n.Value[:longest], "")) + "…"
	}
	return strconv.Quote(n.Value)
}

// Each reads a mapping with free keys, in their order.
func (r *Reader) Each(field string, n *yaml.Node, entry func(key, value *yaml.Node)) {
	n = Target(n)
	if n.Kind != yaml.MappingNode {
		r.Report(n, field, "is %s, want a mapping", Describe(n))
		return
	}
	first := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Target(n.Content[i]), Target(n.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			r.Report(key, field, "has a key that is %s, want a name", Describe(key))
			continue
		}
		path := Join(field, key.Value)
		if line, ok := first[key.Value]; ok {
			r.Report(key, path, "is here again; it was on line %d already", line)
			continue
		}
		first[key.Value] = key.Line
		r.lines[path] = key.Line
		entry(key, value)
	}
}

// Mapping reads a mapping whose keys are known.
func (r *Reader) Mapping(known map[string]Read) Read {
	return func(field string, n *yaml.Node) {
		r.Each(field, n, func(key, value *yaml.Node) {
			path := Join(field, key.Value)
			if read, ok := known[key.Value]; ok {
				read(path, value)
				return
			}
			r.Report(key, path, "unknown field%s", spelling.Suggestion(key.Value, slices.Collect(maps.Keys(known))))
		})
	}
}

// Loose reads a mapping of a format whose own rule is that unknown keys are
// ignored.
func (r *Reader) Loose(known map[string]Read) Read {
	return func(field string, n *yaml.Node) {
		r.Each(field, n, func(key, value *yaml.Node) {
			if read, ok := known[key.Value]; ok {
				read(Join(field, key.Value), value)
			}
		})
	}
}

// Optional reads a field that may be empty, which is the same as missing.
func (r *Reader) Optional(read Read) Read {
	return func(field string, n *yaml.Node) {
		if !IsNull(n) {
			read(field, n)
		}
	}
}

// Ignore reads nothing.
func Ignore(string, *yaml.Node) {}

// List reads a sequence.
func (r *Reader) List(element Read) Read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.Report(n, field, "is %s, want a list", Describe(n))
			return
		}
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", field, i)
			r.lines[path] = item.Line
			element(path, Target(item))
		}
	}
}

// Text reads a scalar as it is written, so that an unquoted 8080 or no is the
// Text it looks like.
func (r *Reader) Text(to *string) Read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || IsNull(n) {
			r.Report(n, field, "is %s, want text", Describe(n))
			return
		}
		*to = n.Value
	}
}

// Texts reads a list of texts.
func (r *Reader) Texts(to *[]string) Read {
	return r.List(func(field string, n *yaml.Node) {
		var text string
		r.Text(&text)(field, n)
		*to = append(*to, text)
	})
}

// Boolean reads true or false.
func (r *Reader) Boolean(to *bool) Read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(to) != nil {
			r.Report(n, field, "is %s, want true or false", Describe(n))
		}
	}
}

// Zero is refused wherever a limit is read: elsewhere it means "no limit",
// and here it would silently mean the default.

// Integer reads a whole number above 0.
func (r *Reader) Integer(to *int64) Read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(to) != nil || *to <= 0 {
			r.Report(n, field, "is %s, want a whole number above 0", Describe(n))
		}
	}
}

// Number reads a number above 0.
func (r *Reader) Number(to *float64) Read {
	return func(field string, n *yaml.Node) {
		tagged := n.ShortTag() == "!!int" || n.ShortTag() == "!!float"
		if n.Kind != yaml.ScalarNode || !tagged || n.Decode(to) != nil || !(*to > 0) || math.IsInf(*to, 0) {
			r.Report(n, field, "is %s, want a number above 0", Describe(n))
		}
	}
}

// Size reads a size as the Docker CLI reads --memory: 500MB, 500MiB and 500m
// are all 500 times 1024 times 1024 bytes.
func (r *Reader) Size(to *int64) Read {
	return func(field string, n *yaml.Node) {
		bytes, err := units.RAMInBytes(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || bytes <= 0 {
			r.Report(n, field, "is %s, want a size above 0, such as 500MB or 2GB", Describe(n))
			return
		}
		*to = bytes
	}
}

// Duration reads a duration above 0.
func (r *Reader) Duration(to *time.Duration) Read {
	return func(field string, n *yaml.Node) {
		d, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || d <= 0 {
			r.Report(n, field, "is %s, want a duration above 0, such as 30s or 5m", Describe(n))
			return
		}
		*to = d
	}
}

// Object reads free-form YAML as a JSON object whose members keep their order.
func (r *Reader) Object(to *json.RawMessage) Read {
	return func(field string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			r.Report(n, field, "is %s, want a mapping", Describe(n))
			return
		}
		before := len(r.Problems)
		w := jsonWriter{reader: r}
		w.write(field, n, 0)
		*r.written += w.out.Len()
		if len(r.Problems) == before {
			*to = w.out.Bytes()
		}
	}
}

// A jsonWriter writes nodes as JSON. Aliases can make a small file stand for
// an endless one, so depth and size are bounded, the size for the whole file.
type jsonWriter struct {
	reader *Reader
	out    bytes.Buffer
	full   bool
}

const (
	deepest = 64
	largest = 4 << 20
)

func (w *jsonWriter) write(field string, n *yaml.Node, depth int) {
	n = Target(n)
	if w.full {
		return
	}
	if depth > deepest || w.out.Len()+*w.reader.written > largest {
		w.full = true
		w.reader.Report(n, field, "is nested too deeply or too large")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.out.WriteByte('{')
		separator := ""
		w.reader.Each(field, n, func(key, value *yaml.Node) {
			w.out.WriteString(separator)
			separator = ","
			w.value(key, field, key.Value)
			w.out.WriteByte(':')
			w.write(Join(field, key.Value), value, depth+1)
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
			w.reader.Report(n, field, "is %s, which is not what its tag %s says", Describe(n), n.ShortTag())
			return
		}
		w.value(n, field, decoded)
	default:
		w.reader.Report(n, field, "has the tag %s, which JSON has no word for", n.ShortTag())
	}
}

func (w *jsonWriter) value(n *yaml.Node, field string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		w.reader.Report(n, field, "is %s, which JSON has no word for", Describe(n))
		return
	}
	w.out.Write(encoded)
}

// Member returns the value of a key of a mapping, or nil.
func Member(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if Target(n.Content[i]).Value == name {
			return Target(n.Content[i+1])
		}
	}
	return nil
}

// Reported tells whether a problem of the field, or of one around or inside
// it, is known already.
func Reported(known map[string]bool, field string) bool {
	for bad := range known {
		if bad == field || field != "" && (inside(bad, field) || inside(field, bad)) {
			return true
		}
	}
	return false
}

func inside(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && outer != "" && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

// Join puts a name behind the path that leads to it; either may be empty.
func Join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
