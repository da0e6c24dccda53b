// Package jsonrpc frames JSON-RPC 2.0 messages as lines, as the stdio
// transport of MCP does (basic/transports/stdio), and keeps their payloads as
// the bytes that came.
//
// It decides what a message is. It refuses, without ending the stream, lines
// that are not JSON-RPC, that nest deeper than [MaxDepth], that name a member
// of the envelope twice, or that are longer than the reader's limit. It
// guarantees that ids, params, results and error data leave as they came,
// but for whitespace where they hold line breaks, and that a [Writer] never
// writes a line that a [Reader] would refuse, unless [Writer.Pass] is given as
// JSON what is none.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// A Kind says what a [Message] is.
type Kind int

// The kinds of messages. Every message that [Parse] accepts is one of them.
const (
	Response Kind = iota
	Notification
	Request
)

// A Message is a request, a notification or a response. Raw members are nil
// when absent.
type Message struct {
	// ID is a string or a number as it was written. A notification has none;
	// an error response to a message without a readable id has null.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	Params json.RawMessage
	Result json.RawMessage
	// Error is nil unless the message is an error response. A peer that
	// breaks the rules may send both Result and Error, or neither.
	Error *Error
}

// Kind returns what the message is, by its method and id.
func (m Message) Kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case m.ID == nil:
		return Notification
	default:
		return Request
	}
}

// An Error is the error member of a response.
type Error struct {
	Code    int64
	Message string
	// Data is nil when absent.
	Data json.RawMessage
}

// Error returns the message and the code.
func (e *Error) Error() string {
	return e.Message + " (code " + strconv.FormatInt(e.Code, 10) + ")"
}

// Parse reads one message from a line, with or without its line break. The
// message does not alias line. Invalid UTF-8 is replaced by U+FFFD, as
// decoders of JSON do; a byte order mark before the message is skipped. Null
// as method or error is the same as its absence, and an error without an id
// has the id null.
func Parse(line []byte) (Message, error) {
	return parse(bytes.Clone(line))
}

// member names of the envelope, as bits of a set of those seen.
const (
	sawVersion = 1 << iota
	sawID
	sawMethod
	sawParams
	sawResult
	sawError
)

// parse is Parse for a line that the message may keep.
func parse(line []byte) (Message, error) {
	s := scanner{data: clean(line)}
	return s.message()
}

// message walks over a message, which keeps what it walked over.
func (s *scanner) message() (Message, error) {
	var m Message
	s.space()
	if s.peek() != '{' {
		return m, s.fail("not an object")
	}
	s.pos++
	s.space()
	seen := 0
	for first := true; s.peek() != '}'; first = false {
		if !first && !s.take(',') {
			return Message{}, s.err()
		}
		key, value, ok := s.member(1)
		if !ok {
			return Message{}, s.err()
		}
		bit, problem := m.set(name(key), value)
		if problem == "" && seen&bit != 0 {
			problem = "repeated member " + string(key)
		}
		if problem != "" {
			return Message{}, s.fail(problem)
		}
		seen |= bit
	}
	s.pos++
	s.space()
	if s.pos != len(s.data) {
		return Message{}, s.fail("data after the message")
	}
	switch {
	case seen&sawVersion == 0:
		return Message{}, s.fail("no jsonrpc member")
	case m.Method != "" && string(m.ID) == "null":
		return Message{}, s.fail("request with id null")
	case m.Method == "" && m.Error != nil && m.ID == nil:
		m.ID = json.RawMessage("null")
	case m.Method == "" && m.ID == nil:
		return Message{}, s.fail("neither method nor id")
	}
	if m.Method != "" {
		m.Result, m.Error = nil, nil
	} else {
		m.Params = nil
	}
	return m, nil
}

// clean makes line valid UTF-8 without a leading byte order mark.
func clean(line []byte) []byte {
	return bytes.TrimPrefix(toValid(line), []byte("\ufeff"))
}

// set stores one member of the envelope and returns its bit, or what is wrong
// with it. Members that JSON-RPC does not know are ignored.
func (m *Message) set(name, value []byte) (bit int, problem string) {
	switch string(name) {
	case "jsonrpc":
		if string(value) != `"2.0"` {
			return 0, "jsonrpc member is not \"2.0\""
		}
		return sawVersion, ""
	case "id":
		switch value[0] {
		case '{', '[', 't', 'f':
			return 0, "id is neither string nor number"
		}
		m.ID = value
		return sawID, ""
	case "method":
		if value[0] == 'n' {
			return sawMethod, ""
		}
		if value[0] != '"' || len(value) == 2 {
			return 0, "method is not a name"
		}
		m.Method = unquote(value)
		return sawMethod, ""
	case "params":
		m.Params = value
		return sawParams, ""
	case "result":
		m.Result = value
		return sawResult, ""
	case "error":
		if value[0] != 'n' {
			m.Error = parseError(value)
		}
		return sawError, ""
	default:
		return 0, ""
	}
}

// parseError reads an error member. Whatever a peer sends there is an error:
// what is not an object becomes the message.
func parseError(value []byte) *Error {
	e := &Error{}
	if value[0] != '{' {
		e.Message = text(value)
		return e
	}
	for m, err := range Members(value) {
		if err != nil {
			break
		}
		switch string(m.Name) {
		case "code":
			e.Code, _ = Integer(m.Value)
		case "message":
			e.Message = text(m.Value)
		case "data":
			e.Data = m.Value
		}
	}
	return e
}

// text returns a JSON string's text, or any other value as it was written.
func text(value []byte) string {
	if value[0] == '"' {
		return unquote(value)
	}
	return string(value)
}

// Integer returns the integer that raw holds as a number or as a string of
// digits. It is for ids and progress tokens, which peers are known to change
// from one to the other.
func Integer(raw json.RawMessage) (int64, bool) {
	digits := []byte(raw)
	if len(digits) > 2 && digits[0] == '"' {
		digits = digits[1 : len(digits)-1]
	}
	if len(digits) == 0 || len(digits) > 24 {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || f != float64(int64(f)) || f < -1<<53 || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Append appends the message to line as one line without its line break. It
// returns an error and line unchanged if a raw member is not JSON, or if the
// message is none.
func (m Message) Append(line []byte) ([]byte, error) {
	head, body, err := m.split(line, oneLine)
	if err != nil {
		return line, err
	}
	return append(append(head, body...), '}'), nil
}

// A check returns a payload that stands inside depth objects as it goes into a
// line.
type check func(payload json.RawMessage, depth int) ([]byte, error)

// split appends all of the message to line but its last payload, which may be
// large, and the brace after it. The params or the result go through checked.
func (m Message) split(line []byte, checked check) (head, body []byte, err error) {
	fail := func(member string, err error) ([]byte, []byte, error) {
		return nil, nil, fmt.Errorf("%s: %w", member, err)
	}
	line = append(line, `{"jsonrpc":"2.0"`...)
	if m.ID != nil {
		switch {
		case len(m.ID) == 0 || bytes.IndexByte([]byte(`{[tf`), m.ID[0]) >= 0:
			return fail("id", errKind)
		case string(m.ID) == "null" && (m.Method != "" || m.Error == nil):
			return fail("id", errKind)
		}
		id, err := oneLine(m.ID, 1)
		if err != nil {
			return fail("id", err)
		}
		line = append(append(line, `,"id":`...), id...)
	}
	switch {
	case m.Method != "":
		line = appendString(append(line, `,"method":`...), m.Method)
		if m.Params == nil {
			return line, nil, nil
		}
		if body, err = checked(m.Params, 1); err != nil {
			return fail("params", err)
		}
		return append(line, `,"params":`...), body, nil
	case m.ID == nil:
		return fail("message", errKind)
	}
	if m.Result != nil {
		if body, err = checked(m.Result, 1); err != nil {
			return fail("result", err)
		}
		line = append(line, `,"result":`...)
	}
	if m.Error == nil {
		return line, body, nil
	}
	line = strconv.AppendInt(append(append(line, body...), `,"error":{"code":`...), m.Error.Code, 10)
	line = appendString(append(line, `,"message":`...), m.Error.Message)
	if m.Error.Data != nil {
		data, err := oneLine(m.Error.Data, 2)
		if err != nil {
			return fail("error data", err)
		}
		line = append(append(line, `,"data":`...), data...)
	}
	return append(line, '}'), nil, nil
}

// unbroken returns what is known to be JSON as one line.
func unbroken(raw json.RawMessage, depth int) ([]byte, error) {
	if len(raw) > 0 && bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	return oneLine(raw, depth)
}

// oneLine returns one JSON value that stands inside depth objects, without
// the whitespace around it. Line breaks would end the frame, so a value that
// has them is compacted.
func oneLine(raw json.RawMessage, depth int) ([]byte, error) {
	s := scanner{data: raw}
	s.space()
	start := s.pos
	s.broken = false
	if !s.value(depth) {
		return nil, s.err()
	}
	value, broken := raw[start:s.pos], s.broken
	if s.space(); s.pos != len(raw) {
		return nil, s.fail("data after the value")
	}
	if !broken {
		return value, nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.Bytes(), err
}
