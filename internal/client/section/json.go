package section

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonText is JSON, with comments and trailing commas where the client reads
// them.
type jsonText struct{ comments bool }

func (j jsonText) parse(text []byte) (hujson.Value, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrder))
	if isBlank(text) {
		text = []byte("{}")
	}
	value, err := hujson.Parse(text)
	if err != nil {
		return value, jsonProblem(err)
	}
	if !j.comments && !value.IsStandard() {
		return value, j.whereNot(text)
	}
	if value.Value.Kind() != '{' {
		return value, &Problem{Line: lineOf(text, value.StartOffset), Text: "want an object"}
	}
	return value, nil
}

// jsonProblem takes the line out of a parser's error.
func jsonProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	found := regexp.MustCompile(`^line (\d+), column (\d+): (.*)`).FindStringSubmatch(text)
	if found == nil {
		return &Problem{Text: text}
	}
	line, _ := strconv.Atoi(found[1]) //nolint:errcheck // they are digits
	return &Problem{Line: line, Text: "column " + found[2] + ": " + found[3]}
}

// whereNot says where a text is more than JSON.
func (jsonText) whereNot(text []byte) error {
	var any any
	err := json.Unmarshal(text, &any)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return &Problem{Text: "is not JSON"}
	}
	at := int(min(max(syntax.Offset-1, 0), int64(len(text))))
	return &Problem{Line: lineOf(text, at), Text: "the client reads neither comments nor trailing commas: " + syntax.Error()}
}

func (j jsonText) Decode(text []byte) (map[string]any, error) {
	value, err := j.parse(text)
	if err != nil {
		return nil, err
	}
	standard := value.Clone()
	standard.Standardize()
	decoder := json.NewDecoder(bytes.NewReader(standard.Pack()))
	decoder.UseNumber()
	whole := make(map[string]any)
	if err := decoder.Decode(&whole); err != nil {
		return nil, &Problem{Text: err.Error()}
	}
	return whole, nil
}

// member finds a member of an object; its index is -1 if there is none.
func member(text []byte, object *hujson.Object, name string) (int, error) {
	at := -1
	for i, m := range object.Members {
		if literal, ok := m.Name.Value.(hujson.Literal); !ok || literal.String() != name {
			continue
		}
		if at >= 0 {
			return 0, &Problem{Line: lineOf(text, m.Name.StartOffset), Text: fmt.Sprintf("%q is there twice", name)}
		}
		at = i
	}
	return at, nil
}

// section returns the object of the servers, nil if there is none.
func (j jsonText) section(text []byte, value *hujson.Value, name string) (*hujson.Value, error) {
	root := value.Value.(*hujson.Object) //nolint:errcheck,forcetypeassert // parse has looked
	at, err := member(text, root, name)
	if err != nil || at < 0 {
		return nil, err
	}
	return &root.Members[at].Value, nil
}

func (j jsonText) Put(text []byte, section, name string, fields []Field) ([]byte, error) {
	return j.insert(text, section, name, func(w jsonWriter, indent string) string { return w.fields(indent, fields) })
}

func (j jsonText) PutRaw(text []byte, section, name, raw string) ([]byte, error) {
	return j.insert(text, section, name, func(jsonWriter, string) string { return raw })
}

// insert puts an entry, which is made for the indentation of its line, into a
// section, in place of one that is there.
func (j jsonText) insert(text []byte, section, name string, entry func(w jsonWriter, indent string) string) ([]byte, error) {
	return withoutMark(text, func(text []byte) ([]byte, error) {
		if isBlank(text) {
			text = []byte("{}\n")
		}
		value, err := j.parse(text)
		if err != nil {
			return nil, err
		}
		w := jsonWriter{text: text, newline: newline(text), unit: unitOf(text, &value)}
		servers, err := j.section(text, &value, section)
		if err != nil {
			return nil, err
		}
		alone := func(w jsonWriter, indent string) string {
			return w.object(indent, []string{Show(name) + ": " + entry(w, indent+w.unit)})
		}
		if servers == nil {
			return w.add(&value, section, alone), nil
		}
		object, ok := servers.Value.(*hujson.Object)
		if !ok { // null, of which decode has made nothing
			return splice(text, servers.StartOffset, servers.EndOffset, alone(w, indentOf(text, servers.StartOffset))), nil
		}
		at, err := member(text, object, name)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			return w.add(servers, name, entry), nil
		}
		old := object.Members[at].Value
		if !w.lines(servers) {
			w.unit = ""
		}
		return splice(text, old.StartOffset, old.EndOffset, entry(w, indentOf(text, old.StartOffset))), nil
	})
}

// unitOf is how deep a text indents.
func unitOf(text []byte, root *hujson.Value) string {
	object := root.Value.(*hujson.Object) //nolint:errcheck,forcetypeassert // parse has looked
	for _, m := range object.Members {
		if bytes.Contains(m.Name.BeforeExtra, []byte("\n")) {
			if indent := indentOf(text, m.Name.StartOffset); indent != "" {
				return indent
			}
		}
	}
	return "  "
}

// A jsonWriter writes in the manner of a text. Without a unit it writes on one
// line.
type jsonWriter struct {
	text          []byte
	newline, unit string
}

// lines reports whether an object has its members on lines of their own.
func (w jsonWriter) lines(object *hujson.Value) bool {
	members := object.Value.(*hujson.Object).Members //nolint:errcheck,forcetypeassert // it is one
	return len(members) == 0 || bytes.Contains(members[0].Name.BeforeExtra, []byte("\n"))
}

// add puts a member at the end of an object. Its value is made in the manner
// of that object, for the indentation of its line.
func (w jsonWriter) add(object *hujson.Value, name string, value func(w jsonWriter, indent string) string) []byte {
	own := indentOf(w.text, object.StartOffset)
	members := object.Value.(*hujson.Object).Members //nolint:errcheck,forcetypeassert // it is one
	if len(members) == 0 {
		inner := bytes.TrimRight(w.text[object.StartOffset+1:object.EndOffset-1], " \t\r\n")
		indent := own + w.unit
		return splice(w.text, object.StartOffset+1, object.EndOffset-1,
			string(inner)+w.newline+indent+Show(name)+": "+value(w, indent)+w.newline+own)
	}
	last := members[len(members)-1].Value
	if !w.lines(object) {
		w.unit = ""
		return splice(w.text, last.EndOffset, last.EndOffset, ", "+Show(name)+": "+value(w, ""))
	}
	indent := indentOf(w.text, members[0].Name.StartOffset)
	line := w.newline + indent + Show(name) + ": " + value(w, indent)
	if last.AfterExtra != nil { // there is a trailing comma
		comma := last.EndOffset + len(last.AfterExtra) + 1
		end := w.remark(comma, object.EndOffset-1)
		return splice(w.text, end, end, line+",")
	}
	end := w.remark(last.EndOffset, object.EndOffset-1)
	changed := splice(w.text, end, end, line)
	return splice(changed, last.EndOffset, last.EndOffset, ",")
}

// remark returns the offset behind a comment that ends the line, which belongs
// to what stands before it.
func (w jsonWriter) remark(at, limit int) int {
	rest := w.text[at:limit]
	end := lineEnd(rest, 0)
	trimmed := bytes.TrimLeft(rest[:end], " \t")
	isLine := bytes.HasPrefix(trimmed, []byte("//"))
	isBlock := bytes.HasPrefix(trimmed, []byte("/*")) && bytes.HasSuffix(bytes.TrimRight(trimmed, " \t"), []byte("*/"))
	if isLine || isBlock {
		return at + len(bytes.TrimRight(rest[:end], " \t\r"))
	}
	return at
}

// object writes an object whose members are written.
func (w jsonWriter) object(indent string, members []string) string {
	if w.unit == "" {
		return "{" + strings.Join(members, ", ") + "}"
	}
	inner := w.newline + indent + w.unit
	return "{" + inner + strings.Join(members, ","+inner) + w.newline + indent + "}"
}

// fields writes an entry.
func (w jsonWriter) fields(indent string, fields []Field) string {
	members := make([]string, len(fields))
	for i, f := range fields {
		members[i] = Show(f.Name) + ": " + flow(f.Value)
	}
	return w.object(indent, members)
}

// flow writes a value on one line, with a space after each comma.
func flow(value any) string {
	var items []string
	switch value := value.(type) {
	case []string:
		for _, item := range value {
			items = append(items, Show(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			items = append(items, Show(name)+": "+Show(value[name]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return Show(value)
}

// Raw implements [Syntax].
func (j jsonText) Raw(text []byte, section, name string) (string, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrder))
	value, err := j.parse(text)
	if err != nil {
		return "", err
	}
	servers, err := j.section(text, &value, section)
	if err != nil {
		return "", err
	}
	object := servers.Value.(*hujson.Object) //nolint:errcheck,forcetypeassert // the entry is in it
	at, err := member(text, object, name)
	if err != nil {
		return "", err
	}
	entry := object.Members[at].Value
	return string(text[entry.StartOffset:entry.EndOffset]), nil
}

func (j jsonText) Take(text []byte, section, name string) ([]byte, error) {
	return withoutMark(text, func(text []byte) ([]byte, error) {
		value, err := j.parse(text)
		if err != nil {
			return nil, err
		}
		servers, err := j.section(text, &value, section)
		if err != nil {
			return nil, err
		}
		at, err := member(text, servers.Value.(*hujson.Object), name) //nolint:errcheck,forcetypeassert // the entry is in it
		if err != nil {
			return nil, err
		}
		return takeMember(text, servers, at), nil
	})
}

// takeMember takes a member out of an object, with its comma and its line.
func takeMember(text []byte, object *hujson.Value, at int) []byte {
	members := object.Value.(*hujson.Object).Members //nolint:errcheck,forcetypeassert // it is one
	m := members[at]
	from, to := m.Name.StartOffset, m.Value.EndOffset
	comma := at < len(members)-1 || m.Value.AfterExtra != nil
	if comma {
		to += len(m.Value.AfterExtra) + 1
	}
	start, end := lineStart(text, from), lineEnd(text, to)
	if isBlank(text[start:from]) && isBlank(text[to:end]) && start > object.StartOffset {
		from, to = start, min(afterLine(text, to), object.EndOffset-1)
	} else { // on one line with others, or with a comment, which stays
		for to < len(text) && text[to] == ' ' {
			to++
		}
	}
	changed := splice(text, from, to, "")
	end = object.EndOffset - (to - from)
	if !comma && at > 0 { // the one before is the last now
		before := members[at-1].Value
		mark := before.EndOffset + len(before.AfterExtra)
		changed = splice(changed, mark, mark+1, "")
		end--
		// On one line, the space that followed the comma goes with it.
		if tail := changed[mark : end-1]; isBlank(tail) && !bytes.Contains(tail, []byte("\n")) && !bytes.Contains(text[from:to], []byte("\n")) {
			changed = splice(changed, mark, end-1, "")
		}
	}
	if len(members) == 1 && isBlank(changed[object.StartOffset+1:end-1]) {
		changed = splice(changed, object.StartOffset+1, end-1, "")
	}
	return changed
}
