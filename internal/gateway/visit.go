package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/principal"
)

// A Visit is one HTTP request on its way through the SDK (MCP:
// basic/transports, "Streamable HTTP").
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

	wire.Post

	mu sync.Mutex
	// session is the one with sessions in which the request is counted; nil if
	// there is none. errands are then its messages that are requests, the others
	// are nil.
	session *session
	errands []*errand
}

// NewVisit reads the body of a POST, as [wire.Post.Read] does.
func NewVisit(who principal.Principal, body []byte) (*Visit, error) {
	v := &Visit{Principal: who}
	return v, v.Read(body)
}

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
	if messages := v.Messages(); len(messages) == 1 && messages[0].Method == "initialize" {
		v.Forget()
		v.Begun, v.Watch, v.WatchParked = nil, nil, nil
	}
}

// Entered reports whether the request is one of a session, see [Gateway.Enter].
func (v *Visit) Entered() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session != nil
}

const visitKey = "dockgate.visit"

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
