package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A shortcut leads the calls of tools of a client on stdio past the SDK, which
// decodes each message twice into buffers of 32 KiB and hands it through three
// goroutines. What a call means is decided by the same code; only its way from
// the line and back is shorter. It is for clients with sessions: without one
// every request has to be read for what the client says of itself.
type shortcut struct {
	gateway *Gateway
	to      *mcp.ServerSession
	session *session
	stream  *wire.Stdio

	mu    sync.Mutex
	calls map[string]context.CancelFunc // those under way, by their ids as they were written
}

// Take implements [wire.Shortcut].
func (c *shortcut) Take(m jsonrpc.Message) bool {
	switch {
	case m.Method == "notifications/cancelled":
		return c.cancel(m.Params)
	case m.Method != "tools/call" || m.Kind() != jsonrpc.Request:
		return false
	}
	hello := c.to.InitializeParams()
	if hello == nil || era.IsModern(hello.ProtocolVersion) || era.Meta(m.Params, era.MetaVersion) != nil {
		return false
	}
	var name string
	if json.Unmarshal(jsonrpc.Lookup(m.Params, "name"), &name) != nil {
		return false
	}
	ctx, cancel := context.WithCancel(c.session.ended)
	id := string(m.ID)
	if !c.begin(id, cancel) {
		cancel()
		return false
	}
	req := &mcp.CallToolRequest{
		Session: c.to, Params: &mcp.CallToolParamsRaw{Name: name},
		Extra: wire.Beside(m.Params),
	}
	ended := c.session.visit.begin(cancel)
	c.session.calls.Go(func() {
		defer cancel()
		defer ended()
		result, err := c.gateway.callTool(ctx, req)
		if c.end(id) { // else the client has given it up, and wants no answer
			c.reply(m.ID, result, err)
		}
	})
	return true
}

// Introduced implements [wire.Shortcut].
func (c *shortcut) Introduced() bool { return c.to.InitializeParams() != nil }

func (c *shortcut) reply(id json.RawMessage, result mcp.Result, err error) {
	answer := jsonrpc.Message{ID: id}
	if raw, ok := result.(*wire.Result); ok && err == nil {
		answer.Result = raw.Body // of a Reader, or of ours
	} else {
		answer.Error = wire.FromSDK(wire.ToSDK(err))
	}
	err = c.stream.Pass(answer)
	var invalid *jsonrpc.MessageError
	if errors.As(err, &invalid) { // a result that is no JSON; else the stream has ended, and the SDK sees it
		c.stream.Refuse(id, jsonrpc.CodeInternalError, err.Error())
	}
}

// begin notes a call, unless there is one of its id.
func (c *shortcut) begin(id string, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.calls[id]; twice {
		return false
	}
	c.calls[id] = cancel
	return true
}

// end forgets a call, and reports whether it was not given up meanwhile.
func (c *shortcut) end(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.calls[id]
	delete(c.calls, id)
	return ok
}

// cancel gives up a call that is under way here.
func (c *shortcut) cancel(params json.RawMessage) bool {
	id := string(jsonrpc.Lookup(params, "requestId"))
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel, ok := c.calls[id]
	if ok {
		delete(c.calls, id)
		cancel()
	}
	return ok
}
