// Package wire carries the bytes of a client's messages around the SDK.
//
// The SDK decodes params and results into its own types, and what these do not
// know is lost. So params travel beside a request into the middleware, and
// results, and the params of what the gateway sends by itself, out of it in the
// place of the SDK's. It refuses what is no message, and requests that the SDK
// would answer with a wrong code. It guarantees that a client reads the bytes
// that a server wrote.
package wire

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

const paramsKey = "dockgate.params"

// Beside returns what goes beside a request through the SDK, which passes
// nothing else on: its params as they came.
func Beside(params json.RawMessage) *mcp.RequestExtra {
	return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{paramsKey: params}}}
}

// Params returns what went beside a request; ok is false if nothing did.
func Params(req mcp.Request) (params json.RawMessage, ok bool) {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil, false
	}
	params, ok = extra.TokenInfo.Extra[paramsKey].(json.RawMessage)
	return params, ok
}

// A Result is a result as the bytes that a server sent.
type Result struct {
	mcp.ResultBase
	Body json.RawMessage
	// Past, if set, takes the bytes past the SDK's encoder.
	Past Depository
}

// A Depository keeps a result and returns what goes through the SDK in its
// place: the connection of a client.
type Depository interface {
	Deposit(body json.RawMessage) json.RawMessage
}

// MarshalJSON returns the bytes, or what stands for them.
func (r *Result) MarshalJSON() ([]byte, error) {
	if r.Past != nil {
		return r.Past.Deposit(r.Body), nil
	}
	return r.Body, nil
}

// rawParams are the params of a notification as bytes.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON returns the bytes.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.body, nil }

type sendingKey struct{}

// A sending is a notification or a request to a client as bytes. It travels in
// the context of one that the SDK has a method for.
type sending struct {
	method string
	params json.RawMessage
	answer json.RawMessage // of a request
}

// Notify sends a notification to a client: on the stream of the request that
// ctx is of, if it is of one.
func Notify(ctx context.Context, to *mcp.ServerSession, method string, params json.RawMessage) error {
	s := &sending{method: method, params: params}
	return to.NotifyProgress(context.WithValue(ctx, sendingKey{}, s), &mcp.ProgressNotificationParams{})
}

// Request sends a request to a client without checking what the client can,
// and returns its raw result. The client's own error is a [*jsonrpc.Error].
func Request(ctx context.Context, to *mcp.ServerSession, method string, params json.RawMessage) (json.RawMessage, error) {
	s := &sending{method: method, params: params}
	_, err := to.CreateMessageWithTools(context.WithValue(ctx, sendingKey{}, s), nil) //nolint:staticcheck // deprecated with sampling, but it lets any request through
	var answer *sdkjsonrpc.Error
	if errors.As(err, &answer) {
		return nil, &jsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	}
	return s.answer, err
}

// Send returns the middleware that replaces what the SDK is about to send by
// what [Notify] and [Request] send through it. Instead, if it returns params,
// says what goes in the place of what the SDK sends by itself.
func Send(instead func(ctx context.Context, method string, req mcp.Request) (params json.RawMessage, err error)) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			s, ok := ctx.Value(sendingKey{}).(*sending)
			session, of := req.GetSession().(*mcp.ServerSession)
			params, err := instead(ctx, method, req)
			if err != nil {
				return nil, err
			}
			if params != nil {
				s, ok = &sending{method: method, params: params}, true
			}
			if !ok || !of {
				return next(ctx, method, req)
			}
			result, err := next(ctx, s.method, &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{body: s.params}})
			if err != nil || result == nil {
				return nil, err
			}
			s.answer, err = carried(result)
			return &mcp.CreateMessageWithToolsResult{}, err //nolint:staticcheck // as above
		}
	}
}

const answerKey = "dockgate.answer"

// CarryAnswer returns what goes through the SDK in place of a client's result:
// one that each of the SDK's types can hold, with the bytes inside. A
// transport does this to every response it reads.
func CarryAnswer(result json.RawMessage) json.RawMessage {
	if result == nil {
		return nil
	}
	carrier := []byte(`{"action":"cancel","role":"assistant","model":"","content":{"type":"text","text":""},"roots":[],"_meta":{"` + answerKey + `":"`)
	carrier = base64.StdEncoding.AppendEncode(carrier, result)
	return append(carrier, `"}}`...)
}

// carried returns the bytes of a client's result.
func carried(result mcp.Result) (json.RawMessage, error) {
	if encoded, ok := result.GetMeta()[answerKey].(string); ok {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return json.Marshal(result)
}
