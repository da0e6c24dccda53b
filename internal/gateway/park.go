package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/park"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// Servers of MCP 2026-07-28 cannot ask their clients. A call that needs a
// person, for us or for a server with sessions, is answered with what is asked
// and goes on in the background, parked, until the client makes it again with
// the answer.

// The keys of what is asked.
const (
	approvalID = "approval"
	questionID = "question"
)

// A rider is who waits for a parked call at the moment.
type rider struct {
	ref tool.Ref

	mu     sync.Mutex
	client call.Client // of the leg that is under way
}

type parkedCall = park.Call[*rider]

func (r *rider) enter(client call.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = client
}

func (r *rider) leg() call.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client
}

func (r *rider) progress(params json.RawMessage) {
	if leg := r.leg(); leg.Progress != nil {
		leg.Progress(params)
	}
}

func (r *rider) log(params json.RawMessage) {
	if leg := r.leg(); leg.Log != nil {
		leg.Log(params)
	}
}

func (r *rider) waiting(text string) {
	if leg := r.leg(); leg.Waiting != nil {
		leg.Waiting(text)
	}
}

// park makes a call that may outlive this request.
func (g *Gateway) park(ctx context.Context, req mcp.Request, e exchange) (mcp.Result, error) {
	p := &parkedCall{Of: &rider{ref: e.ref, client: e.client}, Principal: e.client.Principal, Same: e.same}
	client := e.client
	if e.can.Form {
		client.Person.Ask = func(ctx context.Context, question approval.Question) (consent.Reply, error) {
			asked, err := json.Marshal(form(question))
			if err != nil {
				return consent.Reply{}, err
			}
			answer, err := p.Ask(ctx, era.Input{Key: approvalID, Method: era.Elicit, Params: asked})
			if err != nil {
				return consent.Reply{}, err
			}
			return reply(answer)
		}
		client.ApprovalWait = park.TTL
	}
	client.Ask = func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
		question, err := e.can.Question(server, method, params)
		if err == nil {
			question, err = era.ForRounds(method, question)
		}
		if err != nil {
			return nil, err
		}
		return p.Ask(ctx, era.Input{Key: questionID, Method: method, Params: question})
	}
	// Each leg has its own token, or none. The patience of a client without
	// one is for a leg, not for the whole.
	asksProgress := client.Progress != nil
	client.Progress = nil
	client.Waiting = p.Of.waiting
	if asksProgress {
		client.Progress = p.Of.progress
	}
	if client.Log != nil {
		client.Log = p.Of.log
	}
	_, s := g.sessionOf(req)
	p.Start(ctx, s.calls.Go, func(ctx context.Context) (json.RawMessage, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)() //nolint:contextcheck // it ends the call with the session
		defer visitOf(req).watchParked(cancel)()
		return e.do(ctx, client)
	})
	return g.attend(ctx, e, p)
}

// resume gives a parked call the answer that came with its retry.
func (g *Gateway) resume(ctx context.Context, e exchange, params json.RawMessage, handle string) (mcp.Result, error) {
	leg, err := g.parked.Take(handle, e.client.Principal, e.same)
	if err != nil {
		return nil, err
	}
	e.ref = leg.Call.Of.ref
	leg.Call.Of.enter(e.client)
	answers := jsonrpc.Lookup(params, "inputResponses")
	open := leg.Answer(func(key string) json.RawMessage { return jsonrpc.Lookup(answers, key) })
	if len(open) > 0 { // the client is asked again (MCP 2026-07-28, basic/patterns/mrtr)
		if result, err := g.pose(ctx, leg.Call, open...); result != nil || err != nil {
			return result, err
		}
	}
	return g.attend(ctx, e, leg.Call)
}

// attend waits until a parked call ends or asks, or its client leaves.
func (g *Gateway) attend(ctx context.Context, e exchange, p *parkedCall) (mcp.Result, error) {
	var patience <-chan time.Time
	if e.client.Waiting == nil {
		timer := time.NewTimer(g.Caller.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	for ended := false; !ended; {
		select {
		case <-p.Done():
			ended = true
		case <-patience:
			p.GiveUp(&call.PatienceError{Server: e.ref.Server, Patience: g.Caller.Patience})
		case question := <-p.Questions():
			if result, err := g.pose(ctx, p, question); result != nil || err != nil {
				return result, err
			}
		case <-ctx.Done():
			p.GiveUp(nil)
			return nil, ctx.Err()
		}
	}
	result, err := p.Result()
	return g.finish(e, result, g.late(p.Reason(), e.ref, err))
}

// pose sends the client away with what a call asks, to come back with the
// answers. It returns nothing if that is not asked any more.
func (g *Gateway) pose(ctx context.Context, p *parkedCall, questions ...park.Question) (mcp.Result, error) {
	questions = p.Gather(questions...)
	if err := ctx.Err(); err != nil {
		p.GiveUp(nil)
		return nil, err
	}
	if len(questions) == 0 {
		return nil, nil //nolint:nilnil // the two together say that the client stays
	}
	handle, err := g.parked.Keep(park.Leg[*rider]{Call: p, Questions: questions})
	if err != nil {
		p.GiveUp(nil)
		return nil, err
	}
	inputs := make([]era.Input, len(questions))
	for i, question := range questions {
		inputs[i] = question.Input
	}
	return inputRequired(inputs, handle)
}

// late returns what a call that was given up for a reason still waited for, if
// it was its client's patience that ended, before the call itself had begun;
// any other error stays.
func (g *Gateway) late(reason error, ref tool.Ref, err error) error {
	var over *call.PatienceError
	if call.Code(err) != call.CodeCancelled || !errors.As(reason, &over) {
		return err
	}
	for _, question := range g.Caller.Book.Questions(approval.ProgressPending) {
		if question.Server == ref.Server {
			return &consent.PendingError{ID: question.ID, Server: ref.Server}
		}
	}
	return &call.WaitingError{Server: ref.Server, Doing: "starting"}
}

func inputRequired(inputs []era.Input, state string) (mcp.Result, error) {
	body, err := era.InputRequired(inputs, state)
	if err != nil {
		return nil, err
	}
	return &wire.Result{Body: body}, nil
}
