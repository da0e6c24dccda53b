package era_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/era"
)

// FuzzTranslate holds that what is translated stays JSON, whatever came, and
// that what a client is asked never loses the name of who asks.
func FuzzTranslate(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"content":[],"_meta":{"a":1}}`, `{"resultType":"complete","ttlMs":1,"structuredContent":[1]}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m"}}},"requestState":"s"}`,
		`{"resultType":"input_required"}`, `{"mode":"url","url":"https://a.example","message":"m","elicitationId":"1"}`,
		`{"_meta":null,"_meta":{"progressToken":1}}`, `{"name":"t","outputSchema":true,"execution":{"taskSupport":"required"}}`,
	} {
		f.Add([]byte(seed))
	}
	all := era.Abilities{Form: true, URL: true, Sampling: true, Tools: true, Roots: true}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || data[0] != '{' {
			return // what reaches this is a member of a message that was parsed
		}
		valid := func(what string, raw json.RawMessage, err error) {
			t.Helper()
			if err == nil && raw != nil && !json.Valid(raw) {
				t.Errorf("%s of %q = %q, which is not JSON", what, data, raw)
			}
		}
		for _, method := range []string{"tools/call", "resources/read"} {
			raw, err := era.ForLegacy(method, data)
			valid("ForLegacy", raw, err)
			raw, _, err = era.ForModern(method, data, json.RawMessage(`{"name":"g"}`))
			valid("ForModern", raw, err)
		}
		unfinished, err := era.Unfinished(data)
		valid("Unfinished", unfinished, err)
		inputs, state, _, err := era.Inputs(data)
		valid("Inputs", state, err)
		for _, input := range inputs {
			valid("Inputs", input.Params, nil)
		}
		raw, err := all.Relayed("one", data, func(s string) string { return "x" + s })
		valid("Relayed", raw, err)
		if raw, err = all.Question("one", era.Elicit, data); err == nil {
			valid("Question", raw, nil)
			var asked struct{ Message string }
			if json.Unmarshal(raw, &asked) == nil && len(asked.Message) < len("one asks: ") {
				t.Errorf("Question of %q = %q, which does not say who asks", data, raw)
			}
		}
		raw, err = era.ForRounds(era.Elicit, data)
		valid("ForRounds", raw, err)
		raw, err = era.ForSessions(era.Elicit, data, "id")
		valid("ForSessions", raw, err)
		raw, err = era.ToolForLegacy(data)
		valid("ToolForLegacy", raw, err)
		raw, err = era.Retry(data, map[string]json.RawMessage{"a": data}, state)
		valid("Retry", raw, err)
		valid("Forwarded", era.Forwarded(data), nil)
		raw, err = era.WithMeta(data, "k", json.RawMessage("1"))
		valid("WithMeta", raw, err)
		_, _ = era.AbilitiesOf(data), era.NeedsTasks(data)
	})
}
