package section

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

// yamlText is YAML: one document, a mapping in block style.
type yamlText struct{}

func (y yamlText) Decode(text []byte) (map[string]any, error) {
	if _, err := y.parse(text); err != nil {
		return nil, err
	}
	whole := make(map[string]any)
	if err := yaml.Unmarshal(text, &whole); err != nil {
		return nil, yamlProblem(err)
	}
	return whole, nil
}

// parse returns the mapping of the document, nil if it is empty.
func (yamlText) parse(text []byte) (*yaml.Node, error) {
	// Lines are counted by line feeds below, and by more in the parser.
	for _, odd := range []string{"\u0085", "\u2028", "\u2029"} {
		if at := bytes.Index(text, []byte(odd)); at >= 0 {
			return nil, &Problem{Line: lineOf(text, at), Text: fmt.Sprintf("has the line break %+q", odd)}
		}
	}
	if at := bytes.IndexByte(bytes.ReplaceAll(text, []byte("\r\n"), []byte(" \n")), '\r'); at >= 0 {
		return nil, &Problem{Line: lineOf(text, at), Text: "has a carriage return without a line feed"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, yamlProblem(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Problem{Line: second.Line, Text: "want one document"}
	}
	root := document.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, &Problem{Line: root.Line, Text: "want a mapping"}
	}
	return root, nil
}

// yamlProblem takes the line out of a parser's error.
func yamlProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	found := regexp.MustCompile(`line (\d+): (.*)`).FindStringSubmatch(text)
	if found == nil {
		return &Problem{Text: text}
	}
	line, _ := strconv.Atoi(found[1]) //nolint:errcheck // they are digits
	return &Problem{Line: line, Text: found[2]}
}

// child returns the key and the value of a name in a mapping.
func child(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// lineAt returns the offset of a line, counted from 1.
func lineAt(text []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		at = afterLine(text, at)
	}
	return at
}

func (y yamlText) Put(text []byte, section, name string, fields []Field) ([]byte, error) {
	end := newline(text)
	return y.insert(text, section, name, func(indent string) string { return yamlEntry(indent, end, name, fields) })
}

func (y yamlText) PutRaw(text []byte, section, name, raw string) ([]byte, error) {
	return y.insert(text, section, name, func(string) string { return raw })
}

func (y yamlText) Raw(text []byte, section, name string) (string, error) {
	root, err := y.parse(text)
	if err != nil {
		return "", err
	}
	_, servers := child(root, section)
	if servers == nil || servers.Kind != yaml.MappingNode || servers.Style == yaml.FlowStyle || root.Style == yaml.FlowStyle {
		return "", &Problem{Text: section + ": is written in a way that cannot be changed here"}
	}
	key, _ := child(servers, name)
	s := yamlSpan(text, servers, key)
	return string(text[s.from:s.to]), nil
}

// insert puts an entry, which is made for an indentation, into a section, in
// place of one that is there.
func (y yamlText) insert(text []byte, section, name string, entry func(indent string) string) ([]byte, error) {
	root, err := y.parse(text)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Style == yaml.FlowStyle {
		return nil, &Problem{Line: root.Line, Text: "is written with braces, which cannot be changed here"}
	}
	end := newline(text)
	key, servers := child(root, section)
	if key == nil {
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			text = append(bytes.Clone(text), end...)
		}
		return append(bytes.Clone(text), section+":"+end+entry("  ")...), nil
	}
	at := lineAt(text, key.Line)
	inner := indentOf(text, at) + "  "
	switch {
	case servers.Kind == yaml.AliasNode:
		return nil, &Problem{Line: servers.Line, Text: section + ": is an alias, which cannot be changed here"}
	case servers.Kind == yaml.ScalarNode && servers.Value == "": // nothing after the colon
		return splice(text, afterLine(text, at), afterLine(text, at), entry(inner)), nil
	case servers.Style != yaml.FlowStyle && servers.Kind == yaml.MappingNode:
		if old, _ := child(servers, name); old != nil {
			s := yamlSpan(text, servers, old)
			return splice(text, s.from, s.to, entry(indentOf(text, s.from))), nil
		}
		first := servers.Content[0]
		if first.Line == key.Line {
			return nil, &Problem{Line: key.Line, Text: section + ": want its entries on lines of their own"}
		}
		return splice(text, afterLine(text, at), afterLine(text, at), entry(strings.Repeat(" ", first.Column-1))), nil
	case servers.Kind == yaml.MappingNode && len(servers.Content) == 0 && servers.Line == key.Line:
		open := at + strings.IndexByte(string(text[at:]), '{')
		shut := open + strings.IndexByte(string(text[open:]), '}') + 1
		changed := splice(text, open, shut, "")
		head := bytes.TrimRight(changed[at:open], " ")
		changed = splice(changed, at+len(head), open, "")
		next := afterLine(changed, at)
		made := entry(inner)
		if next == len(changed) && !bytes.HasSuffix(changed, []byte("\n")) {
			made = end + made
		}
		return splice(changed, next, next, made), nil
	}
	return nil, &Problem{Line: servers.Line, Text: section + ": is written with braces, which cannot be changed here"}
}

// yamlEntry writes an entry in block style.
func yamlEntry(indent, end, name string, fields []Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s:%s", indent, name, end)
	for _, f := range fields {
		list, ok := f.Value.([]string)
		if !ok || len(list) == 0 {
			fmt.Fprintf(&b, "%s  %s: %s%s", indent, f.Name, flow(f.Value), end)
			continue
		}
		fmt.Fprintf(&b, "%s  %s:%s", indent, f.Name, end)
		for _, item := range list {
			fmt.Fprintf(&b, "%s    - %s%s", indent, Show(item), end)
		}
	}
	return b.String()
}

// yamlSpan returns the lines of a child of a mapping: those that follow its
// key and are indented deeper, without empty lines and comments at their end.
func yamlSpan(text []byte, mapping, key *yaml.Node) span {
	s := span{from: lineAt(text, key.Line)}
	s.to = afterLine(text, s.from)
	for at := s.to; at < len(text); at = afterLine(text, at) {
		line := text[at:lineEnd(text, at)]
		switch {
		case isBlank(line):
			continue
		case len(indentOf(text, at)) < mapping.Content[0].Column:
			return s
		}
		s.to = afterLine(text, at)
	}
	return s
}

func (y yamlText) Take(text []byte, section, name string) ([]byte, error) {
	root, err := y.parse(text)
	if err != nil {
		return nil, err
	}
	key, servers := child(root, section)
	if servers == nil || servers.Kind != yaml.MappingNode || servers.Style == yaml.FlowStyle || root.Style == yaml.FlowStyle {
		return nil, &Problem{Text: section + ": is written in a way that cannot be changed here"}
	}
	old, _ := child(servers, name)
	s := yamlSpan(text, servers, old)
	changed := splice(text, s.from, s.to, "")
	if len(servers.Content) > 2 {
		return changed, nil
	}
	// A key with nothing below it would be null, which is no mapping.
	at := lineAt(text, key.Line)
	colon := at + len(indentOf(text, at)) + strings.IndexByte(string(text[at+len(indentOf(text, at)):]), ':') + 1
	return splice(changed, colon, colon, " {}"), nil
}
