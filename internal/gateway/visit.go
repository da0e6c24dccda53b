package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

// A Visit is one HTTP request on its way through the SDK (MCP:
// basic/transports, "Streamable HTTP"). The SDK decodes and encodes what it
// carries; a Visit keeps the params of its messages as they came, and the
// results of servers as they are to go.
type Visit struct {
	// Principal is who makes the request.
	Principal principal.Principal
	// Ending is closed when the streams that only wait for news are to end
	// well; nil if they never are.
	Ending <-chan struct{}
	// Timeout is how long a session that the request begins may be unused; zero
	// is for ever.
	Timeout time.Duration
	// Begun, if not nil, is told of each request that begins to be answered; what
	// it returns is called when that has ended. Both can be after the HTTP request.
	Begun func() (ended func())
	// Watch, if not nil, calls giveUp when the caller may not use the gateway any
	// more, unless stop is called before.
	Watch func(giveUp func()) (stop func())
	// WatchParked is Watch for a call that waits for an answer, which comes with
	// another request; nil if that may have another credential.
	WatchParked func(giveUp func()) (stop func())

	messages []jsonrpc.Message
	batch    bool
	body     []byte
	nonce    string

	mu       sync.Mutex // guards what follows and, once the request is on its way, messages and body
	deposits []json.RawMessage
	// session is the one with sessions in which the request is counted; nil if
	// there is none. errands are then its messages that are requests, the others
	// are nil.
	session *session
	errands []*errand
}

// NewVisit reads the body of a POST: a message, or a batch of them, which MCP
// 2025-03-26 alone allowed. The error is a [*jsonrpc.Error]. The Visit keeps
// the body.
func NewVisit(who principal.Principal, body []byte) (*Visit, error) {
	v := &Visit{Principal: who, body: body, nonce: rand.Text()}
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		return v, v.readBatch()
	}
	m, err := parseBody(body)
	if err != nil {
		return v, err
	}
	v.messages = []jsonrpc.Message{m}
	return v, v.carryAnswer(m)
}

// carryAnswer puts the carrier of a client's result into the body in its place.
func (v *Visit) carryAnswer(m jsonrpc.Message) error {
	if m.Result == nil {
		return nil
	}
	m.Result = CarryAnswer(m.Result)
	var err error
	if v.body, err = m.Append(nil); err != nil {
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
	if _, err := sdkID(id); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	return nil
}

const visitKey = "dockgate.visit"

// readBatch marks the params of each message, because the SDK does not say
// which message of a body a request was.
func (v *Visit) readBatch() error {
	if !json.Valid(v.body) {
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON"}
	}
	v.batch = true
	var marked [][]byte
	for element, err := range jsonrpc.Elements(v.body) {
		if err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON: " + err.Error()}
		}
		m, err := parseBody(element)
		if err != nil {
			return err
		}
		v.messages = append(v.messages, m)
		if m.Params, err = v.mark(m, len(v.messages)-1); err != nil {
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
	v.body = append(append([]byte("["), bytes.Join(marked, []byte(","))...), ']')
	return nil
}

// mark returns the params of a request with the number of its message in a
// place that no client can know.
func (v *Visit) mark(m jsonrpc.Message, number int) (json.RawMessage, error) {
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
	meta, err := jsonrpc.With(meta, v.nonce, json.RawMessage(strconv.Itoa(number)))
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

// Messages are what the body holds, in order; none for a Visit without a body.
func (v *Visit) Messages() []jsonrpc.Message { return v.messages }

// Batch reports whether the body is a batch.
func (v *Visit) Batch() bool { return v.batch }

// Release is called when the request of a Visit is over: it leaves its session.
// What a Visit has brought that begins one is forgotten, since the session
// keeps the Visit for as long as it lives.
func (v *Visit) Release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.session != nil {
		v.session.attendance.dismiss(v.errands)
		v.session = nil
	}
	if len(v.messages) == 1 && v.messages[0].Method == "initialize" {
		v.body, v.messages, v.deposits, v.Begun, v.Watch, v.WatchParked = nil, nil, nil, nil, nil, nil
	}
}

// Entered reports whether the request is one of a session, see [Gateway.Enter].
func (v *Visit) Entered() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session != nil
}

// Body is what is to go through the SDK in place of the body that came.
func (v *Visit) Body() []byte { return v.body }

// TokenInfo carries the Visit through the SDK, which passes on nothing else
// beside a request, and binds sessions to their principal.
func (v *Visit) TokenInfo() *auth.TokenInfo {
	return &auth.TokenInfo{UserID: v.Principal.ID + "\x00" + v.Principal.Role, Extra: map[string]any{visitKey: v}}
}

// visitOf returns the Visit that brought a request, or nil.
func visitOf(req mcp.Request) *Visit {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	v, _ := extra.TokenInfo.Extra[visitKey].(*Visit)
	return v
}

// params returns the params of a request as they came.
func (v *Visit) params(req mcp.Request) (json.RawMessage, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	number, ok := v.number(req)
	if !ok || number >= len(v.messages) {
		return nil, false
	}
	return v.messages[number].Params, true
}

// number says which message of the body a request was. v.mu is held.
func (v *Visit) number(req mcp.Request) (number int, ok bool) {
	if !v.batch {
		return 0, true
	}
	params := req.GetParams()
	if params == nil {
		return 0, false
	}
	mark, ok := params.GetMeta()[v.nonce].(float64)
	return int(mark), ok
}

const visitPrefix = `{"dockgate.visit":"`

// deposit implements [depository].
func (v *Visit) deposit(body json.RawMessage) json.RawMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deposits = append(v.deposits, body)
	return fmt.Appendf(nil, `%s%s.%d"}`, visitPrefix, v.nonce, len(v.deposits)-1)
}

// WriteTo writes what the SDK answers to w, with the results of servers where
// they belong. Nobody can forge the place of one: its name is random. It
// reports whether that was the last of the answer.
func (v *Visit) WriteTo(w io.Writer, answer []byte) (last bool, err error) {
	for {
		before, body, after := v.cut(answer)
		if len(before) > 0 {
			if _, err := w.Write(before); err != nil {
				return false, err
			}
		}
		if body == nil {
			return last, nil
		}
		if _, err := w.Write(oneLine(body)); err != nil {
			return false, err
		}
		answer, last = after, !v.batch
	}
}

// cut finds the first deposit in answer.
func (v *Visit) cut(answer []byte) (before, body, after []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.deposits) == 0 {
		return answer, nil, nil
	}
	before, rest, found := bytes.Cut(answer, []byte(visitPrefix+v.nonce+"."))
	digits, after, ended := bytes.Cut(rest, []byte(`"}`))
	number, err := strconv.Atoi(string(digits))
	if !found || !ended || err != nil || number < 0 || number >= len(v.deposits) {
		return answer, nil, nil
	}
	body, v.deposits[number] = v.deposits[number], json.RawMessage("null")
	return before, body, after
}

// oneLine replaces line breaks, which would end a line of an event stream. In
// JSON they are whitespace only.
func oneLine(body []byte) []byte {
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

// Server is the server of the SDK for all clients over HTTP. What a request
// sees depends on the [Visit] in its token.
func (g *Gateway) Server() *mcp.Server { return g.server }

// Sessions returns how many sessions over HTTP are open: in all, and of one
// principal.
func (g *Gateway) Sessions(who principal.Principal) (all, theirs int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if !s.visited {
			continue
		}
		all++
		if s.principal == who {
			theirs++
		}
	}
	return all, theirs
}

// admit returns the session that a Visit belongs to: the one of its MCP
// session or, where the protocol has none, the one that its principal has.
// g.mu is held.
//
//nolint:contextcheck // a session outlives the request that began it
func (g *Gateway) admit(connection *mcp.ServerSession, v *Visit) *session {
	if connection == nil || connection.ID() == "" {
		return g.visitor(v.Principal)
	}
	s := newSession(context.Background(), v.Principal)
	s.visited = true
	s.watcher.to = connection
	g.sessions[connection], g.visiting[connection.ID()] = s, s
	s.attendance.begin(v.Timeout, func() { _ = connection.Close() }) // the client has left long ago
	v.mu.Lock()
	v.session = s
	v.mu.Unlock()
	g.visits.Go(func() {
		_ = connection.Wait() // how it ended is the client's affair
		g.leave(context.Background(), connection, s)
	})
	return s
}

// visitor returns the session of a principal who uses the protocol without
// sessions. One that is forgotten leaves nothing behind: the next has the same
// name, and with it the same servers. g.mu is held.
//
//nolint:contextcheck // it outlives the request that began it
func (g *Gateway) visitor(who principal.Principal) *session {
	if found, ok := g.visitors.get(who); ok {
		return found
	}
	s := newSession(context.Background(), who)
	s.id = "modern"
	busy := func(_ principal.Principal, other *session) bool { return !other.calls.idle() }
	for _, forgotten := range g.visitors.put(who, s, maxVisitors, busy) {
		forgotten.end()
		forgotten.mail.close()
	}
	return s
}

// Dismiss ends all sessions over HTTP and what belongs to them, and waits for
// it. Nobody may visit any more.
func (g *Gateway) Dismiss(ctx context.Context) error {
	g.mu.Lock()
	var open []*mcp.ServerSession
	for connection, s := range g.sessions {
		if s.visited {
			open = append(open, connection)
			s.end()
		}
	}
	visitors := g.visitors.each
	g.visitors.each = nil
	g.mu.Unlock()
	var failures []error
	for _, connection := range open {
		failures = append(failures, unlessLeft(connection.Close()))
	}
	for _, kept := range visitors {
		g.depart(ctx, kept.value)
	}
	g.visits.Wait()
	return errors.Join(failures...)
}

// End ends what is under way in a principal's session over HTTP. The SDK ends
// the session itself, but would wait for that.
func (g *Gateway) End(id string, who principal.Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.visiting[id]; s != nil && s.principal == who {
		s.end()
	}
}
