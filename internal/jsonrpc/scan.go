package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in a message, its own
// object included.
const MaxDepth = 1000

// errKind is the refusal of a message that is no request, notification or
// response, or whose id is of no allowed kind.
var errKind = errors.New("not a JSON-RPC message")

// A SyntaxError says where and why something is not JSON, or not JSON-RPC.
type SyntaxError struct {
	// Offset counts bytes from the start of the line or value.
	Offset  int
	Problem string
}

// Error returns the problem and its offset.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.Problem, e.Offset)
}

// A Member is one member of an object. Its bytes are those of the object.
type Member struct {
	// Raw is the whole member as it was written, from its name to its value.
	Raw []byte
	// Name is the decoded name.
	Name []byte
	// Value is the value as it was written.
	Value json.RawMessage
}

// Members yields the members of an object in the order they were written,
// repeated ones too. If object is not one, the last thing it yields is an
// error.
func Members(object []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		s := scanner{data: object}
		for {
			more, ok := s.next('{', '}')
			if !ok {
				yield(Member{}, s.err())
				return
			}
			if !more {
				return
			}
			start := s.pos
			key, value, ok := s.member(1)
			if !ok {
				yield(Member{}, s.err())
				return
			}
			raw := object[start:s.valueEnd:s.valueEnd]
			if !yield(Member{Raw: raw, Name: name(key), Value: value}, nil) {
				return
			}
		}
	}
}

// Elements yields the elements of an array in order. If array is not one, the
// last thing it yields is an error.
func Elements(array []byte) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		s := scanner{data: array}
		for {
			more, ok := s.next('[', ']')
			if !ok {
				yield(nil, s.err())
				return
			}
			if !more {
				return
			}
			start := s.pos
			if !s.value(1) {
				yield(nil, s.err())
				return
			}
			if !yield(array[start:s.pos:s.pos], nil) {
				return
			}
			s.space()
		}
	}
}

// A scanner walks over JSON by the grammar of RFC 8259 without decoding it.
// Once something is wrong, problem is set and pos is where.
type scanner struct {
	data    []byte
	pos     int
	problem string
	// valueEnd is where the value of the last member ended, before the
	// whitespace after it.
	valueEnd int
	// begun reports that next is inside its array or object.
	begun bool
	// broken reports that a line break was seen. Inside strings there is none.
	broken bool
	// more, if set, appends to data what comes next, and reports whether
	// anything did.
	more func() bool
}

func (s *scanner) fail(problem string) error {
	s.problem = problem
	return s.err()
}

func (s *scanner) err() error { return &SyntaxError{Offset: s.pos, Problem: s.problem} }

// reach reports whether data holds n bytes from a position on, once what
// comes next was waited for.
func (s *scanner) reach(from, n int) bool {
	for len(s.data)-from < n {
		if s.more == nil || !s.more() {
			return false
		}
	}
	return true
}

// wrong records the first problem and returns false.
func (s *scanner) wrong(problem string) bool {
	if s.problem == "" {
		if s.pos >= len(s.data) {
			problem = "unexpected end"
		}
		s.problem = problem
	}
	return false
}

// peek returns the byte at pos, or 0, which no JSON text has, at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return s.beyond()
}

// beyond is peek where data has ended.
func (s *scanner) beyond() byte {
	if s.reach(s.pos, 1) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) || s.reach(s.pos, 1) {
		switch s.data[s.pos] {
		case ' ', '\t':
			s.pos++
		case '\n', '\r':
			s.broken = true
			s.pos++
		default:
			return
		}
	}
}

// take skips one byte of punctuation and the whitespace after it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return s.wrong("unexpected character")
	}
	s.pos++
	s.space()
	return true
}

// next moves to the next entry of the outermost array or object, and reports
// whether there is one. After the last it demands the end of the data.
func (s *scanner) next(open, end byte) (more, ok bool) {
	first := !s.begun
	if first {
		s.begun = true
		if s.space(); !s.take(open) {
			return false, false
		}
	}
	if s.peek() != end {
		return true, first || s.take(',')
	}
	s.pos++
	if s.space(); s.pos != len(s.data) {
		return false, s.wrong("data after the value")
	}
	return false, true
}

// member walks over a member of an object and the whitespace around it.
// Depth is that of the object.
func (s *scanner) member(depth int) (key, value []byte, ok bool) {
	start := s.pos
	if s.peek() != '"' {
		return nil, nil, s.wrong("no member name")
	}
	if !s.str() {
		return nil, nil, false
	}
	key = s.data[start:s.pos:s.pos]
	s.space()
	if !s.take(':') {
		return nil, nil, false
	}
	start = s.pos
	if !s.value(depth) {
		return nil, nil, false
	}
	s.valueEnd = s.pos
	value = s.data[start:s.pos:s.pos]
	s.space()
	return key, value, true
}

// value walks over one value inside depth containers.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		return s.str()
	case '{', '[':
		if depth >= MaxDepth {
			return s.wrong("nested too deep")
		}
		return s.container(c, depth+1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// container walks over an array or object at the given depth.
func (s *scanner) container(open byte, depth int) bool {
	end := open + 2 // both pairs are two apart in ASCII
	s.pos++
	s.space()
	for first := true; s.peek() != end; first = false {
		if !first && !s.take(',') {
			return false
		}
		if open == '{' {
			if _, _, ok := s.member(depth); !ok {
				return false
			}
			continue
		}
		if !s.value(depth) {
			return false
		}
		s.space()
	}
	s.pos++
	return true
}

func (s *scanner) literal(word string) bool {
	if !s.reach(s.pos, len(word)) || !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return s.wrong("unexpected character")
	}
	s.pos += len(word)
	return true
}

// str walks over a string. What it holds is checked only as far as JSON's
// grammar goes: an escaped half of a surrogate pair passes.
func (s *scanner) str() bool {
	for i := s.pos + 1; ; {
		if i = plain(s.data, i); i == len(s.data) {
			if s.reach(i, 1) {
				continue
			}
			s.pos = i
			return s.wrong("unexpected end")
		}
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return true
		case '\\':
			s.reach(i, longestEscape)
			n := escape(s.data[i:])
			if n == 0 {
				s.pos = i
				return s.wrong("bad escape")
			}
			i += n
		default:
			s.pos = i
			return s.wrong("control character in a string")
		}
	}
}

// plain returns the position of the next byte at or after i that means
// something in a string: a quote, a backslash or a control character; the
// length of data if there is none. It looks at eight bytes at a time: for each
// byte of a word, the high bit of (x - n) &^ x is set if x < n.
func plain(data []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(data); i += 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		quote, slash := word^(ones*'"'), word^(ones*'\\')
		found := (word - ones*0x20) &^ word
		found |= (quote - ones) &^ quote
		found |= (slash - ones) &^ slash
		if found &= highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

const longestEscape = len(`\u0000`)

// escape returns the length of the escape sequence that data starts with, or
// 0 if it is none.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < longestEscape {
			return 0
		}
		for _, c := range data[2:longestEscape] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return longestEscape
	}
	return 0
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.peek()|0x20 == 'e' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.peek()-'0' <= 9 {
		s.pos++
	}
	if s.pos == start {
		return s.wrong("unexpected character")
	}
	return true
}

// name returns the decoded form of a quoted member name, without a copy
// unless it has escapes.
func name(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return []byte(unquote(quoted))
}

// unquote returns the text of a string that the scanner accepted.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return string(quoted[1 : len(quoted)-1])
	}
	return text
}

// appendString appends text as a JSON string and escapes only what JSON
// demands.
func appendString(line []byte, text string) []byte {
	const hex = "0123456789abcdef"
	line = append(line, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			line = append(line, '\\', c)
		case c == '\n':
			line = append(line, '\\', 'n')
		case c == '\t':
			line = append(line, '\\', 't')
		case c < 0x20:
			line = append(line, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			line = append(line, c)
		}
	}
	return append(line, '"')
}

// toValid returns data, or a copy with U+FFFD for what is not UTF-8.
func toValid(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}
