package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// A parked call is not given up with the credential of the request that began
// it where the answer may come with another one, and is where it cannot.
func TestParkedCallAndCredential(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	for _, renewable := range []bool{true, false} {
		outcome := make(chan string, 1)
		h := build(t, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": curious(outcome)})
		var giveUps []func()
		watch := func(giveUp func()) func() {
			giveUps = append(giveUps, giveUp)
			return func() {}
		}
		ann := principal.Principal{ID: "ann"}
		v, err := gateway.NewVisit(ann, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__ask","arguments":{},`+meta+`}}`))
		check(t, err)
		v.Watch = watch
		if !renewable {
			v.WatchParked = watch
		}
		first, ok := h.Direct(t.Context(), v)
		v.Release()
		var state string
		var questions map[string]json.RawMessage
		check(t, json.Unmarshal(jsonrpc.Lookup(first.Result, "requestState"), &state))
		check(t, json.Unmarshal(jsonrpc.Lookup(first.Result, "inputRequests"), &questions))
		if !ok || len(questions) != 1 {
			t.Fatalf("the call is answered with %s, want one question", first.Result)
		}
		for _, giveUp := range giveUps {
			giveUp()
		}
		if !renewable {
			heard(t, outcome, "cancel")
			continue
		}
		for key := range questions {
			result, err := h.joinAs(t, ann, rounds()).CallTool(t.Context(), &mcp.CallToolParams{
				Name: "one__ask", Arguments: map[string]any{}, RequestState: state, InputResponses: accepted(key),
			})
			if err != nil || result.IsError {
				t.Errorf("the answer with another credential = %+v, %v, want the call's result", result, err)
			}
		}
		heard(t, outcome, "accept")
	}
}

func heard(t *testing.T, outcome <-chan string, want string) {
	t.Helper()
	if got := <-outcome; got != want {
		t.Errorf("the server that asked was told %q, want %q", got, want)
	}
}
