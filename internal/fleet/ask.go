package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// Capabilities are those of an MCP client that every server is told of at its
// start, unless the order says others: all that can be passed on to a client.
// What the client whose call it is has not declared is refused when a server
// asks for it, because one server may have several clients.
const Capabilities = `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`

// A flight is an order that is under way, and may have caused what its server
// asks. It is made before the server has the call and lasts until the answer.
type flight struct {
	from  From
	ask   func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	log   func(params json.RawMessage)
	ctx   context.Context //nolint:containedctx // it is the call's own, and ends with it
	limit *deadline       // nil while the server starts

	// Guarded by the instance's flying.
	asked int       // requests of the server that wait for the client
	since time.Time // when it asked last
}

// AtOnce is for how long a call that has asked something may still ask more
// beside it. After that it waits for the answer.
const AtOnce = 100 * time.Millisecond

// waits reports whether a flight asks nothing at the moment because it waits
// for its client.
func (fl *flight) waits() bool { return fl.asked > 0 && time.Since(fl.since) >= AtOnce }

// board makes an order known to the instance that works on it, until alight.
// Ctx ends with the order.
func (i *instance) board(ctx context.Context, order *Order, limit *deadline) *flight {
	fl := &flight{from: order.From, ask: order.Ask, log: order.Log, ctx: ctx, limit: limit}
	i.flying.Lock()
	defer i.flying.Unlock()
	i.flights = append(i.flights, fl)
	return fl
}

func (i *instance) alight(fl *flight) {
	i.flying.Lock()
	defer i.flying.Unlock()
	if at := slices.Index(i.flights, fl); at >= 0 {
		i.flights = slices.Delete(i.flights, at, at+1)
	}
}

// attributed returns the flight that a request or notification of the server
// belongs to: the newest that no other request waits for, if those under way
// are all of one client. Nothing on the wire says which of its calls a server
// works on, so with two clients it cannot be known.
func (i *instance) attributed() (fl *flight, clients int) {
	i.flying.Lock()
	defer i.flying.Unlock()
	from := make(map[From]bool)
	for _, other := range slices.Backward(i.flights) {
		from[From{Principal: other.from.Principal, Session: other.from.Session}] = true
		if fl == nil || fl.asked > 0 && other.asked == 0 {
			fl = other
		}
	}
	if len(from) > 1 {
		return nil, len(from)
	}
	return fl, len(from)
}

// rivals returns how many other calls a question may be of that seems to be of
// this one. Where there are no sessions each may be another program's.
func (i *instance) rivals(fl *flight) (n int) {
	i.flying.Lock()
	defer i.flying.Unlock()
	for _, other := range i.flights {
		if other.from.Call != fl.from.Call && other.waits() == fl.waits() {
			n++
		}
	}
	return n
}

// askable reports whether the client of any call can be asked.
func (i *instance) askable() bool {
	i.flying.Lock()
	defer i.flying.Unlock()
	return slices.ContainsFunc(i.flights, func(fl *flight) bool { return fl.ask != nil })
}

// lane keeps the calls apart that may be asked and belong to no session, once
// a server has asked and nobody knew which of them: each has a container of
// the scope to itself while it lasts, the first that is free. Those that cannot
// be asked share one. f.mu is held.
func (f *Fleet) lane(o Order) int {
	if o.From.Call == "" || o.Ask == nil || !f.asking[o.Spec.Server] {
		return 0
	}
	for o.lane = 1; ; o.lane++ {
		i := f.instances[o.key()]
		if i == nil || i.leaving() || i.uses == 0 || i.client == o.From {
			return o.lane
		}
	}
}

// serve answers a request of the server: it asks the client whose call caused
// it. It refuses what belongs to no call, or to nobody knows which.
func (f *Fleet) serve(i *instance) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		fl, clients := i.attributed()
		if clients == 1 {
			clients += i.rivals(fl)
		}
		switch {
		case clients > 0 && !i.askable():
			return nil, refusal(jsonrpc.CodeMethodNotFound, "the client cannot be asked: "+method)
		case clients > 1:
			f.separate(ctx, i)
			return nil, refusal(jsonrpc.CodeInvalidRequest, fmt.Sprintf(
				"the gateway cannot tell which of %d clients %s is for; each gets a server of its own from its next call on", clients, method))
		case fl == nil:
			return nil, refusal(jsonrpc.CodeInvalidRequest, method+" belongs to no call")
		case fl.ask == nil:
			return nil, refusal(jsonrpc.CodeMethodNotFound, "the client cannot be asked: "+method)
		}
		if method == methodRoots {
			f.showedRoots(i, fl.from)
		}
		return i.ask(ctx, fl, method, params)
	}
}

func refusal(code int64, message string) error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// ask passes a request on. While the client answers, the call's time since its
// last sign of progress does not run; its whole time does. If the call ends
// first, so does the question.
func (i *instance) ask(ctx context.Context, fl *flight, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(fl.ctx, cancel)() //nolint:contextcheck // it is the call's, and ends the question
	i.count(fl, 1)
	defer i.count(fl, -1)
	if fl.limit != nil {
		fl.limit.pause()
		defer fl.limit.resume()
	}
	answer, err := fl.ask(ctx, method, params)
	switch {
	case err == nil || fl.ctx.Err() == nil:
		return answer, err
	case method == methodElicit: // nobody decided (MCP 2025-11-25, client/elicitation, "Response Actions")
		return json.RawMessage(`{"action":"cancel"}`), nil
	default:
		return nil, refusal(jsonrpc.CodeInternalError, "the call that "+method+" belongs to has ended")
	}
}

func (i *instance) count(fl *flight, n int) {
	i.flying.Lock()
	defer i.flying.Unlock()
	fl.asked += n
	if n > 0 {
		fl.since = time.Now()
	}
}

// The requests of servers that the fleet knows more of than their bytes.
const (
	methodElicit = "elicitation/create"
	methodRoots  = "roots/list"
)

// separate remembers a server whose clients must not share it.
func (f *Fleet) separate(ctx context.Context, i *instance) {
	f.mu.Lock()
	known := f.asking[i.order.Spec.Server]
	f.asking[i.order.Spec.Server] = true
	f.mu.Unlock()
	if !known {
		f.opts.Logger.WarnContext(ctx, "server asks its clients, each gets one of its own from now on", "server", i.order.Spec.Server)
	}
}

// Asks reports whether a server has asked its client something while it had
// several, so that nobody could know whom it meant. Whoever orders it gives
// each client a scope of its own.
func (f *Fleet) Asks(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asking[server]
}

// showedRoots remembers that an instance has asked a client for its roots.
func (f *Fleet) showedRoots(i *instance, from From) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from.Call != "" { // there are no such notifications without sessions
		return
	}
	if i.rooted == nil {
		i.rooted = make(map[From]bool)
	}
	i.rooted[from] = true
}

// RootsChanged tells the servers that have asked a client for its roots that
// these are others now.
func (f *Fleet) RootsChanged(ctx context.Context, from From, params json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.all() {
		if !i.ready || i.leaving() || !i.rooted[from] || i.session.Era() != upstream.Legacy {
			continue
		}
		if err := i.session.Notify("notifications/roots/list_changed", params); err != nil {
			f.opts.Logger.DebugContext(ctx, "change of roots not delivered", "server", i.order.Spec.Server, "err", err)
		}
	}
}
