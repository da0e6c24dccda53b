package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A Post is the body of an HTTP request on its way through the SDK: it keeps
// the params of its messages as they came, and the results of servers as they
// are to go. The zero value is a request without a body.
type Post struct {
	batch bool
	nonce string

	mu       sync.Mutex // guards deposits and, once the request is on its way, messages and body
	messages []jsonrpc.Message
	body     []byte
	deposits []json.RawMessage
}

// Read takes the body of a POST: a message, or a batch of them, which MCP
// 2025-03-26 alone allowed. The error is a [*jsonrpc.Error]. The Post keeps the
// body.
func (p *Post) Read(body []byte) error {
	p.body, p.nonce = body, rand.Text()
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		return p.readBatch()
	}
	m, err := parseBody(body)
	if err != nil {
		return err
	}
	p.messages = []jsonrpc.Message{m}
	return p.carryAnswer(m)
}

// Forget drops what was read and deposited.
func (p *Post) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.body, p.messages, p.deposits = nil, nil, nil
}

// carryAnswer puts the carrier of a client's result into the body in its place.
func (p *Post) carryAnswer(m jsonrpc.Message) error {
	if m.Result == nil {
		return nil
	}
	m.Result = CarryAnswer(m.Result)
	var err error
	if p.body, err = m.Append(nil); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	return nil
}

func parseBody(body []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.Parse(body)
	switch {
	case err == nil:
		return m, plainID(m.ID)
	case json.Valid(body):
		return m, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "not a JSON-RPC message: " + err.Error()}
	default:
		return m, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON: " + err.Error()}
	}
}

// plainID refuses an id that the SDK would make another of.
func plainID(id json.RawMessage) error {
	if _, err := ID(id); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	return nil
}

// readBatch marks the params of each message, because the SDK does not say
// which message of a body a request was.
func (p *Post) readBatch() error {
	if !json.Valid(p.body) {
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON"}
	}
	p.batch = true
	var marked [][]byte
	for element, err := range jsonrpc.Elements(p.body) {
		if err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON: " + err.Error()}
		}
		m, err := parseBody(element)
		if err != nil {
			return err
		}
		p.messages = append(p.messages, m)
		if m.Params, err = p.mark(m, len(p.messages)-1); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "params: " + err.Error()}
		}
		m.Result = CarryAnswer(m.Result)
		line, err := m.Append(nil)
		if err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
		}
		marked = append(marked, line)
	}
	if len(marked) == 0 {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "an empty batch"}
	}
	p.body = append(append([]byte("["), bytes.Join(marked, []byte(","))...), ']')
	return nil
}

// mark returns the params of a request with the number of its message in a
// place that no client can know.
func (p *Post) mark(m jsonrpc.Message, number int) (json.RawMessage, error) {
	params := m.Params
	if params == nil && mayLackParams(m.Method) {
		params = json.RawMessage("{}")
	}
	if m.Kind() != jsonrpc.Request || params == nil || params[0] != '{' {
		return m.Params, nil
	}
	meta := jsonrpc.Lookup(params, "_meta")
	if meta == nil || meta[0] != '{' {
		meta = json.RawMessage("{}")
	}
	meta, err := jsonrpc.With(meta, p.nonce, json.RawMessage(strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(params, "_meta", meta)
}

// mayLackParams reports whether requests of a method need no params.
func mayLackParams(method string) bool {
	switch method {
	case "ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}

// Malformed returns what is wrong with the requests of a Post, where the SDK
// would say it with another code than JSON-RPC has for it, or with none.
func (p *Post) Malformed() *jsonrpc.Error {
	for _, m := range p.messages {
		if problem := Malformed(m); problem != nil {
			return problem
		}
	}
	return nil
}

// Messages are what the body holds, in order; none without a body.
func (p *Post) Messages() []jsonrpc.Message { return p.messages }

// Batch reports whether the body is a batch.
func (p *Post) Batch() bool { return p.batch }

// Body is what is to go through the SDK in place of the body that came.
func (p *Post) Body() []byte { return p.body }

// Params returns the params of a request as they came.
func (p *Post) Params(req mcp.Request) (json.RawMessage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.Number(req)
	if !ok || number >= len(p.messages) {
		return nil, false
	}
	return p.messages[number].Params, true
}

// Number says which message of the body a request was.
func (p *Post) Number(req mcp.Request) (number int, ok bool) {
	if !p.batch {
		return 0, true
	}
	params := req.GetParams()
	if params == nil {
		return 0, false
	}
	mark, ok := params.GetMeta()[p.nonce].(float64)
	return int(mark), ok
}

const postPrefix = `{"dockgate.post":"`

// Deposit implements [Depository].
func (p *Post) Deposit(body json.RawMessage) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deposits = append(p.deposits, body)
	return fmt.Appendf(nil, `%s%s.%d"}`, postPrefix, p.nonce, len(p.deposits)-1)
}

// WriteTo writes what the SDK answers to w, with the results of servers where
// they belong. Nobody can forge the place of one: its name is random. It
// reports whether that was the last of the answer.
func (p *Post) WriteTo(w io.Writer, answer []byte) (last bool, err error) {
	for {
		before, body, after := p.cut(answer)
		if len(before) > 0 {
			if _, err := w.Write(before); err != nil {
				return false, err
			}
		}
		if body == nil {
			return last, nil
		}
		if _, err := w.Write(OneLine(body)); err != nil {
			return false, err
		}
		answer, last = after, !p.batch
	}
}

// cut finds the first deposit in answer.
func (p *Post) cut(answer []byte) (before, body, after []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.deposits) == 0 {
		return answer, nil, nil
	}
	before, rest, found := bytes.Cut(answer, []byte(postPrefix+p.nonce+"."))
	digits, after, ended := bytes.Cut(rest, []byte(`"}`))
	number, err := strconv.Atoi(string(digits))
	if !found || !ended || err != nil || number < 0 || number >= len(p.deposits) {
		return answer, nil, nil
	}
	body, p.deposits[number] = p.deposits[number], json.RawMessage("null")
	return before, body, after
}

// OneLine replaces line breaks, which would end a line of an event stream. In
// JSON they are whitespace only.
func OneLine(body []byte) []byte {
	if bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, '\r') < 0 {
		return body
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, body)
}
