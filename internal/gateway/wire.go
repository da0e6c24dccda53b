package gateway

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/wire"
)

// paramsOf returns the params of a request as the client sent them.
func paramsOf(req mcp.Request) (json.RawMessage, error) {
	if v := visitOf(req); v != nil {
		if raw, ok := v.Params(req); ok {
			return raw, nil
		}
	}
	if raw, ok := wire.Params(req); ok {
		return raw, nil
	}
	return json.Marshal(req.GetParams())
}

// depository returns where the result of a request is kept, nil if nowhere.
func (g *Gateway) depository(req mcp.Request) wire.Depository {
	if v := visitOf(req); v != nil {
		return v
	}
	if _, s := g.sessionOf(req); s.stream != nil {
		return s.stream
	}
	return nil
}

// acknowledgement returns the params that go in place of the SDK's to a client
// that listens; nil for what is no acknowledgement.
func acknowledgement(ctx context.Context, method string, req mcp.Request) (json.RawMessage, error) {
	begin, ok := ctx.Value(listenKey{}).(func(json.RawMessage) (json.RawMessage, error))
	if !ok || method != subscriptionAcked {
		return nil, nil
	}
	id, err := json.Marshal(req.GetParams().GetMeta()[era.MetaSubscription])
	if err != nil {
		return nil, err
	}
	return begin(id)
}
