package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// Servers of MCP 2026-07-28 cannot ask their clients. A call that needs a
// person is answered with "input_required" and goes on in the background,
// parked, until the client sends it again with the answer
// (basic/patterns/mrtr).

const (
	parkedFor  = 10 * time.Minute
	maxParked  = 100
	questionID = "approval"
	// handlePrefix tells our handles from the state of a server behind us.
	handlePrefix = "dockgate:"
)

// A parkedCall goes on while its client asks the person.
type parkedCall struct {
	principal principal.Principal
	// same identifies the call: its retry must be for the same tool with the
	// same arguments.
	same      string
	ref       tool.Ref
	questions chan openQuestion
	done      chan struct{} // closed when result and err are there
	result    json.RawMessage
	err       error
	cancel    context.CancelCauseFunc
	limited   context.Context //nolint:containedctx // it is the call's, which outlives its requests

	mu     sync.Mutex
	client call.Client // of the leg that is under way
}

// An openQuestion is a question on its way to a person; the answer is sent once.
type openQuestion struct {
	question approval.Question
	answer   chan json.RawMessage
}

// A parkedLeg is a parked call with the question its client was sent.
type parkedLeg struct {
	call     *parkedCall
	question openQuestion
}

// parking holds parked calls by their handle. The zero value is empty.
type parking struct {
	mu   sync.Mutex
	legs map[string]parkedLeg
}

// answersLater reports whether the client is a modern one that takes forms.
func answersLater(req *mcp.CallToolRequest) bool {
	return era.IsModern(req.ProtocolVersion()) && takesForms(req.ClientCapabilities())
}

func identity(req *mcp.CallToolRequest) string {
	return req.Params.Name + "\x00" + audit.Digest(req.Params.Arguments)
}

// park makes a call that may outlive this request.
func (g *Gateway) park(ctx context.Context, req *mcp.CallToolRequest, params json.RawMessage, ref tool.Ref, do doing) (mcp.Result, error) {
	client := g.client(ctx, req, params)
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), parkedFor)
	detached, cancel := context.WithCancelCause(limited)
	p := &parkedCall{
		principal: client.Principal, same: identity(req), ref: ref, client: client,
		questions: make(chan openQuestion), done: make(chan struct{}), cancel: cancel, limited: detached,
	}
	client.Person.Ask = p.ask
	client.ApprovalWait = parkedFor
	// Each leg has its own token, or none. The patience of a client without
	// one is for a leg, not for the whole.
	asksProgress := client.Progress != nil
	client.Progress = nil
	client.Waiting = func(text string) { p.waiting(text) }
	if asksProgress {
		client.Progress = p.progress
	}
	_, s := g.sessionOf(req)
	s.calls.Go(func() {
		defer stop()
		defer cancel(nil)
		defer close(p.done)
		defer context.AfterFunc(s.ended, func() { cancel(nil) })() //nolint:contextcheck // it ends the call with the session
		p.result, p.err = do(detached, client)
	})
	return g.attend(ctx, p)
}

// resume gives a parked call the answer that came with its retry.
func (g *Gateway) resume(ctx context.Context, req *mcp.CallToolRequest, params json.RawMessage, leg parkedLeg) (mcp.Result, error) {
	client := g.client(ctx, req, params)
	p := leg.call
	answer := jsonrpc.Lookup(jsonrpc.Lookup(params, "inputResponses"), questionID)
	if client.Principal != p.principal || identity(req) != p.same || answer == nil {
		p.cancel(nil)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState does not belong to this call, or its answer is missing"}
	}
	p.enter(client)
	leg.question.answer <- answer
	return g.attend(ctx, p)
}

// attend waits until a parked call ends or asks, or its client leaves.
func (g *Gateway) attend(ctx context.Context, p *parkedCall) (mcp.Result, error) {
	var patience <-chan time.Time
	if p.leg().Waiting == nil {
		timer := time.NewTimer(g.Caller.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-p.done:
		return toolResult(p.ref, p.result, p.err)
	case <-patience:
		p.cancel(&call.PatienceError{Server: p.ref.Server, Patience: g.Caller.Patience})
		<-p.done
		return toolResult(p.ref, p.result, g.late(p.limited, p.ref, p.err)) //nolint:contextcheck // it is the call's, which outlives its requests
	case question := <-p.questions:
		handle, err := g.parked.keep(parkedLeg{call: p, question: question})
		if err != nil {
			p.cancel(nil)
			return nil, err
		}
		return inputRequired(handle, question.question)
	case <-ctx.Done():
		p.cancel(nil)
		<-p.done
		return nil, ctx.Err()
	}
}

// late returns what a call whose context is ctx still waited for when its
// client's patience ended before the call itself had begun; any other error
// stays.
func (g *Gateway) late(ctx context.Context, ref tool.Ref, err error) error {
	var over *call.PatienceError
	if call.Code(err) != call.CodeCancelled || !errors.As(context.Cause(ctx), &over) {
		return err
	}
	for _, question := range g.Caller.Book.Questions(approval.ProgressPending) {
		if question.Server == ref.Server {
			return &approval.PendingError{ID: question.ID, Server: ref.Server}
		}
	}
	return &call.WaitingError{Server: ref.Server, Doing: "starting"}
}

var errGivenUp = errors.New("the call that asked was given up")

// inputRequired is the answer that makes a client ask. The SDK's own result
// says its type only when the SDK has made it.
func inputRequired(handle string, question approval.Question) (mcp.Result, error) {
	body, err := json.Marshal(map[string]any{
		"resultType":    "input_required",
		"inputRequests": mcp.InputRequestMap{questionID: form(question)},
		"requestState":  handle,
	})
	if err != nil {
		return nil, err
	}
	return &rawResult{body: body}, nil
}

// ask hands a question to whichever leg is under way.
func (p *parkedCall) ask(ctx context.Context, question approval.Question) (approval.Reply, error) {
	open := openQuestion{question: question, answer: make(chan json.RawMessage, 1)}
	select {
	case p.questions <- open:
	case <-p.limited.Done():
		return approval.Reply{}, errGivenUp
	case <-ctx.Done():
		return approval.Reply{}, ctx.Err()
	}
	select {
	case answer := <-open.answer:
		return reply(answer)
	case <-p.limited.Done():
		return approval.Reply{}, errGivenUp
	case <-ctx.Done():
		return approval.Reply{}, ctx.Err()
	}
}

func (p *parkedCall) enter(client call.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client = client
}

func (p *parkedCall) leg() call.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client
}

func (p *parkedCall) progress(params json.RawMessage) {
	if leg := p.leg(); leg.Progress != nil {
		leg.Progress(params)
	}
}

func (p *parkedCall) waiting(text string) {
	if leg := p.leg(); leg.Waiting != nil {
		leg.Waiting(text)
	}
}

// keep returns a handle that nobody can guess (128 bits) and that works once.
func (k *parking) keep(leg parkedLeg) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.legs == nil {
		k.legs = make(map[string]parkedLeg)
	}
	for handle, other := range k.legs { // those that have ended meanwhile
		select {
		case <-other.call.done:
			delete(k.legs, handle)
		default:
		}
	}
	if len(k.legs) >= maxParked {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many calls wait for an answer"}
	}
	handle := handlePrefix + rand.Text()
	k.legs[handle] = leg
	return handle, nil
}

func (k *parking) take(handle string) (parkedLeg, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	leg, ok := k.legs[handle]
	delete(k.legs, handle)
	return leg, ok
}
