package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// callTool answers tools/call: our own tools here, all others by their server.
func (g *Gateway) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	params, err := paramsOf(req)
	if err != nil {
		return nil, err
	}
	if resumed, ok := g.parked.take(req.Params.RequestState); ok {
		return g.resume(ctx, req, params, resumed)
	}
	if strings.HasPrefix(req.Params.RequestState, handlePrefix) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState was used already, or is too old; send the call without it"}
	}
	do, ref, err := g.target(ctx, req, params)
	if err != nil {
		return nil, err
	}
	if answersLater(req) {
		return g.park(ctx, req, params, ref, do)
	}
	result, err := g.attended(ctx, g.client(ctx, req, params), ref, do)
	return toolResult(ref, result, err)
}

// A doing is a tool call that only lacks who makes it.
type doing func(ctx context.Context, client call.Client) (json.RawMessage, error)

// target says what a name stands for.
func (g *Gateway) target(ctx context.Context, req *mcp.CallToolRequest, params json.RawMessage) (doing, tool.Ref, error) {
	name := req.Params.Name
	arguments := jsonrpc.Lookup(params, "arguments")
	if own, ok := g.own[name]; ok {
		return func(ctx context.Context, client call.Client) (json.RawMessage, error) {
			return g.Desk.Call(ctx, own, client, arguments)
		}, tool.Ref{Name: name}, nil
	}
	menu, err := g.menu(ctx, req)
	if err != nil {
		return nil, tool.Ref{}, err
	}
	ref, ok := menu.resolve(name, g.Desk.Catalog())
	if !ok {
		return nil, tool.Ref{}, unknown("tool", name, menu.names(g.own))
	}
	quoted, err := json.Marshal(ref.Name)
	if err != nil {
		return nil, tool.Ref{}, err
	}
	forServer, err := jsonrpc.With(params, "name", quoted)
	if err != nil {
		return nil, tool.Ref{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return func(ctx context.Context, client call.Client) (json.RawMessage, error) {
		return g.Caller.Do(ctx, call.Request{
			Client: client, Server: ref.Server, Method: "tools/call", Item: ref.Name,
			Params: forServer, Arguments: arguments,
		})
	}, ref, nil
}

// toolResult makes the answer to a tools/call. A failure of ours is a result
// too, so that the model sees it.
func toolResult(ref tool.Ref, result json.RawMessage, err error) (mcp.Result, error) {
	if err == nil {
		return &rawResult{body: result}, nil
	}
	failure, err := call.Failure(err, ref)
	if err != nil {
		return nil, err
	}
	return &rawResult{body: failure}, nil
}

func (g *Gateway) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	menu, err := g.menu(ctx, req)
	if err != nil {
		return nil, err
	}
	ref, ok := menu.prompts[req.Params.Name]
	if !ok {
		return nil, unknown("prompt", req.Params.Name, keys(menu.prompts))
	}
	params, err := paramsOf(req)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(ref.Name)
	if err != nil {
		return nil, err
	}
	forServer, err := jsonrpc.With(params, "name", quoted)
	if err != nil {
		return nil, err
	}
	return g.pass(ctx, req, params, call.Request{
		Server: ref.Server, Method: "prompts/get", Item: ref.Name, Params: forServer,
		Arguments: jsonrpc.Lookup(params, "arguments"),
	})
}

func (g *Gateway) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	menu, err := g.menu(ctx, req)
	if err != nil {
		return nil, err
	}
	server, ok := menu.resource(req.Params.URI)
	if !ok {
		return nil, unknown("resource", req.Params.URI, keys(menu.resources))
	}
	params, err := paramsOf(req)
	if err != nil {
		return nil, err
	}
	return g.pass(ctx, req, params, call.Request{
		Server: server, Method: "resources/read", Item: req.Params.URI, Params: params,
	})
}

func (g *Gateway) complete(ctx context.Context, req *mcp.CompleteRequest) (mcp.Result, error) {
	menu, err := g.menu(ctx, req)
	if err != nil {
		return nil, err
	}
	params, err := paramsOf(req)
	if err != nil {
		return nil, err
	}
	r := call.Request{Method: "completion/complete", Params: params, Arguments: jsonrpc.Lookup(params, "argument")}
	reference := req.Params.Ref
	switch {
	case reference == nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "completion without a reference"}
	case reference.Type == "ref/prompt":
		ref, ok := menu.prompts[reference.Name]
		if !ok {
			return nil, unknown("prompt", reference.Name, keys(menu.prompts))
		}
		quoted, err := json.Marshal(ref.Name)
		if err != nil {
			return nil, err
		}
		renamed, err := jsonrpc.With(jsonrpc.Lookup(params, "ref"), "name", quoted)
		if err != nil {
			return nil, err
		}
		if r.Params, err = jsonrpc.With(params, "ref", renamed); err != nil {
			return nil, err
		}
		r.Server, r.Item = ref.Server, ref.Name
	default:
		server, ok := menu.resource(reference.URI)
		if !ok {
			return nil, unknown("resource template", reference.URI, keys(menu.resources))
		}
		r.Server, r.Item = server, reference.URI
	}
	return g.pass(ctx, req, params, r)
}

// pass makes a call whose failures are protocol errors: prompts, resources and
// completions have no result that says so.
func (g *Gateway) pass(ctx context.Context, req mcp.Request, params json.RawMessage, r call.Request) (mcp.Result, error) {
	do := func(ctx context.Context, client call.Client) (json.RawMessage, error) {
		r.Client = client
		return g.Caller.Do(ctx, r)
	}
	result, err := g.attended(ctx, g.client(ctx, req, params), tool.Ref{Server: r.Server, Name: r.Item}, do)
	if code := call.Code(err); err != nil && code != "" {
		data, marshalErr := json.Marshal(map[string]string{"code": code, "server": r.Server})
		if marshalErr != nil {
			return nil, marshalErr
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error(), Data: data}
	}
	if err != nil {
		return nil, err
	}
	return &rawResult{body: result}, nil
}

func unknown(kind, name string, known []string) error {
	message := fmt.Sprintf("unknown %s %q", kind, name)
	if nearest := catalog.Nearest(name, known); len(nearest) > 0 {
		message += "; nearest: " + nearest[0]
		for _, other := range nearest[1:] {
			message += ", " + other
		}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
