package remote_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// The older transport has no headers that repeat arguments.
func TestJudgeOlder(t *testing.T) {
	older := dial(t, sandbox.Remote{URL: newPlace(t, oldSSE(newServer())).URL, Transport: catalog.SSE}, door.Options{})
	judge := older.(interface {
		Judge(tool json.RawMessage) error
	})
	if err := judge.Judge(json.RawMessage(`{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":""}}}}`)); err != nil {
		t.Errorf("Judge(over the older transport) = %v, want none", err)
	}
}

// A tool that cannot be called is not among those that a server offers.
func TestUncallableIsLeftOut(t *testing.T) {
	inner := streamable(newServer(), upstream.Modern)
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err != nil || json.Unmarshal(body, &request) != nil || request.Method != "tools/list" {
			r.Body = io.NopCloser(bytes.NewReader(body))
			inner.ServeHTTP(w, r)
			return
		}
		answer(w, http.StatusOK, "application/json", `{"jsonrpc":"2.0","id":`+string(request.ID)+`,"result":{"resultType":"complete","tools":[
			{"name":"good","inputSchema":{"type":"object"}},
			{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a header"}}}}]}}`)
	}))
	offer, err := converse(t, dial(t, sandbox.Remote{URL: p.URL}, door.Options{}), upstream.Options{}).Offer(t.Context())
	if err != nil || len(offer.Tools) != 1 || offer.Tools[0].Name != "good" || len(offer.Refused) != 1 {
		t.Errorf("Offer() = %v, %v, want one tool and one refused", offer, err)
	}
}
