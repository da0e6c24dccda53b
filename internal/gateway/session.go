package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

// A session is one client's connection.
type session struct {
	id        string
	principal principal.Principal
	stream    *wire.Stdio // nil over HTTP
	// visited says that its client comes over HTTP, and that it ends with the
	// SDK's session.
	visited bool
	// visit is told of the calls of one with a stream.
	visit *Visit
	// ended is done when the client has left; calls are those that outlive
	// their request.
	ended context.Context //nolint:containedctx // it is the session's own life, not a request's
	end   context.CancelFunc
	calls tasks

	mail       mailbox
	watcher    watcher    // of a client with sessions
	attendance attendance // of one over HTTP

	mu        sync.Mutex
	declared  declared    // by a client with sessions, at its start
	level     string      // of the log messages that it wants
	addresses [][2]string // by server and id, that it was sent to open
}

// What a client has declared that it can: as servers without sessions are told
// of it, and as it was understood.
type declared struct {
	capabilities json.RawMessage
	can          era.Abilities
}

func declare(capabilities json.RawMessage) declared {
	return declared{capabilities: era.Forwarded(capabilities), can: era.AbilitiesOf(capabilities)}
}

func (s *session) declare(capabilities json.RawMessage) {
	d := declare(capabilities)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared = d
}

// able returns what the sender of a request has declared: with the request, or
// at its start.
func (s *session) able(req mcp.Request, params json.RawMessage) (d declared, isModern bool) {
	if modern(req) {
		return declare(era.Meta(params, era.MetaCapabilities)), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared, false
}

func newSession(ctx context.Context, who principal.Principal) *session {
	s := &session{id: rand.Text()[:12], principal: who}
	s.ended, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.watcher.session, s.watcher.ctx = s, s.ended
	return s
}

// connect joins a client. A request can come before the SDK has returned the
// connection, so whoever looks a session up waits here.
func (g *Gateway) connect(ctx context.Context, stream *wire.Stdio, v *Visit) (*mcp.ServerSession, *session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	connection, err := g.server.Connect(ctx, stream, nil)
	if err != nil {
		return nil, nil, err
	}
	s := newSession(ctx, v.Principal)
	s.stream, s.visit = stream, v
	s.watcher.to = connection
	g.sessions[connection] = s
	stream.Shorten(&shortcut{gateway: g, to: connection, session: s, stream: stream, calls: map[string]context.CancelFunc{}})
	return connection, s, nil
}

// leave ends what belonged to one session alone.
func (g *Gateway) leave(ctx context.Context, connection *mcp.ServerSession, s *session) {
	g.mu.Lock()
	delete(g.sessions, connection)
	if s.visited {
		delete(g.visiting, connection.ID())
	}
	g.mu.Unlock()
	s.attendance.end()
	g.depart(ctx, s)
}

func (g *Gateway) depart(ctx context.Context, s *session) {
	s.end()
	s.mail.close()
	s.calls.Wait()
	s.watcher.close(ctx)
	scope := call.Client{Principal: s.principal, Session: s.id}.SessionScope()
	if err := g.Fleet.StopScope(ctx, scope); err != nil {
		g.Logger.WarnContext(ctx, "servers of a session were not stopped", "session", s.id, "err", err)
	}
}

func (g *Gateway) sessionOf(req mcp.Request) (*mcp.ServerSession, *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.find(req)
}

// hold is sessionOf for a whole request: until it is released its session is
// not forgotten.
func (g *Gateway) hold(req mcp.Request) (s *session, release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, s = g.find(req)
	return s, s.calls.hold()
}

// find is sessionOf under g.mu.
func (g *Gateway) find(req mcp.Request) (*mcp.ServerSession, *session) {
	connection, _ := req.GetSession().(*mcp.ServerSession)
	s, visit := g.sessions[connection], visitOf(req)
	if s == nil && visit != nil {
		s = g.admit(connection, visit)
	}
	if s == nil || visit != nil && visit.Principal != s.principal {
		s = &session{ended: context.Background(), end: func() {}} // nobody, who is refused
	}
	return connection, s
}

// client is who makes a request, how they are reached while it lasts, and what
// they can be asked.
func (g *Gateway) client(ctx context.Context, req mcp.Request, params json.RawMessage) (call.Client, era.Abilities) {
	connection, s := g.sessionOf(req)
	able, isModern := s.able(req, params)
	client := call.Client{
		Principal: s.principal, Session: s.id, Via: "direct", Person: g.person(connection),
		Modern: isModern, Rounds: isModern, Capabilities: able.capabilities,
	}
	if isModern && visitOf(req) != nil { // all programs of one principal have one session
		client.Call = rand.Text()
	}
	if able.can.Any() && !isModern {
		client.Ask = relay(ctx, connection, s, able.can)
	}
	level := s.logLevel()
	if isModern {
		level = era.LogLevel(params)
	}
	if era.Severity(level) >= 0 {
		client.LogLevel = level
		client.Log = g.logger(ctx, connection, s, level)
	}
	token := jsonrpc.Lookup(jsonrpc.Lookup(params, "_meta"), "progressToken")
	if token == nil {
		return client, able.can
	}
	client.Progress = func(progress json.RawMessage) {
		addressed, err := jsonrpc.With(progress, "progressToken", token)
		if err == nil {
			err = wire.Notify(ctx, connection, "notifications/progress", addressed)
		}
		if err != nil {
			g.Logger.DebugContext(ctx, "progress not delivered", "session", s.id, "err", err)
		}
	}
	client.Waiting = g.waiting(client.Progress)
	return client, able.can
}

// logger returns a function that passes a server's log messages on to a
// client, as far as they are grave enough.
func (g *Gateway) logger(ctx context.Context, to *mcp.ServerSession, s *session, level string) func(json.RawMessage) {
	return func(params json.RawMessage) {
		if graveEnough(params, level) {
			g.post(ctx, s, to, logged, params)
		}
	}
}

// waitingPause is the shortest time between two texts about one wait.
const waitingPause = 250 * time.Millisecond

// waiting returns a function that tells a client what its call waits for. The
// values are tiny, because progress must grow (MCP 2025-11-25,
// basic/utilities/progress) and the server's own comes after it.
func (g *Gateway) waiting(progress func(json.RawMessage)) func(string) {
	var mu sync.Mutex
	var value float64
	var last time.Time
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < waitingPause {
			return
		}
		last = time.Now()
		value += 1e-6
		params, err := json.Marshal(map[string]any{"progress": value, "message": text})
		if err == nil {
			progress(params)
		}
	}
}
