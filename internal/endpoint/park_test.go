package endpoint_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// asking is a modern call of a client that can be asked, with what its retry
// brings.
func asking(arguments, retry string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":` + arguments + `,` + retry +
		strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1) + `}}`
}

// state returns the requestState of an answer that asks; "" if it is another.
func state(t *testing.T, w *httptest.ResponseRecorder) (state string) {
	t.Helper()
	_, data, _ := strings.Cut(w.Body.String(), "data: ")
	data, _, _ = strings.Cut(data, "\n")
	m, err := jsonrpc.Parse([]byte(data))
	if err != nil {
		t.Fatalf("answer %d %s: %v", w.Code, w.Body, err)
	}
	if string(jsonrpc.Lookup(m.Result, "resultType")) != `"input_required"` {
		return ""
	}
	check(t, json.Unmarshal(jsonrpc.Lookup(m.Result, "requestState"), &state))
	return state
}

// What a call is asked is answered by its own caller, once, for the same
// request: nobody else has any use of the handle.
func TestParkedCallOfAnother(t *testing.T) {
	f := open(t, options{locked: true, mode: approval.ModeAsk}, echoing())
	headers := modernHeaders("tools/call", "Mcp-Name", "one__echo")
	ann := append(headers[:len(headers):len(headers)], "Authorization", "Bearer "+f.token(t, "ann"))
	bob := append(headers[:len(headers):len(headers)], "Authorization", "Bearer "+f.token(t, "bob"))
	answer := func(handle string) string {
		return `"requestState":"` + handle + `","inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}},`
	}
	handle := state(t, post(t, f, asking(`{"a":1}`, ""), ann...))
	if handle == "" {
		t.Fatal("the first call of a server that nobody approved asks nothing")
	}
	refused := func(name, body string, headers []string) {
		t.Helper()
		w := post(t, f, body, headers...)
		if status, code := answerOf(t, w); status != http.StatusBadRequest || code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s = %d, code %d: %s, want 400, -32602", name, status, code, w.Body)
		}
	}
	refused("another's answer", asking(`{"a":1}`, answer(handle)), bob)
	if started := f.Fake.Started(); started != 0 {
		t.Errorf("%d servers were started for another's answer, want none", started)
	}
	w := post(t, f, asking(`{"a":1}`, answer(handle)), ann...)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `{\"a\":1}`) {
		t.Errorf("the caller's own answer = %d %s, want the call's result", w.Code, w.Body)
	}
	refused("the same answer again", asking(`{"a":1}`, answer(handle)), ann)
}

// A handle that comes back with another request is worth nothing any more.
func TestParkedCallForAnother(t *testing.T) {
	f := open(t, options{locked: true, mode: approval.ModeAsk}, echoing())
	ann := append(modernHeaders("tools/call", "Mcp-Name", "one__echo"), "Authorization", "Bearer "+f.token(t, "ann"))
	handle := state(t, post(t, f, asking(`{"a":1}`, ""), ann...))
	retry := `"requestState":"` + handle + `","inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}},`
	for _, arguments := range []string{`{"a":2}`, `{"a":1}`} {
		w := post(t, f, asking(arguments, retry), ann...)
		if status, code := answerOf(t, w); status != http.StatusBadRequest || code != jsonrpc.CodeInvalidParams {
			t.Errorf("answer with the arguments %s = %d, code %d: %s, want 400, -32602", arguments, status, code, w.Body)
		}
	}
	if state(t, post(t, f, asking(`{"a":1}`, ""), ann...)) == "" {
		t.Error("a new call asks nothing: the answer was taken")
	}
}
