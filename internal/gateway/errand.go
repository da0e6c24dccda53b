package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// during returns the context of a request: it ends with the session, when its
// caller may not use the gateway any more and, if the request only waits for
// news, when those of a [Visit] are to end. Its result can still be sent then.
func (g *Gateway) during(ctx context.Context, method string, req mcp.Request) (context.Context, func()) {
	s, release := g.hold(req)
	ctx, cancel := context.WithCancel(ctx)
	unheard := context.AfterFunc(s.ended, cancel)
	v := visitOf(req)
	ended := v.begin(cancel)
	over := func() { unheard(); cancel(); ended(); release() }
	if s.visited {
		gone := s.attendance.attend(req)
		s.attendance.enter() // for itself: it may take longer than the HTTP request
		return ctx, func() { s.attendance.leave(); gone(); over() }
	}
	if method != "subscriptions/listen" || v == nil || v.Ending == nil {
		return ctx, over
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-v.Ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-watched; over() }
}

// begin tells of a request that begins, see [Visit.Begun].
func (v *Visit) begin(giveUp func()) (ended func()) {
	if v == nil {
		return func() {}
	}
	v.mu.Lock()
	begun := v.Begun
	v.mu.Unlock()
	if begun == nil {
		return func() {}
	}
	return begun(giveUp)
}
