package rules

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// A subject is a tool that rules are tried on. What only some rules look at is
// worked out when the first of them does.
type subject struct {
	server     string
	name       string
	lower      string
	ascii      bool
	definition json.RawMessage

	words       string
	split       bool
	annotations Annotations
	read        bool
}

func newSubject(server string, definition tool.Definition) subject {
	return subject{
		server: server, name: definition.Name, lower: strings.ToLower(definition.Name), ascii: isASCII(definition.Name),
		definition: definition.JSON,
	}
}

// spaced returns the name split into words.
func (s *subject) spaced() string {
	if !s.split {
		s.words, s.split = words(s.name), true
	}
	return s.words
}

// claims returns the tool's annotations.
func (s *subject) claims() Annotations {
	if !s.read {
		s.annotations, s.read = readAnnotations(s.definition), true
	}
	return s.annotations
}

// words splits a name where people would: "read_file", "readFile", "fs.read"
// and "HTTPGet" become "read file", "read File", "fs read" and "HTTP Get".
func words(name string) string {
	var b strings.Builder
	b.Grow(len(name) + 4)
	runes := []rune(name)
	gap := false
	for i, r := range runes {
		if notOfWord(r) {
			gap = b.Len() > 0
			continue
		}
		if gap || i > 0 && begins(runes, i) {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// begins reports that a word begins at an upper-case letter: after a lower-case
// one or a digit, or before a lower-case one where capitals end.
func begins(runes []rune, i int) bool {
	before := runes[i-1]
	if !unicode.IsUpper(runes[i]) || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
		return false
	}
	return !unicode.IsUpper(before) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// Annotations are what a tool claims of itself (MCP: ToolAnnotations), or what
// a rule wants it to claim. Nil is not said, or not asked for.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
}

func (a Annotations) zero() bool { return a.ReadOnly == nil && a.Destructive == nil }

// readAnnotations reads what a definition claims. What is not a boolean there
// counts as not said.
func readAnnotations(definition json.RawMessage) Annotations {
	claims := jsonrpc.Lookup(definition, "annotations")
	return Annotations{ReadOnly: boolean(claims, "readOnlyHint"), Destructive: boolean(claims, "destructiveHint")}
}

func boolean(object json.RawMessage, member string) *bool {
	switch string(jsonrpc.Lookup(object, member)) {
	case "true":
		yes := true
		return &yes
	case "false":
		no := false
		return &no
	}
	return nil
}

// Of a tool that does not say, MCP takes the worse for granted: it is not
// read-only, and it is destructive unless it is read-only.

func (a Annotations) readOnly() bool { return a.ReadOnly != nil && *a.ReadOnly }

func (a Annotations) destructive() bool {
	if a.readOnly() {
		return false
	}
	return a.Destructive == nil || *a.Destructive
}

// fit reports whether the tool claims what a rule wants.
func (a Annotations) fit(s *subject) bool {
	claims := s.claims()
	return (a.ReadOnly == nil || *a.ReadOnly == claims.readOnly()) &&
		(a.Destructive == nil || *a.Destructive == claims.destructive())
}
