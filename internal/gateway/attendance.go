package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An attendance is how a session over HTTP is used: which requests of it are
// under way, on whatever way, and since when there is none. The SDK counts
// only those that it answers itself.
type attendance struct {
	mu sync.Mutex
	// timer ends the session when it was not used for timeout; nil if it never
	// does.
	timer    *time.Timer
	timeout  time.Duration
	requests int
	// open are the ids of requests under way; their value gives a call up that
	// goes past the SDK, and is nil for others.
	open map[sdkjsonrpc.ID]context.CancelFunc
}

// begin counts the request that begins the session.
func (a *attendance) begin(timeout time.Duration, over func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = 1
	if timeout <= 0 {
		return
	}
	a.timeout, a.timer = timeout, time.AfterFunc(timeout, over)
	a.timer.Stop()
}

// enter counts an HTTP request until it leaves.
func (a *attendance) enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests++; a.requests == 1 && a.timer != nil {
		a.timer.Stop()
	}
}

func (a *attendance) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests--; a.requests == 0 && a.timer != nil {
		a.timer.Reset(a.timeout)
	}
}

// take takes an id for a request until it is freed, with what gives the
// request up; nil if the SDK does. One that is taken is an error (MCP: basic,
// "Requests").
func (a *attendance) take(id sdkjsonrpc.ID, cancel context.CancelFunc) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.taken(id); err != nil {
		return err
	}
	if a.open == nil {
		a.open = make(map[sdkjsonrpc.ID]context.CancelFunc)
	}
	a.open[id] = cancel
	return nil
}

// free must come before the answer, with which the client may use the id again.
func (a *attendance) free(id sdkjsonrpc.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// taken returns an error if an id is. a.mu is held.
func (a *attendance) taken(id sdkjsonrpc.ID) error {
	if _, twice := a.open[id]; !twice {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("duplicate in-flight request ID %v", id.Raw())}
}

// end stops the clock of a session that has ended.
func (a *attendance) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// cancel gives up a call that goes past the SDK, and reports whether it is one.
func (a *attendance) cancel(id sdkjsonrpc.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	cancel := a.open[id]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// Enter counts the request of a [Visit] as one of a session over HTTP until
// the Visit is released: meanwhile the session is not idle. A session that is
// not there, or is another principal's, is left to the SDK, which refuses it.
// The error is a [*jsonrpc.Error].
func (g *Gateway) Enter(v *Visit, session string) error {
	g.mu.Lock()
	s := g.visiting[session]
	g.mu.Unlock()
	if s == nil || s.principal != v.Principal {
		return nil
	}
	if err := s.attendance.allFree(v.messages); err != nil {
		return err
	}
	s.attendance.enter()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session = s
	return nil
}

// allFree returns an error if the id of a request is taken.
func (a *attendance) allFree(messages []jsonrpc.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range messages {
		if m.Kind() != jsonrpc.Request {
			continue
		}
		id, err := sdkID(m.ID)
		if err != nil {
			continue // the SDK refuses it
		}
		if err := a.taken(id); err != nil {
			return err
		}
	}
	return nil
}

// attend takes the id of a request that the SDK answers, until done is called.
func (a *attendance) attend(req mcp.Request) (done func()) {
	v := visitOf(req)
	if v == nil {
		return func() {}
	}
	id, ok := v.id()
	if !ok || a.take(id, nil) != nil {
		return func() {}
	}
	return func() { a.free(id) }
}
