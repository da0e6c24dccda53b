package gateway

import (
	"context"
	"encoding/json"
	"errors"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The SDK decodes params and results into its own types, and what these do
// not know is lost. The types here carry the bytes around that: into the
// middleware beside a request, and out of it in place of a result or of the
// params of a notification.

const paramsKey = "dockgate.params"

// paramsOf returns the params of a request as the client sent them.
func paramsOf(req mcp.Request) (json.RawMessage, error) {
	if v := visitOf(req); v != nil {
		if raw, ok := v.params(req); ok {
			return raw, nil
		}
	}
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		if raw, ok := extra.TokenInfo.Extra[paramsKey].(json.RawMessage); ok {
			return raw, nil
		}
	}
	return json.Marshal(req.GetParams())
}

// A rawResult is a result as the bytes that a server sent.
type rawResult struct {
	mcp.ResultBase
	body json.RawMessage
	// past, if set, takes the bytes past the SDK's encoder.
	past depository
}

// A depository keeps a result and returns what goes through the SDK in its
// place: the connection of a client over a pair of streams, or its [Visit].
type depository interface {
	deposit(body json.RawMessage) json.RawMessage
}

// depository returns where the result of a request is kept.
func (g *Gateway) depository(req mcp.Request) depository {
	if v := visitOf(req); v != nil {
		return v
	}
	if _, s := g.sessionOf(req); s.stream != nil {
		return s.stream
	}
	return nil
}

// MarshalJSON returns the bytes, or what stands for them.
func (r *rawResult) MarshalJSON() ([]byte, error) {
	if r.past != nil {
		return r.past.deposit(r.body), nil
	}
	return r.body, nil
}

// rawParams are the params of a notification as bytes.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON returns the bytes.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.body, nil }

type rawProgressKey struct{}

// notifyProgress sends the raw params of a progress notification.
func notifyProgress(ctx context.Context, to *mcp.ServerSession, params json.RawMessage) error {
	return to.NotifyProgress(context.WithValue(ctx, rawProgressKey{}, params), &mcp.ProgressNotificationParams{})
}

// sendRaw replaces the params of a notification by the raw ones in its context.
func sendRaw(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		raw, ok := ctx.Value(rawProgressKey{}).(json.RawMessage)
		if !ok || method != "notifications/progress" {
			return next(ctx, method, req)
		}
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		return next(ctx, method, &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{body: raw}})
	}
}

// wireError returns a server's own error so that the SDK sends it as it is.
func wireError(err error) error {
	var answer *jsonrpc.Error
	if errors.As(err, &answer) {
		return &sdkjsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	}
	return err
}
