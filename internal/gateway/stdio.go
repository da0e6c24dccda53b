package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A stdio is the transport of one client over a pair of streams (MCP:
// basic/transports/stdio). It stands in for the SDK's own, which decodes and
// encodes each message several times: here the params of a request are kept as
// they came, and a result goes from the server's line into the client's. A
// line that is no message is answered with a parse error, and the messages of
// a batch, which MCP 2025-03-26 alone allowed, one by one.
type stdio struct {
	in      io.ReadCloser
	out     io.WriteCloser
	writer  *jsonrpc.Writer
	arrived chan arrival
	// short is set once the session is known.
	short atomic.Pointer[shortcut]

	mu sync.Mutex
	// bodies are results on their way through the SDK, which sees their number.
	bodies map[uint64]json.RawMessage
	last   uint64

	closing sync.Once
	closed  chan struct{}
	err     error // of closing
}

// An arrival is what a read has brought.
type arrival struct {
	message jsonrpc.Message
	err     error
}

func newStdio(in io.ReadCloser, out io.WriteCloser) *stdio {
	return &stdio{
		in: in, out: out, writer: jsonrpc.NewWriter(out), arrived: make(chan arrival),
		bodies: make(map[uint64]json.RawMessage), closed: make(chan struct{}),
	}
}

// Connect implements [mcp.Transport].
func (s *stdio) Connect(context.Context) (mcp.Connection, error) {
	// Closing standard input does not end a read of it that is under way, so
	// nothing waits for this goroutine: it ends with the next line, at the
	// latest with the process.
	go s.read()
	return s, nil
}

func (s *stdio) read() {
	reader := jsonrpc.NewReader(s.in, jsonrpc.ReaderOptions{Limit: maxLine, Dropped: s.refuse})
	for {
		message, err := reader.Read()
		var long *jsonrpc.LineError
		if errors.As(err, &long) {
			s.refuseLong(long)
			continue
		}
		select {
		case s.arrived <- arrival{message, err}:
		case <-s.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// refuse answers a line that is no message (JSON-RPC 2.0, section 5.1).
func (s *stdio) refuse(_ []byte, reason string) {
	s.answer(json.RawMessage("null"), jsonrpc.CodeParseError, "not a JSON-RPC message: "+reason)
}

// refuseLong answers a message that was not kept, by its id where it was seen.
func (s *stdio) refuseLong(long *jsonrpc.LineError) {
	id := long.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	s.answer(id, jsonrpc.CodeInvalidRequest, long.Error())
}

func (s *stdio) answer(id json.RawMessage, code int64, problem string) {
	// If it breaks, the next Write says so.
	_ = s.writer.Write(jsonrpc.Message{ID: id, Error: &jsonrpc.Error{Code: code, Message: problem}})
}

// SessionID implements [mcp.Connection]: a pair of streams has one session.
func (s *stdio) SessionID() string { return "" }

// Close implements [mcp.Connection].
func (s *stdio) Close() error {
	s.closing.Do(func() {
		s.err = errors.Join(s.in.Close(), s.out.Close())
		close(s.closed)
	})
	<-s.closed
	return s.err
}

// Read implements [mcp.Connection].
func (s *stdio) Read(ctx context.Context) (sdkjsonrpc.Message, error) {
	for {
		select {
		case next := <-s.arrived:
			if next.err != nil {
				return nil, next.err
			}
			if short := s.short.Load(); short != nil && short.take(next.message) { //nolint:contextcheck // a call is its session's, not the reader's
				continue
			}
			if problem := malformed(next.message); problem != nil {
				s.answer(next.message.ID, problem.Code, problem.Message)
				continue
			}
			message, err := fromWire(next.message)
			if err == nil {
				return message, nil
			}
			s.answer(next.message.ID, jsonrpc.CodeInvalidRequest, err.Error())
		case <-s.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Write implements [mcp.Connection].
func (s *stdio) Write(ctx context.Context, message sdkjsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wire, err := toWire(message)
	if err != nil {
		return err
	}
	if body, ok := s.withdraw(wire.Result); ok {
		wire.Result = body
	}
	if wire.Error != nil && wire.Error.Code == jsonrpc.CodeInternalError && !s.introduced() {
		wire.Error.Code = jsonrpc.CodeInvalidRequest // it asks for something before initialize
	}
	return s.writer.Pass(wire)
}

// introduced reports whether the client has begun its session, or needs none.
func (s *stdio) introduced() bool {
	short := s.short.Load()
	return short != nil && short.to.InitializeParams() != nil
}

const depositPrefix = `{"dockgate.body":`

// deposit keeps a result and returns what goes through the SDK in its place.
// No server can forge one: its own results are all deposited.
func (s *stdio) deposit(body json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.bodies[s.last] = body
	return append(strconv.AppendUint([]byte(depositPrefix), s.last, 10), '}')
}

func (s *stdio) withdraw(result json.RawMessage) (json.RawMessage, bool) {
	digits, ok := bytes.CutPrefix(result, []byte(depositPrefix))
	if !ok {
		return nil, false
	}
	number, err := strconv.ParseUint(string(bytes.TrimSuffix(digits, []byte("}"))), 10, 64)
	if err != nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.bodies[number]
	delete(s.bodies, number)
	return body, ok
}

// fromWire makes a message of the SDK's. The params go beside it as they
// came: the extra part of a request is the only one that the SDK passes on.
func fromWire(m jsonrpc.Message) (sdkjsonrpc.Message, error) {
	id, err := sdkID(m.ID)
	if err != nil {
		return nil, err
	}
	if m.Kind() == jsonrpc.Response {
		response := &sdkjsonrpc.Response{ID: id, Result: CarryAnswer(m.Result)}
		if m.Error != nil {
			response.Error = &sdkjsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
		}
		return response, nil
	}
	return &sdkjsonrpc.Request{
		ID: id, Method: m.Method, Params: m.Params,
		Extra: &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{paramsKey: m.Params}}},
	}, nil
}

func sdkID(raw json.RawMessage) (sdkjsonrpc.ID, error) {
	switch {
	case raw == nil || string(raw) == "null":
		return sdkjsonrpc.ID{}, nil
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return sdkjsonrpc.ID{}, err
		}
		return sdkjsonrpc.MakeID(text)
	}
	number, ok := jsonrpc.Integer(raw)
	if !ok || number > 1<<53 || number < -1<<53 {
		return sdkjsonrpc.ID{}, fmt.Errorf("id %s is not a whole number below 2^53, nor a text", raw)
	}
	return sdkjsonrpc.MakeID(float64(number))
}

// toWire makes one of our messages of the SDK's.
func toWire(message sdkjsonrpc.Message) (jsonrpc.Message, error) {
	switch m := message.(type) {
	case *sdkjsonrpc.Request:
		wire := jsonrpc.Message{Method: m.Method, Params: m.Params}
		if !m.ID.IsValid() {
			return wire, nil
		}
		id, err := json.Marshal(m.ID.Raw())
		wire.ID = id
		return wire, err
	case *sdkjsonrpc.Response:
		id, err := json.Marshal(m.ID.Raw())
		wire := jsonrpc.Message{ID: id, Result: m.Result}
		if m.Error != nil {
			wire.Error = errorToWire(m.Error)
		}
		return wire, err
	default:
		return jsonrpc.Message{}, fmt.Errorf("unknown message %T", message)
	}
}

// errorToWire keeps the code of a wrapped error, as the SDK does. Without one
// it is an internal error.
func errorToWire(err error) *jsonrpc.Error {
	var wire *sdkjsonrpc.Error
	switch {
	case errors.As(err, &wire) && err == error(wire): //nolint:errorlint // whether it is wrapped is the question
		return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	case wire != nil:
		return &jsonrpc.Error{Code: wire.Code, Message: err.Error()}
	default:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
}
