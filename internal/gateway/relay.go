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
	"github.com/dockgate/dockgate/internal/tool"
)

// relay returns a function that passes a server's requests on to a client with
// sessions, while the request lasts whose context ctx is: so they go the way
// that its answer goes.
func relay(ctx context.Context, to *mcp.ServerSession, s *session, can era.Abilities) func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return func(asked context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
		question, err := can.Question(server, method, params)
		if err == nil {
			question, err = era.ForSessions(method, question, rand.Text())
		}
		if err != nil {
			return nil, err
		}
		if id := era.AddressID(question); id != "" {
			s.open(server, id)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(asked, cancel)() //nolint:contextcheck // it ends the question
		return wire.Request(ctx, to, method, question)
	}
}

// A patience runs while a client waits that sent no progress token, but not
// while the client itself is asked.
type patience struct {
	mu    sync.Mutex
	timer *time.Timer
	since time.Time
	left  time.Duration
	asked int
}

func startPatience(whole time.Duration, over func()) *patience {
	return &patience{timer: time.AfterFunc(whole, over), since: time.Now(), left: whole}
}

func (p *patience) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.asked == 1 {
		p.timer.Stop()
		p.left -= time.Since(p.since)
	}
}

func (p *patience) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked--; p.asked == 0 {
		p.since = time.Now()
		p.timer.Reset(max(p.left, 0))
	}
}

func (p *patience) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
}

// attended makes a call for a client with sessions, which may be asked
// meanwhile.
func (g *Gateway) attended(ctx context.Context, e exchange) (json.RawMessage, error) {
	if e.client.Ask == nil || e.client.Waiting != nil {
		return e.do(ctx, e.client)
	}
	return g.patiently(ctx, e.client, e.ref, e.do)
}

// patiently makes a call within the patience of its client, which does not run
// while the client itself is asked.
func (g *Gateway) patiently(ctx context.Context, client call.Client, ref tool.Ref, do doing) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := startPatience(g.Caller.Patience, func() {
		cancel(&call.PatienceError{Server: ref.Server, Patience: g.Caller.Patience})
	})
	defer p.stop()
	ask := client.Ask
	client.Ask = func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
		p.pause()
		defer p.resume()
		return ask(ctx, server, method, params)
	}
	client.Waiting = func(string) {} // its patience is seen to here
	result, err := do(ctx, client)
	return result, g.late(context.Cause(ctx), ref, err)
}
