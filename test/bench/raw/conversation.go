// Package raw is the cheapest MCP client there can be: it writes lines and
// reads lines, so that what it costs does not hide what it measures.
//
// It speaks the versions up to 2025-11-25 and takes no requests of a server.
package raw

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A Conversation is with one server, over a pair of streams that are the
// caller's to close. It is for one goroutine.
type Conversation struct {
	lines *bufio.Reader
	out   io.Writer
	id    int64
	line  []byte
}

// New returns a Conversation in which nothing was said yet.
func New(in io.Reader, out io.Writer) *Conversation {
	return &Conversation{lines: bufio.NewReaderSize(in, 64<<10), out: out}
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dockgate-bench","version":"1"}}`

// Initialize opens the conversation.
func (c *Conversation) Initialize() error {
	if _, err := c.Request("initialize", []byte(hello)); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return err
}

// Request returns the result of a request. An error response is a
// [*jsonrpc.Error].
func (c *Conversation) Request(method string, params []byte) (json.RawMessage, error) {
	id, err := c.send(method, params)
	if err != nil {
		return nil, err
	}
	for {
		m, err := c.receive()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", method, err)
		case m.Kind() != jsonrpc.Response:
			continue
		case string(m.ID) != strconv.FormatInt(id, 10):
			return nil, fmt.Errorf("%s: answer to %s, want %d", method, m.ID, id)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %w", method, m.Error)
		}
		return m.Result, nil
	}
}

// Call makes a tools/call. A result that says it is an error is one.
func (c *Conversation) Call(params []byte) (json.RawMessage, error) {
	result, err := c.Request("tools/call", params)
	if err != nil {
		return nil, err
	}
	return result, failed(result)
}

func failed(result json.RawMessage) error {
	if bytes.Contains(result, []byte(`"isError":true`)) {
		return fmt.Errorf("tools/call: %.300s", result)
	}
	return nil
}

// Flood makes count tools/calls and keeps width of them in flight.
func (c *Conversation) Flood(params []byte, count, width int) error {
	pending := make(map[int64]bool, width)
	send := func() error {
		id, err := c.send("tools/call", params)
		pending[id] = true
		return err
	}
	for range min(width, count) {
		if err := send(); err != nil {
			return err
		}
	}
	for sent := len(pending); len(pending) > 0; {
		m, err := c.receive()
		if err != nil {
			return fmt.Errorf("tools/call: %w", err)
		}
		if m.Kind() != jsonrpc.Response {
			continue
		}
		id, ok := jsonrpc.Integer(m.ID)
		switch {
		case !ok || !pending[id]:
			return fmt.Errorf("tools/call: answer to %s, which is not pending", m.ID)
		case m.Error != nil:
			return fmt.Errorf("tools/call: %w", m.Error)
		}
		if err := failed(m.Result); err != nil {
			return err
		}
		delete(pending, id)
		if sent < count {
			sent++
			if err := send(); err != nil {
				return err
			}
		}
	}
	return nil
}

// headSize is how much of a line Drain looks at.
const headSize = 256

// Drain makes a tools/call, reads the answer without keeping it, and returns
// how many bytes it had. It is for answers so large that taking them apart
// would be most of the time. The server must write the id before the result.
func (c *Conversation) Drain(params []byte) (size int, err error) {
	id, err := c.send("tools/call", params)
	if err != nil {
		return 0, err
	}
	answer := []byte(`"id":` + strconv.FormatInt(id, 10) + `,"result":`)
	for {
		var head []byte
		head, size, err = c.skip()
		switch {
		case err != nil:
			return 0, fmt.Errorf("tools/call: %w", err)
		case bytes.Contains(head, []byte(`"isError":true`)), bytes.Contains(head, []byte(`"error":`)):
			return 0, fmt.Errorf("tools/call: %s", head)
		case bytes.Contains(head, answer):
			return size, nil
		}
	}
}

func (c *Conversation) send(method string, params []byte) (int64, error) {
	c.id++
	line := append(c.line[:0], `{"jsonrpc":"2.0","id":`...)
	line = strconv.AppendInt(line, c.id, 10)
	line = append(line, `,"method":"`...)
	line = append(line, method...)
	line = append(line, '"')
	if params != nil {
		line = append(line, `,"params":`...)
		line = append(line, params...)
	}
	c.line = append(line, "}\n"...)
	if _, err := c.out.Write(c.line); err != nil {
		return 0, fmt.Errorf("%s: %w", method, err)
	}
	return c.id, nil
}

// receive returns the next message. A line that is none is an error.
func (c *Conversation) receive() (jsonrpc.Message, error) {
	line, err := c.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		line, err = c.lines.ReadBytes('\n')
		line = append(long, line...)
	}
	if err != nil {
		return jsonrpc.Message{}, noEOF(err)
	}
	return jsonrpc.Parse(line)
}

// skip reads a line, and returns how it began and how long it was.
func (c *Conversation) skip() (head []byte, size int, err error) {
	for {
		part, err := c.lines.ReadSlice('\n')
		if len(head) < headSize {
			head = append(head, part[:min(len(part), headSize-len(head))]...)
		}
		size += len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return head, size, noEOF(err)
		}
	}
}

// noEOF turns the end of the stream, which nobody expects, into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
