// Package section reads and edits the text of a configuration that has a
// section of named entries: JSON, with comments or without, TOML and YAML.
//
// An edit changes the text of one entry and leaves every other byte where it
// is, but for the comma or the bracket that has to come or go with it. It need
// not be right for every text that somebody may write: whoever calls it
// compares what both texts say.
package section

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Format is how a configuration is written.
type Format string

// The formats. JSONC is JSON that may have comments and trailing commas.
const (
	JSON  Format = "json"
	JSONC Format = "jsonc"
	TOML  Format = "toml"
	YAML  Format = "yaml"
)

// A Field is one line of an entry. Its value is a string, a bool, an int, a
// []string or a map of strings.
type Field struct {
	Name  string
	Value any
}

// A Problem is why a text cannot be read or edited.
type Problem struct {
	// Line is 1-based; 0 where it is not known.
	Line int
	Text string
}

// Error returns the text alone: who knows the file names it.
func (p *Problem) Error() string { return p.Text }

// A Syntax reads and edits the text of one format. Its edits need not be
// right: whoever calls them compares.
type Syntax interface {
	// Decode returns the whole as plain data.
	Decode(text []byte) (map[string]any, error)
	// Put returns the text with the entry, in place of one that is there.
	Put(text []byte, section, name string, fields []Field) ([]byte, error)
	// Take returns the text without the entry, which is there.
	Take(text []byte, section, name string) ([]byte, error)
	// Raw returns the text of the entry, which is there, and PutRaw puts it
	// into a text that has none of its name.
	Raw(text []byte, section, name string) (string, error)
	PutRaw(text []byte, section, name, raw string) ([]byte, error)
}

// Syntax returns what reads and edits a format.
func (f Format) Syntax() Syntax {
	switch f {
	case TOML:
		return tomlText{}
	case YAML:
		return yamlText{}
	case JSON, JSONC:
	}
	return jsonText{comments: f == JSONC}
}

// newline is how the lines of a text end.
func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// splice replaces text[from:to].
func splice(text []byte, from, to int, with string) []byte {
	changed := make([]byte, 0, len(text)-(to-from)+len(with))
	changed = append(changed, text[:from]...)
	changed = append(changed, with...)
	return append(changed, text[to:]...)
}

// lineStart returns the offset at which the line of an offset begins.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd returns the offset of the end of a line, its newline not included.
func lineEnd(text []byte, at int) int {
	end := bytes.IndexByte(text[at:], '\n')
	if end < 0 {
		return len(text)
	}
	end += at
	if end > at && text[end-1] == '\r' {
		end--
	}
	return end
}

// afterLine returns the offset of the line that follows.
func afterLine(text []byte, at int) int {
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 {
		return at + end + 1
	}
	return len(text)
}

// indentOf returns the white space with which the line of an offset begins.
func indentOf(text []byte, at int) string {
	start := lineStart(text, at)
	end := start
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return string(text[start:end])
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

func isBlank(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 }

// Show writes a value as JSON, which is YAML too, and for all but control
// characters TOML. It keeps what HTML would escape.
func Show(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// byteOrder is the mark with which some editors begin a file.
const byteOrder = "\uFEFF"

// withoutMark calls an edit on a text without its byte order mark.
func withoutMark(text []byte, edit func([]byte) ([]byte, error)) ([]byte, error) {
	rest, marked := bytes.CutPrefix(text, []byte(byteOrder))
	changed, err := edit(rest)
	if err == nil && marked {
		changed = append([]byte(byteOrder), changed...)
	}
	return changed, err
}
