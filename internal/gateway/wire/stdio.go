package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// maxLine is the longest message that a client may send, in bytes.
const maxLine = 16 << 20

// A Stdio is the transport of one client over a pair of streams (MCP:
// basic/transports/stdio). It stands in for the SDK's own, which decodes and
// encodes each message several times: here the params of a request are kept as
// they came, and a result goes from the server's line into the client's. A
// line that is no message is answered with a parse error, and the messages of
// a batch, which MCP 2025-03-26 alone allowed, one by one.
type Stdio struct {
	in      io.ReadCloser
	out     io.WriteCloser
	writer  *jsonrpc.Writer
	arrived chan arrival
	// short is set once the session is known.
	short atomic.Pointer[Shortcut]

	mu sync.Mutex
	// bodies are results on their way through the SDK, which sees their number.
	bodies map[uint64]json.RawMessage
	last   uint64

	closing sync.Once
	closed  chan struct{}
	err     error // of closing
}

// A Shortcut answers messages past the SDK.
type Shortcut interface {
	// Take answers a message, or returns false for one that is the SDK's.
	Take(m jsonrpc.Message) bool
	// Introduced reports whether the client has begun its session.
	Introduced() bool
}

// Shorten offers each message that comes from now on to a shortcut first.
func (s *Stdio) Shorten(past Shortcut) { s.short.Store(&past) }

// Pass writes an answer as it is, see [jsonrpc.Writer.Pass].
func (s *Stdio) Pass(answer jsonrpc.Message) error { return s.writer.Pass(answer) }

// An arrival is what a read has brought.
type arrival struct {
	message jsonrpc.Message
	err     error
}

// NewStdio returns the transport over a pair of streams, which it closes.
func NewStdio(in io.ReadCloser, out io.WriteCloser) *Stdio {
	return &Stdio{
		in: in, out: out, writer: jsonrpc.NewWriter(out), arrived: make(chan arrival),
		bodies: make(map[uint64]json.RawMessage), closed: make(chan struct{}),
	}
}

// Connect implements [mcp.Transport].
func (s *Stdio) Connect(context.Context) (mcp.Connection, error) {
	// Closing standard input does not end a read of it that is under way, so
	// nothing waits for this goroutine: it ends with the next line, at the
	// latest with the process.
	go s.read()
	return s, nil
}

func (s *Stdio) read() {
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
func (s *Stdio) refuse(_ []byte, reason string) {
	s.Refuse(json.RawMessage("null"), jsonrpc.CodeParseError, "not a JSON-RPC message: "+reason)
}

// refuseLong answers a message that was not kept, by its id where it was seen.
func (s *Stdio) refuseLong(long *jsonrpc.LineError) {
	id := long.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	s.Refuse(id, jsonrpc.CodeInvalidRequest, long.Error())
}

// Refuse answers a request with an error.
func (s *Stdio) Refuse(id json.RawMessage, code int64, problem string) {
	// If it breaks, the next Write says so.
	_ = s.writer.Write(jsonrpc.Message{ID: id, Error: &jsonrpc.Error{Code: code, Message: problem}})
}

// SessionID implements [mcp.Connection]: a pair of streams has one session.
func (s *Stdio) SessionID() string { return "" }

// Close implements [mcp.Connection].
func (s *Stdio) Close() error {
	s.closing.Do(func() {
		s.err = errors.Join(s.in.Close(), s.out.Close())
		close(s.closed)
	})
	<-s.closed
	return s.err
}

// Read implements [mcp.Connection].
func (s *Stdio) Read(ctx context.Context) (sdkjsonrpc.Message, error) {
	for {
		select {
		case next := <-s.arrived:
			if next.err != nil {
				return nil, next.err
			}
			if short := s.short.Load(); short != nil && (*short).Take(next.message) { //nolint:contextcheck // a call is its session's, not the reader's
				continue
			}
			if problem := Malformed(next.message); problem != nil {
				s.Refuse(next.message.ID, problem.Code, problem.Message)
				continue
			}
			message, err := fromWire(next.message)
			if err == nil {
				return message, nil
			}
			s.Refuse(next.message.ID, jsonrpc.CodeInvalidRequest, err.Error())
		case <-s.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Write implements [mcp.Connection].
func (s *Stdio) Write(ctx context.Context, message sdkjsonrpc.Message) error {
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
func (s *Stdio) introduced() bool {
	short := s.short.Load()
	return short != nil && (*short).Introduced()
}

const depositPrefix = `{"dockgate.body":`

// Deposit implements [Depository]. No server can forge one: its own results are all deposited.
func (s *Stdio) Deposit(body json.RawMessage) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.bodies[s.last] = body
	return append(strconv.AppendUint([]byte(depositPrefix), s.last, 10), '}')
}

func (s *Stdio) withdraw(result json.RawMessage) (json.RawMessage, bool) {
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
