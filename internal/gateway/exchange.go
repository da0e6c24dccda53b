package gateway

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/park"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// An exchange is one request of a client that goes to a server, or to a tool
// of our own.
type exchange struct {
	method string
	client call.Client
	can    era.Abilities
	// same identifies the request of a modern client: a retry must be the same.
	same string
	ref  tool.Ref
	do   doing
}

// A doing is a request that only lacks who makes it.
type doing func(ctx context.Context, client call.Client) (json.RawMessage, error)

// A finding says what the params of a request are for.
type finding func(params json.RawMessage) (doing, tool.Ref, error)

// perform answers a request in the way of its client's era.
func (g *Gateway) perform(ctx context.Context, req mcp.Request, method string, find finding) (mcp.Result, error) {
	params, err := paramsOf(req)
	if err != nil {
		return nil, err
	}
	if err := plain(params); err != nil {
		return nil, err
	}
	e := exchange{method: method}
	e.client, e.can = g.client(ctx, req, params)
	if !e.client.Modern {
		if e.do, e.ref, err = find(params); err != nil {
			return nil, err
		}
		result, err := g.attended(ctx, e)
		if ids := era.AddressIDs(err); len(ids) > 0 || e.client.Log != nil {
			_, s := g.sessionOf(req)
			for _, id := range ids {
				s.open(e.ref.Server, id)
			}
			s.mail.flush(ctx) // what was logged during the call belongs before its result
		}
		return g.finish(e, result, err)
	}
	if e.client.Log != nil {
		_, s := g.sessionOf(req)
		defer s.mail.flush(ctx)
	}
	e.same = identity(method, params)
	state := requestState(params)
	if park.IsHandle(state) {
		return g.resume(ctx, e, params, state)
	}
	if e.do, e.ref, err = find(params); err == nil && state != "" {
		if params, err = g.reopen(e, params, state); err == nil {
			e.do, e.ref, err = find(params)
		}
	}
	if err != nil {
		return nil, err
	}
	if e.can.Any() {
		return g.park(ctx, req, e)
	}
	result, err := e.do(ctx, e.client)
	return g.finish(e, result, err)
}

// plain refuses params with a member that is another in disguise: some decoders
// of JSON, Go's among them, ignore case, and would have a server do what nobody
// has looked at. Of what is there twice they may take either.
func plain(params json.RawMessage) error {
	seen := make(map[string]bool)
	for m, err := range jsonrpc.Members(params) {
		if err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
		}
		name := string(m.Name)
		for _, known := range []string{"name", "uri", "arguments", "argument", "ref", "context", "_meta", "inputResponses", "requestState", "task"} {
			if !strings.EqualFold(name, known) {
				continue
			}
			if name != known || seen[known] {
				return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: the member " + strconv.Quote(name) + " can be taken for another"}
			}
			seen[known] = true
		}
	}
	return nil
}

// identity names what a request asks for: two with the same name are the same
// but for answers and _meta.
func identity(method string, params json.RawMessage) string {
	identity := method
	for _, name := range []string{"name", "uri", "arguments"} {
		identity += "\x00" + audit.Digest(jsonrpc.Lookup(params, name))
	}
	return identity
}

func requestState(params json.RawMessage) string {
	var state string
	if json.Unmarshal(jsonrpc.Lookup(params, "requestState"), &state) != nil {
		return ""
	}
	return state
}

// reopen returns the params of a retry for the server that wanted it: with its
// own state, or as they were at first.
func (g *Gateway) reopen(e exchange, params json.RawMessage, state string) (json.RawMessage, error) {
	opened, err := g.seal.Open(state, e.sealed(nil))
	switch {
	case err != nil:
		return nil, err
	case opened.State != nil:
		own, err := json.Marshal(*opened.State)
		if err != nil {
			return nil, err
		}
		return jsonrpc.With(params, "requestState", own)
	case !era.Accepted(jsonrpc.Lookup(params, "inputResponses")):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the address that the server asked for was not opened"}
	default:
		return era.First(params)
	}
}

func (e exchange) sealed(state *string) park.Sealed {
	return park.Sealed{Principal: e.client.Principal, Same: e.same, Server: e.ref.Server, State: state}
}

// finish makes the answer to a request. For a tool's call a failure of ours is
// a result too, so that the model sees it.
func (g *Gateway) finish(e exchange, result json.RawMessage, err error) (mcp.Result, error) {
	if e.client.Modern && err != nil {
		if inputs := e.can.Addresses(e.ref.Server, err); inputs != nil {
			return inputRequired(inputs, g.seal.Close(e.sealed(nil)))
		}
		err = era.ErrorForModern(err)
	}
	switch {
	case err == nil:
	case e.method == "tools/call":
		result, err = call.Failure(call.Phrased(err, g.Phrase), e.ref)
	default:
		err = failure(e.ref, call.Phrased(err, g.Phrase))
	}
	if err != nil {
		return nil, err
	}
	if !e.client.Modern {
		return &wire.Result{Body: result}, nil
	}
	whole, asks, err := era.ForModern(e.method, result, g.implementation)
	if err == nil && asks {
		whole, err = e.can.Relayed(e.ref.Server, whole, func(state string) string { return g.seal.Close(e.sealed(&state)) })
	}
	if err != nil {
		return nil, err
	}
	return &wire.Result{Body: whole}, nil
}

// failure returns a failure of ours as a protocol error: prompts, resources
// and completions have no result that says so.
func failure(ref tool.Ref, err error) error {
	code := call.Code(err)
	if code == "" {
		return err
	}
	data, marshalErr := json.Marshal(map[string]string{"code": code, "server": ref.Server})
	if marshalErr != nil {
		return marshalErr
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error(), Data: data}
}
