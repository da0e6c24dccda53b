package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/era"
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

type sendingKey struct{}

// A sending is a notification or a request to a client as bytes. It travels in
// the context of one that the SDK has a method for.
type sending struct {
	method string
	params json.RawMessage
	answer json.RawMessage // of a request
}

// notify sends a notification to a client: on the stream of the request that
// ctx is of, if it is of one.
func notify(ctx context.Context, to *mcp.ServerSession, method string, params json.RawMessage) error {
	s := &sending{method: method, params: params}
	return to.NotifyProgress(context.WithValue(ctx, sendingKey{}, s), &mcp.ProgressNotificationParams{})
}

// request sends a request to a client without checking what the client can,
// and returns its raw result. The client's own error is a [*jsonrpc.Error].
func request(ctx context.Context, to *mcp.ServerSession, method string, params json.RawMessage) (json.RawMessage, error) {
	s := &sending{method: method, params: params}
	_, err := to.CreateMessageWithTools(context.WithValue(ctx, sendingKey{}, s), nil) //nolint:staticcheck // deprecated with sampling, but it lets any request through
	var answer *sdkjsonrpc.Error
	if errors.As(err, &answer) {
		return nil, &jsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	}
	return s.answer, err
}

// sendRaw replaces what the SDK is about to send by the sending in its context.
func sendRaw(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		s, ok := ctx.Value(sendingKey{}).(*sending)
		session, of := req.GetSession().(*mcp.ServerSession)
		if acked, err := acknowledged(ctx, method, req); acked != nil || err != nil {
			s, ok = acked, true
			if err != nil {
				return nil, err
			}
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

// acknowledged returns the acknowledgement that goes in place of the SDK's for
// a request that listens.
func acknowledged(ctx context.Context, method string, req mcp.Request) (*sending, error) {
	begin, ok := ctx.Value(listenKey{}).(func(json.RawMessage) (json.RawMessage, error))
	if !ok || method != subscriptionAcked {
		return nil, nil //nolint:nilnil // the two together say that it is not one
	}
	id, err := json.Marshal(req.GetParams().GetMeta()[era.MetaSubscription])
	if err != nil {
		return nil, err
	}
	params, err := begin(id)
	if err != nil {
		return nil, err
	}
	return &sending{method: method, params: params}, nil
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

// wireError returns a server's own error so that the SDK sends it as it is. One
// of no code is an internal error; the SDK would give it the code zero.
func wireError(err error) error {
	var answer *jsonrpc.Error
	var wire *sdkjsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return &sdkjsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	case errors.As(err, &wire): // the SDK keeps its code
		return err
	}
	return &sdkjsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
