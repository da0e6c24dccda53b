package gateway

import (
	"context"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An errand is one request of a session over HTTP, whose id is taken until it
// is answered. It is guarded by the lock of the session's attendance.
type errand struct {
	id sdkjsonrpc.ID
	// begun says that it is being answered: it may be for longer than the HTTP
	// request that brought it.
	begun bool
	// cancel gives it up, if it goes past the SDK.
	cancel context.CancelFunc
}

// during returns the context of a request: it ends with the session, when its
// caller may not use the gateway any more and, if the request only waits for
// news, when those of a [Visit] are to end. Its result can still be sent then.
func (g *Gateway) during(ctx context.Context, method string, req mcp.Request) (context.Context, func()) {
	s, release := g.hold(req)
	ctx, cancel := context.WithCancel(ctx)
	unheard := context.AfterFunc(s.ended, cancel)
	v := visitOf(req)
	if v == nil {
		v = s.visit
	}
	ended := v.begin(cancel)
	over := func() { unheard(); cancel(); ended(); release() }
	if s.visited {
		free := s.attendance.start(v.errand(req), nil)
		s.attendance.enter() // for itself: it may take longer than the HTTP request
		return ctx, func() { s.attendance.leave(); free(); over() }
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

// begin tells of a request that begins, and watches it: see [Visit.Begun] and
// [Visit.Watch].
func (v *Visit) begin(giveUp func()) (ended func()) {
	if v == nil {
		return func() {}
	}
	v.mu.Lock()
	begun, watch := v.Begun, v.Watch
	v.mu.Unlock()
	left := func() {}
	if begun != nil {
		left = begun()
	}
	if watch == nil {
		return left
	}
	stop := watch(giveUp)
	return func() { stop(); left() }
}

// watchParked is [Visit.WatchParked].
func (v *Visit) watchParked(giveUp func()) (stop func()) {
	if v == nil || v.WatchParked == nil {
		return func() {}
	}
	return v.WatchParked(giveUp)
}

// errand returns the one of a request that the SDK has read, or nil.
func (v *Visit) errand(req mcp.Request) *errand {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if number, ok := v.Number(req); ok && number < len(v.errands) {
		return v.errands[number]
	}
	return nil
}
