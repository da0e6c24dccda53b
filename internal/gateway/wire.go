package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The SDK decodes params and results into its own types, and what these do
// not know is lost. The types here carry the bytes around that: into the
// middleware beside a request, and out of it in place of a result or of the
// params of a notification.

// A rawTransport keeps the params of each request beside it.
type rawTransport struct{ mcp.Transport }

// Connect connects the transport below. Of a pair of streams it takes the
// streams themselves: the SDK's connection over them takes each message apart
// four times, with a new buffer of 32 KiB each time.
func (t rawTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	if streams, ok := t.Transport.(*mcp.IOTransport); ok {
		return rawConnection{newLineConnection(streams)}, nil
	}
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rawConnection{connection}, nil
}

type rawConnection struct{ mcp.Connection }

const paramsKey = "dockgate.params"

// Read puts the raw params where the middleware finds them: the extra part of
// a request is the only one that the SDK passes on as it is.
func (c rawConnection) Read(ctx context.Context) (sdkjsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if request, ok := message.(*sdkjsonrpc.Request); ok && request.Extra == nil {
		request.Extra = &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{paramsKey: request.Params}}}
	}
	return message, err
}

// paramsOf returns the params of a request as the client sent them.
func paramsOf(req mcp.Request) (json.RawMessage, error) {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if raw, ok := extra.TokenInfo.Extra[paramsKey].(json.RawMessage); ok {
			return raw, nil
		}
	}
	return json.Marshal(req.GetParams())
}

// A lineConnection carries messages as lines (MCP: basic/transports/stdio). A
// line that is no message is answered with a parse error and the connection
// goes on; a line that is too long ends it. The messages of a batch, which MCP
// 2025-03-26 alone allowed, are answered one by one.
type lineConnection struct {
	in      io.Closer
	out     io.Closer
	writer  *jsonrpc.Writer
	arrived chan arrival

	closing sync.Once
	closed  chan struct{}
	err     error // of closing
}

// An arrival is what a read has brought.
type arrival struct {
	message jsonrpc.Message
	err     error
}

func newLineConnection(streams *mcp.IOTransport) *lineConnection {
	c := &lineConnection{
		in:      streams.Reader,
		out:     streams.Writer,
		writer:  jsonrpc.NewWriter(streams.Writer),
		arrived: make(chan arrival),
		closed:  make(chan struct{}),
	}
	reader := jsonrpc.NewReader(streams.Reader, jsonrpc.ReaderOptions{Limit: streams.MaxLineLength, Dropped: c.refuse})
	// Closing standard input does not end a read of it that is under way, so
	// nothing waits for this goroutine: it ends with the next line, at the
	// latest with the process.
	go c.read(reader)
	return c
}

func (c *lineConnection) read(reader *jsonrpc.Reader) {
	for {
		message, err := reader.Read()
		select {
		case c.arrived <- arrival{message, err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// refuse answers a line that is no message (JSON-RPC 2.0, section 5.1).
func (c *lineConnection) refuse(_ []byte, reason string) {
	_ = c.writer.Write(jsonrpc.Message{ // if it breaks, the next Write says so
		ID:    json.RawMessage("null"),
		Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not a JSON-RPC message: " + reason},
	})
}

// Read returns the next message.
func (c *lineConnection) Read(ctx context.Context) (sdkjsonrpc.Message, error) {
	select {
	case next := <-c.arrived:
		if next.err != nil {
			return nil, next.err
		}
		return forSDK(next.message)
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forSDK returns a message as the SDK has it.
func forSDK(m jsonrpc.Message) (sdkjsonrpc.Message, error) {
	var value any
	if m.ID != nil {
		if err := json.Unmarshal(m.ID, &value); err != nil {
			return nil, err
		}
	}
	id, err := sdkjsonrpc.MakeID(value)
	switch {
	case err != nil:
		return nil, err
	case m.Kind() != jsonrpc.Response:
		return &sdkjsonrpc.Request{ID: id, Method: m.Method, Params: m.Params}, nil
	case m.Error != nil:
		return &sdkjsonrpc.Response{ID: id, Error: wireError(m.Error)}, nil
	default:
		return &sdkjsonrpc.Response{ID: id, Result: m.Result}, nil
	}
}

// Write writes a message. A result goes out as it is, not encoded once more.
func (c *lineConnection) Write(ctx context.Context, message sdkjsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if response, ok := message.(*sdkjsonrpc.Response); ok && response.Error == nil {
		id, err := json.Marshal(response.ID.Raw())
		if err != nil {
			return err
		}
		return c.writer.Write(jsonrpc.Message{ID: id, Result: response.Result})
	}
	line, err := sdkjsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	m, err := jsonrpc.Parse(line)
	if err != nil {
		return err
	}
	return c.writer.Write(m)
}

// Close closes both streams.
func (c *lineConnection) Close() error {
	c.closing.Do(func() {
		c.err = errors.Join(c.in.Close(), c.out.Close())
		close(c.closed)
	})
	<-c.closed
	return c.err
}

// SessionID is empty: a pair of streams is one session.
func (c *lineConnection) SessionID() string { return "" }

// A rawResult is a result as the bytes that a server sent.
type rawResult struct {
	mcp.ResultBase
	body json.RawMessage
}

// MarshalJSON returns the bytes.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.body, nil }

// rawParams are the params of a notification as bytes.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON returns the bytes.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.body, nil }

type rawProgressKey struct{}

// notifyProgress sends the raw params of a progress notification.
func notifyProgress(ctx context.Context, to *mcp.ServerSession, params json.RawMessage) error {
	return to.NotifyProgress(context.WithValue(ctx, rawProgressKey{}, params), &mcp.ProgressNotificationParams{})
}

// sendRaw replaces the params of a notification by the raw ones in its context.
func sendRaw(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		raw, ok := ctx.Value(rawProgressKey{}).(json.RawMessage)
		if !ok || method != "notifications/progress" {
			return next(ctx, method, req)
		}
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		return next(ctx, method, &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{body: raw}})
	}
}

// wireError returns a server's own error so that the SDK sends it as it is.
func wireError(err error) error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) {
		return &sdkjsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	}
	return err
}
