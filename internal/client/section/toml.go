package section

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlText is TOML. An entry is a table of its own, with what is below it.
type tomlText struct{}

func (tomlText) Decode(text []byte) (map[string]any, error) {
	whole := make(map[string]any)
	err := toml.Unmarshal(bytes.TrimPrefix(text, []byte(byteOrder)), &whole)
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		return nil, &Problem{Line: line, Text: strings.TrimPrefix(wrong.Error(), "toml: ")}
	}
	if err != nil {
		return nil, &Problem{Text: err.Error()}
	}
	return whole, nil
}

// A span is a part of a text.
type span struct{ from, to int }

// tables returns where the table of an entry and those below it are written.
func tables(text []byte, section, name string) ([]span, error) {
	var parser unstable.Parser
	parser.Reset(text)
	var spans []span
	open := false
	for parser.NextExpression() {
		node := parser.Expression()
		if node.Kind != unstable.Table && node.Kind != unstable.ArrayTable {
			continue
		}
		var path []string
		at := -1
		for keys := node.Key(); keys.Next(); {
			key := keys.Node()
			if at < 0 {
				at = int(key.Raw.Offset)
			}
			path = append(path, string(key.Data))
		}
		start := lineStart(text, at)
		ours := len(path) >= 2 && path[0] == section && path[1] == name
		switch {
		case open && !ours:
			spans[len(spans)-1].to = start
		case ours && !open:
			spans = append(spans, span{start, len(text)})
		}
		open = ours
	}
	if err := parser.Error(); err != nil {
		return nil, err
	}
	for i := range spans {
		spans[i].to = withoutTail(text, spans[i])
	}
	return spans, nil
}

// withoutTail returns the end of a span without the comments and empty lines
// that lead to the next one.
func withoutTail(text []byte, s span) int {
	end := s.to
	for end > s.from {
		start := lineStart(text, end-1)
		line := bytes.TrimSpace(text[start:end])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		end = start
	}
	return end
}

func (tomlText) Put(text []byte, section, name string, fields []Field) ([]byte, error) {
	return withoutMark(text, func(text []byte) ([]byte, error) {
		spans, err := tables(text, section, name)
		if err != nil {
			return nil, err
		}
		end := newline(text)
		entry := "[" + section + "." + name + "]" + end
		for _, f := range fields {
			value := tomlString(f.Value)
			entry += f.Name + " = " + value + end
		}
		if len(spans) == 0 {
			return appendTable(text, entry), nil
		}
		for i, s := range slices.Backward(spans) {
			with := ""
			if i == 0 {
				with = entry
			}
			text = splice(text, s.from, s.to, with)
		}
		return text, nil
	})
}

// appendTable puts a table at the end, after an empty line.
func appendTable(text []byte, entry string) []byte {
	end := newline(text)
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		entry = end + entry
	}
	if !isBlank(text) {
		entry = end + entry
	}
	return splice(text, len(text), len(text), entry)
}

func (tomlText) Raw(text []byte, section, name string) (string, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrder))
	spans, err := tables(text, section, name)
	var all []byte
	for _, s := range spans {
		all = append(all, text[s.from:s.to]...)
	}
	return string(all), err
}

func (tomlText) PutRaw(text []byte, _, _, raw string) ([]byte, error) {
	return withoutMark(text, func(text []byte) ([]byte, error) { return appendTable(text, raw), nil })
}

// tomlString writes a value. What JSON escapes TOML does too, but for the
// slash, which Show leaves as it is, and for U+007F, which only TOML does.
func tomlString(value any) string {
	text := flow(value)
	if variables, ok := value.(map[string]string); ok {
		var items []string
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			items = append(items, Show(name)+" = "+Show(variables[name]))
		}
		text = "{ " + strings.Join(items, ", ") + " }"
	}
	return strings.ReplaceAll(text, "\x7f", `\u007F`)
}

func (tomlText) Take(text []byte, section, name string) ([]byte, error) {
	return withoutMark(text, func(text []byte) ([]byte, error) {
		spans, err := tables(text, section, name)
		if err != nil {
			return nil, err
		}
		for _, s := range slices.Backward(spans) {
			// The empty line before it came with it.
			if before := lineStart(text, max(s.from-1, 0)); s.from > 0 && isBlank(text[before:s.from]) {
				s.from = before
			}
			text = splice(text, s.from, s.to, "")
		}
		return text, nil
	})
}
