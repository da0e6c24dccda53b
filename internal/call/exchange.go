package call

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// maxRounds is how often a server may ask for input before it has a result. A
// client that answers for itself has the same bound in the official SDKs.
const maxRounds = 10

// exchange sends a request to its server and returns the result in the form
// of the client's generation of the protocol. What a server asks in place of a
// result, the client is asked here, unless it answers for itself.
func (c *Caller) exchange(ctx context.Context, order fleet.Order, r Request) (json.RawMessage, error) {
	spoken, err := c.Offers.Era(ctx, order.Spec.Program())
	if err != nil {
		return nil, err
	}
	if spoken == fleet.Both {
		spoken = string(order.Era)
	}
	modern := spoken == string(upstream.Modern)
	params := r.Params
	if modern {
		if params, err = r.declared(); err != nil {
			return nil, err
		}
	}
	for range maxRounds {
		result, err := c.Fleet.Call(ctx, order, r.Method, params, r.Progress)
		if err == nil && !modern {
			result, err = era.Unfinished(result)
		}
		if err != nil || r.Rounds {
			return result, err
		}
		inputs, state, asks, err := era.Inputs(result)
		switch {
		case err != nil:
			return nil, err
		case !asks && modern:
			return r.shaped(result)
		case !asks:
			return result, nil
		}
		answers, err := r.answers(ctx, inputs)
		if err != nil {
			return nil, err
		}
		if params, err = era.Retry(params, answers, state); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("server %q asked for input %d times without a result", r.Server, maxRounds)
}

// shaped returns the result of a modern server in the form of the client's
// generation.
func (r Request) shaped(result json.RawMessage) (json.RawMessage, error) {
	if r.Modern {
		return result, nil
	}
	return era.ForLegacy(r.Method, result)
}

// declared returns the params with what a server without sessions is told of
// the client in each request.
func (r Request) declared() (params json.RawMessage, err error) {
	params = r.Params
	if r.Capabilities != nil {
		if params, err = era.WithMeta(params, era.MetaCapabilities, r.Capabilities); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
		}
	}
	if r.LogLevel == "" {
		return params, nil
	}
	quoted, err := json.Marshal(r.LogLevel)
	if err != nil {
		return nil, err
	}
	return era.WithMeta(params, era.MetaLogLevel, quoted)
}

// answers asks the client one thing after the other: it has one person.
func (r Request) answers(ctx context.Context, inputs []era.Input) (map[string]json.RawMessage, error) {
	answers := make(map[string]json.RawMessage, len(inputs))
	for _, input := range inputs {
		if r.Ask == nil {
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeInternalError,
				Message: fmt.Sprintf("server %q asks for %s, which the client has not declared", r.Server, input.Method),
			}
		}
		answer, err := r.Ask(ctx, r.Server, input.Method, input.Params)
		if err != nil {
			return nil, err
		}
		answers[input.Key] = answer
	}
	return answers, nil
}
