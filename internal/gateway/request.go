package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// callTool answers tools/call: our own tools here, all others by their server.
func (g *Gateway) callTool(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	return g.perform(ctx, req, "tools/call", func(params json.RawMessage) (doing, tool.Ref, error) {
		name := req.Params.Name
		arguments := jsonrpc.Lookup(params, "arguments")
		_, s := g.sessionOf(req)
		if own, ok := g.ownTool(s.principal, name); ok {
			return func(ctx context.Context, client call.Client) (json.RawMessage, error) {
				return g.Desk.Call(ctx, own, client, arguments)
			}, tool.Ref{Name: name}, nil
		}
		seen, err := g.menu(ctx, req)
		if err != nil {
			return nil, tool.Ref{}, err
		}
		ref, ok := seen.Tool(name, g.Desk.Catalog())
		if !ok {
			return nil, tool.Ref{}, unknown("tool", name, seen.Tools())
		}
		return g.renamed(call.Request{Method: "tools/call", Arguments: arguments}, params, ref)
	})
}

// renamed is a request for what a server calls ref.
func (g *Gateway) renamed(r call.Request, params json.RawMessage, ref tool.Ref) (doing, tool.Ref, error) {
	quoted, err := json.Marshal(ref.Name)
	if err == nil {
		r.Params, err = jsonrpc.With(params, "name", quoted)
	}
	if err != nil {
		return nil, tool.Ref{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	r.Server, r.Item = ref.Server, ref.Name
	return g.pass(r), ref, nil
}

// pass sends a request on.
func (g *Gateway) pass(r call.Request) doing {
	return func(ctx context.Context, client call.Client) (json.RawMessage, error) {
		r := r
		r.Client = client
		return g.Caller.Do(ctx, r)
	}
}

func (g *Gateway) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	return g.perform(ctx, req, "prompts/get", func(params json.RawMessage) (doing, tool.Ref, error) {
		seen, err := g.menu(ctx, req)
		if err != nil {
			return nil, tool.Ref{}, err
		}
		ref, ok := seen.Prompt(req.Params.Name)
		if !ok {
			return nil, tool.Ref{}, unknown("prompt", req.Params.Name, seen.Prompts())
		}
		return g.renamed(call.Request{Method: "prompts/get", Arguments: jsonrpc.Lookup(params, "arguments")}, params, ref)
	})
}

func (g *Gateway) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	return g.perform(ctx, req, "resources/read", func(params json.RawMessage) (doing, tool.Ref, error) {
		server, err := g.holder(ctx, req, "resource", req.Params.URI)
		if err != nil {
			return nil, tool.Ref{}, err
		}
		r := call.Request{Method: "resources/read", Server: server, Item: req.Params.URI, Params: params}
		return g.pass(r), tool.Ref{Server: server, Name: req.Params.URI}, nil
	})
}

// holder returns the server that a URI belongs to.
func (g *Gateway) holder(ctx context.Context, req mcp.Request, kind, uri string) (string, error) {
	seen, err := g.menu(ctx, req)
	if err != nil {
		return "", err
	}
	server, ok := seen.Resource(uri)
	if !ok {
		return "", unknown(kind, uri, seen.Resources())
	}
	return server, nil
}

func (g *Gateway) complete(ctx context.Context, req *mcp.CompleteRequest) (mcp.Result, error) {
	return g.perform(ctx, req, "completion/complete", func(params json.RawMessage) (doing, tool.Ref, error) {
		r := call.Request{Method: "completion/complete", Params: params, Arguments: jsonrpc.Lookup(params, "argument")}
		var err error
		switch reference := req.Params.Ref; {
		case reference == nil:
			err = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "completion without a reference"}
		case reference.Type == "ref/prompt":
			r.Server, r.Item, r.Params, err = g.completePrompt(ctx, req, params)
		default:
			r.Item = reference.URI
			r.Server, err = g.holder(ctx, req, "resource template", reference.URI)
		}
		if err != nil {
			return nil, tool.Ref{}, err
		}
		return g.pass(r), tool.Ref{Server: r.Server, Name: r.Item}, nil
	})
}

// completePrompt returns whose prompt a completion is for, and the params with
// the prompt's own name.
func (g *Gateway) completePrompt(ctx context.Context, req *mcp.CompleteRequest, params json.RawMessage) (server, item string, own json.RawMessage, err error) {
	seen, err := g.menu(ctx, req)
	if err != nil {
		return "", "", nil, err
	}
	ref, ok := seen.Prompt(req.Params.Ref.Name)
	if !ok {
		return "", "", nil, unknown("prompt", req.Params.Ref.Name, seen.Prompts())
	}
	quoted, err := json.Marshal(ref.Name)
	if err != nil {
		return "", "", nil, err
	}
	renamed, err := jsonrpc.With(jsonrpc.Lookup(params, "ref"), "name", quoted)
	if err != nil {
		return "", "", nil, err
	}
	own, err = jsonrpc.With(params, "ref", renamed)
	return ref.Server, ref.Name, own, err
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
