package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestServerRequestsWithoutServe(t *testing.T) {
	_, p := connect(t, options(upstream.Legacy))
	p.play(`
		< {"id":"a","method":"ping"}
		> {"id":"a","result":{}}
		< {"id":1,"method":"sampling/createMessage","params":{"messages":[]}}
		> {"id":1,"error":{"code":-32601,"message":"method not found: sampling/createMessage"}}
	`)
}

func TestServerRequestsAreServed(t *testing.T) {
	o := options(upstream.Legacy)
	o.Serve = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "echo":
			return params, nil
		case "nothing":
			return nil, nil
		case "garbage":
			return json.RawMessage(`{`), nil
		case "declined":
			return nil, fmt.Errorf("ask: %w", &jsonrpc.Error{Code: -1, Message: "declined", Data: json.RawMessage(`{"a":1}`)})
		default:
			return nil, errors.New("a secret of ours")
		}
	}
	_, p := connect(t, o)
	p.play(`
		< {"id":1,"method":"echo","params":{"b":9007199254740993,"a":"<>&","b":1}}
		> {"id":1,"result":{"b":9007199254740993,"a":"<>&","b":1}}
		< {"id":"2","method":"nothing"}
		> {"id":"2","result":{}}
		< {"id":3,"method":"garbage"}
		> {"id":3,"error":{"code":-32603,"message":"internal error"}}
		< {"id":4,"method":"declined"}
		> {"id":4,"error":{"code":-1,"message":"declined","data":{"a":1}}}
		< {"id":5,"method":"other"}
		> {"id":5,"error":{"code":-32603,"message":"internal error"}}
		< {"id":6,"method":"ping"}
		> {"id":6,"result":{}}
	`)
}

func TestServerRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 100)
		o := options(upstream.Legacy)
		o.Serve = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return json.RawMessage("{}"), nil
		}
		s, p := connect(t, o)
		p.play(`
			< {"id":1,"method":"elicitation/create"}
			< {"id":1,"method":"elicitation/create"}
			> {"id":1,"error":{"code":-32600,"message":"id is in use"}}
			< {"method":"notifications/cancelled","params":{"requestId":2}}
			< {"method":"notifications/cancelled","params":{"reason":"x","requestId":1}}
		`)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("context of a cancelled request ended with %v", err)
		}
		// The cancelled request is not answered; the next line is of another.
		synctest.Wait()
		p.play("< {\"id\":1,\"method\":\"ping\"}\n> {\"id\":1,\"result\":{}}")
		for id := range 64 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create"}`, id))
		}
		p.play(`
			< {"id":64,"method":"elicitation/create"}
			> {"id":64,"error":{"code":-32603,"message":"too many requests in progress"}}
		`)
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if len(ended) != 64 {
			t.Errorf("%d requests ended with the session, want 64", len(ended))
		}
	})
}
