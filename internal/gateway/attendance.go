package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dockgate/dockgate/internal/gateway/wire"
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
	// open are the requests under way.
	open map[sdkjsonrpc.ID]*errand
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

// admit counts an HTTP request as enter does, and takes the ids of the requests
// in its body: all of them, or none and returns an error if one is taken (MCP:
// basic, "Requests"). The errands are in the order of the messages.
func (a *attendance) admit(messages []jsonrpc.Message) ([]*errand, error) {
	errands := make([]*errand, len(messages))
	a.mu.Lock()
	for i, m := range messages {
		if m.Kind() != jsonrpc.Request {
			continue
		}
		id, err := wire.ID(m.ID)
		if err == nil && a.open[id] != nil {
			err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("duplicate in-flight request ID %s", m.ID)}
		}
		if err != nil {
			for _, e := range errands[:i] {
				a.drop(e)
			}
			a.mu.Unlock()
			return nil, err
		}
		errands[i] = &errand{id: id}
		a.put(errands[i])
	}
	a.mu.Unlock()
	a.enter()
	return errands, nil
}

// dismiss counts an HTTP request no more. The ids are free of those of its
// requests that nobody has begun to answer: they were refused.
func (a *attendance) dismiss(errands []*errand) {
	a.mu.Lock()
	for _, e := range errands {
		if e != nil && !e.begun {
			a.drop(e)
		}
	}
	a.mu.Unlock()
	a.leave()
}

// start begins a request, with what gives it up; nil if the SDK does. Its id
// must be free before it is answered: with the answer the client may use it
// again.
func (a *attendance) start(e *errand, cancel context.CancelFunc) (free func()) {
	if e == nil {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e.begun, e.cancel = true, cancel
	if a.open[e.id] == nil { // the HTTP request was over before
		a.put(e)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.drop(e)
	}
}

// put takes the id of an errand. a.mu is held.
func (a *attendance) put(e *errand) {
	if a.open == nil {
		a.open = make(map[sdkjsonrpc.ID]*errand)
	}
	a.open[e.id] = e
}

// drop frees the id of an errand, unless it is another's by now. a.mu is held.
func (a *attendance) drop(e *errand) {
	if e != nil && a.open[e.id] == e {
		delete(a.open, e.id)
	}
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
	e := a.open[id]
	if e == nil || e.cancel == nil {
		return false
	}
	e.cancel()
	return true
}

// cancelled gives up the call that the params of a notification mean, as cancel
// does.
func (a *attendance) cancelled(params json.RawMessage) bool {
	id, err := wire.ID(jsonrpc.Lookup(params, "requestId"))
	return err == nil && a.cancel(id)
}

// batches is the one version of the protocol with batches (MCP 2025-06-18:
// changelog).
const batches = "2025-03-26"

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
	if v.Batch() {
		if err := s.takesBatch(v.Messages()); err != nil {
			return err
		}
	}
	errands, err := s.attendance.admit(v.Messages())
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session, v.errands = s, errands
	return nil
}

// takesBatch returns an error if the version that a session has agreed on has
// no batches, whatever a header says, or not this one.
func (s *session) takesBatch(messages []jsonrpc.Message) error {
	problem := ""
	if hello := s.watcher.to.InitializeParams(); hello == nil || hello.ProtocolVersion != batches {
		problem = "the version of this session has no batches"
	}
	for _, m := range messages {
		if m.Method == "initialize" {
			problem = "initialize must not be part of a batch"
		}
	}
	if problem == "" {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: problem}
}
