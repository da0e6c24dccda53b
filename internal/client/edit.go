package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// A Problem is why a text cannot be read or edited.
type Problem struct {
	// Line is 1-based; 0 where it is not known.
	Line int
	Text string
}

// Error returns the text alone: who knows the file names it.
func (p *Problem) Error() string { return p.Text }

// A syntax reads and edits the text of one format. Its edits need not be
// right: whoever calls them compares.
type syntax interface {
	// decode returns the whole as plain data.
	decode(text []byte) (map[string]any, error)
	// put returns the text with the entry, in place of one that is there.
	put(text []byte, section, name string, fields []field) ([]byte, error)
	// take returns the text without the entry, which is there.
	take(text []byte, section, name string) ([]byte, error)
	// raw returns the text of the entry, which is there, and putRaw puts it
	// into a text that has none of its name.
	raw(text []byte, section, name string) (string, error)
	putRaw(text []byte, section, name, raw string) ([]byte, error)
}

func (c Client) syntax() syntax {
	switch c.Format {
	case TOML:
		return tomlText{}
	case YAML:
		return yamlText{}
	case JSON, JSONC:
	}
	return jsonText{comments: c.Format == JSONC}
}

// look returns the entry of a name in a text, nil if there is none.
func (c Client) look(text []byte, name string) (any, error) {
	whole, err := c.syntax().decode(text)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(whole)
	return servers[name], err
}

func (c Client) servers(whole map[string]any) (map[string]any, error) {
	section := whole[c.Section]
	servers, ok := section.(map[string]any)
	if !ok && section != nil {
		return nil, &Problem{Text: fmt.Sprintf("%s: want a mapping of servers", c.Section)}
	}
	return servers, nil
}

// put returns a text with the entry for a command.
func (c Client) put(text []byte, command Command) ([]byte, error) {
	fields := c.shape.fields(command)
	if _, err := c.look(text, Entry); err != nil {
		return nil, err
	}
	changed, err := c.syntax().put(text, c.Section, Entry, fields)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, Entry); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, Entry); err != nil || !has(entry, fields) {
		return nil, &Problem{Text: "the entry cannot be put in where it would be read"}
	}
	return changed, nil
}

// take returns a text without an entry, if it has it.
func (c Client) take(text []byte, name string) ([]byte, error) {
	entry, err := c.look(text, name)
	if err != nil || entry == nil {
		return text, err
	}
	changed, err := c.syntax().take(text, c.Section, name)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, name); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, name); err != nil || entry != nil {
		return nil, &Problem{Text: "the entry cannot be taken out without touching others"}
	}
	return changed, nil
}

// putBack returns a text with an entry as it was, if it has none of its name.
func (c Client) putBack(text []byte, name, raw string) ([]byte, error) {
	entry, err := c.look(text, name)
	if err != nil || entry != nil {
		return text, err
	}
	changed, err := c.syntax().putRaw(text, c.Section, name, raw)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, name); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, name); err != nil || entry == nil {
		return nil, &Problem{Text: fmt.Sprintf("%s cannot be put back where it would be read", name)}
	}
	return changed, nil
}

// compare returns an error if two texts differ in more than an entry.
func (c Client) compare(before, after []byte, name string) error {
	was, err := c.rest(before, name)
	if err != nil {
		return err
	}
	is, err := c.rest(after, name)
	if err != nil {
		return &Problem{Text: fmt.Sprintf("%s: is written in a way that cannot be changed here: %v", c.Section, err)}
	}
	if !reflect.DeepEqual(was, is) {
		return &Problem{Text: c.Section + ": is written in a way that cannot be changed here without touching other entries"}
	}
	return nil
}

// rest returns what a text says of everything but an entry.
func (c Client) rest(text []byte, name string) (map[string]any, error) {
	whole, err := c.syntax().decode(text)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(whole)
	delete(servers, name)
	if len(servers) == 0 {
		delete(whole, c.Section)
	}
	return whole, err
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

// show writes a value as JSON, which is YAML too, and for all but control
// characters TOML. It keeps what HTML would escape.
func show(value any) string {
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

// lineIn returns the line that an error names; 0 if it names none.
func lineIn(err error) int {
	var problem *Problem
	if errors.As(err, &problem) {
		return problem.Line
	}
	return 0
}
