package gateway

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Calls of tools over HTTP go past the SDK, too, see [shortcut]: it decodes
// each several times and hands it through four goroutines. These are the calls
// during which the client cannot be sent anything but the answer, since only
// the SDK knows on which stream of a session the rest goes.

// Direct answers the one message of a [Visit] past the SDK, or returns false
// for what is the SDK's. The Visit's request has passed all checks of its
// headers; one with a session has entered it. A session's call goes on when
// ctx ends, as its client may want (MCP 2025-11-25: basic/transports, "Sending
// Messages to the Server"), and there is no answer then, whose ID is nil; any
// other call ends with it.
func (g *Gateway) Direct(ctx context.Context, v *Visit) (answer jsonrpc.Message, ok bool) {
	if v.Batch() || len(v.Messages()) != 1 || v.Messages()[0].Kind() != jsonrpc.Request || v.Messages()[0].Method != "tools/call" {
		return answer, false
	}
	name, ok := plainCall(v.Messages()[0].Params)
	if !ok {
		return answer, false
	}
	req := &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: name}, Extra: &mcp.RequestExtra{TokenInfo: v.TokenInfo()},
	}
	if v.session != nil {
		return g.directInSession(ctx, v, req)
	}
	return g.directModern(ctx, v, req)
}

// Cancel gives up the call that a notification means, and reports whether that
// was one that Direct answers.
func (g *Gateway) Cancel(v *Visit) bool {
	if v.session == nil || v.Batch() || len(v.Messages()) != 1 || v.Messages()[0].Kind() != jsonrpc.Notification ||
		v.Messages()[0].Method != "notifications/cancelled" {
		return false
	}
	return v.session.attendance.cancelled(v.Messages()[0].Params)
}

// plainCall returns the name of the tool that is called, if there is nothing
// in the params that the SDK would refuse, or that wants more than an answer.
func plainCall(params json.RawMessage) (name string, ok bool) {
	if len(params) == 0 || params[0] != '{' {
		return "", false
	}
	for m, err := range jsonrpc.Members(params) {
		if err != nil {
			return "", false
		}
		switch string(m.Name) {
		case "name":
			if ok = json.Unmarshal(m.Value, &name) == nil && m.Value[0] == '"'; !ok {
				return "", false
			}
		case "_meta":
			if m.Value[0] != '{' || jsonrpc.Lookup(m.Value, "progressToken") != nil {
				return "", false
			}
		case "inputResponses", "requestState":
			return "", false
		}
	}
	return name, ok
}

// directInSession answers a call of a client with sessions.
//
//nolint:contextcheck // the call is its session's, not the HTTP request's
func (g *Gateway) directInSession(ctx context.Context, v *Visit, req *mcp.CallToolRequest) (jsonrpc.Message, bool) {
	s := v.session
	req.Session = s.watcher.to
	if !s.silent() || era.Meta(v.Messages()[0].Params, era.MetaVersion) != nil {
		return jsonrpc.Message{}, false
	}
	call, cancel := context.WithCancel(s.ended)
	free := s.attendance.start(v.errands[0], cancel)
	s.attendance.enter() // for itself: it may take longer than the HTTP request
	ended := v.begin(cancel)
	answered := make(chan jsonrpc.Message, 1)
	began := g.begin(s, func() {
		defer cancel()
		result, err := g.callTool(call, req)
		free()
		s.attendance.leave()
		ended()
		answered <- answerTo(v.Messages()[0].ID, result, err)
	})
	if !began { // the SDK says so
		cancel()
		free()
		s.attendance.leave()
		ended()
		return jsonrpc.Message{}, false
	}
	select {
	case answer := <-answered:
		return answer, true
	case <-ctx.Done():
		return jsonrpc.Message{}, true
	}
}

// begin begins a call that its session waits for at its end, unless it has come
// to that.
func (g *Gateway) begin(s *session, do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.watcher.to] != s {
		return false
	}
	s.calls.Go(do)
	return true
}

// silent reports whether the client of a session cannot be sent anything
// during a call: it can be asked nothing, and wants no log.
func (s *session) silent() bool {
	hello := s.watcher.to.InitializeParams()
	if hello == nil || era.IsModern(hello.ProtocolVersion) || takesForms(hello.Capabilities) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.declared.can.Any() && era.Severity(s.level) < 0
}

// directModern answers a call of a client without sessions. What such a client
// is asked is an answer, too.
func (g *Gateway) directModern(ctx context.Context, v *Visit, req *mcp.CallToolRequest) (jsonrpc.Message, bool) {
	m := v.Messages()[0]
	meta := jsonrpc.Lookup(m.Params, "_meta")
	if string(jsonrpc.Lookup(meta, era.MetaVersion)) != `"`+era.Modern+`"` || jsonrpc.Lookup(meta, era.MetaLogLevel) != nil {
		return jsonrpc.Message{}, false
	}
	capabilities := jsonrpc.Lookup(meta, era.MetaCapabilities)
	if !wire.Decodes[mcp.ClientCapabilities](capabilities) {
		return jsonrpc.Message{}, false
	}
	if who := jsonrpc.Lookup(meta, "io.modelcontextprotocol/clientInfo"); who != nil && !wire.Decodes[mcp.Implementation](who) {
		return jsonrpc.Message{}, false
	}
	req.Params.Meta = mcp.Meta{era.MetaVersion: era.Modern}
	ctx, done := g.during(ctx, m.Method, req)
	defer done()
	result, err := g.callTool(ctx, req)
	return answerTo(m.ID, result, err), true
}

func answerTo(id json.RawMessage, result mcp.Result, err error) jsonrpc.Message {
	answer := jsonrpc.Message{ID: id}
	raw, ok := result.(*wire.Result)
	if err != nil || !ok {
		answer.Error = wire.FromSDK(wire.ToSDK(err))
		return answer
	}
	answer.Result = wire.OneLine(raw.Body)
	return answer
}
