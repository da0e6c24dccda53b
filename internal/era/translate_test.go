package era_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

const (
	callTool     = "tools/call"
	readResource = "resources/read"
)

func TestForLegacy(t *testing.T) {
	tests := []struct{ method, result, want string }{
		{callTool, `{"content":[ ],"x":1.0,"x":2}`, `{"content":[ ],"x":1.0,"x":2}`},
		{callTool, `{"resultType":"complete","content":[]}`, `{"content":[]}`},
		{callTool, `{"content":[],"structuredContent":{"a":1}}`, `{"content":[],"structuredContent":{"a":1}}`},
		{callTool, `{"content":[],"structuredContent":[1]}`, `{"content":[]}`},
		{callTool, `{"structuredContent":null,"ttlMs":1,"cacheScope":"x"}`, `{"ttlMs":1,"cacheScope":"x"}`},
		{readResource, `{"contents":[],"ttlMs":1,"cacheScope":"private","structuredContent":1}`, `{"contents":[],"structuredContent":1}`},
		{callTool, `{"_meta":{"io.modelcontextprotocol/serverInfo":{}},"content":[]}`, `{"content":[]}`},
		{callTool, `{"_meta":{"v/x":1,"io.modelcontextprotocol/serverInfo":{}},"content":[]}`, `{"_meta":{"v/x":1},"content":[]}`},
	}
	for _, tt := range tests {
		if got, err := era.ForLegacy(tt.method, json.RawMessage(tt.result)); string(got) != tt.want || err != nil {
			t.Errorf("ForLegacy(%s, %s) = %s, %v, want %s", tt.method, tt.result, got, err, tt.want)
		}
	}
}

func TestForModern(t *testing.T) {
	const us = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"g"}}`
	tests := []struct {
		method, result, want string
		asks                 bool
	}{
		{callTool, `{}`, `{"resultType":"complete",` + us + `}`, false},
		{callTool, `{"content":[ ],"x":1,"x":2} `, `{"content":[ ],"x":1,"x":2,"resultType":"complete",` + us + `}`, false},
		{callTool, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`, false},
		{callTool, `{"resultType":"task","_meta":{"v/x":1}}`, `{"resultType":"task","_meta":{"v/x":1,"io.modelcontextprotocol/serverInfo":{"name":"g"}}}`, false},
		{readResource, `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + us + `}`, false},
		{readResource, `{"contents":[],"ttlMs":5,"cacheScope":"public",` + us + `}`, `{"contents":[],"ttlMs":5,"cacheScope":"private",` + us + `,"resultType":"complete"}`, false},
		{callTool, `{"resultType":"input_required","requestState":"s"}`, `{"resultType":"input_required","requestState":"s"}`, true},
	}
	for _, tt := range tests {
		got, asks, err := era.ForModern(tt.method, json.RawMessage(tt.result), json.RawMessage(`{"name":"g"}`))
		if string(got) != tt.want || asks != tt.asks || err != nil {
			t.Errorf("ForModern(%s, %s) = %s, %t, %v, want %s, %t", tt.method, tt.result, got, asks, err, tt.want, tt.asks)
		}
	}
}

func TestUnfinished(t *testing.T) {
	const roots = `{"a":{"method":"roots/list"}}`
	tests := []struct{ result, want string }{
		{`{}`, `{}`},
		{`{"content":[{"text":"\"inputRequests\""}]}`, `{"content":[{"text":"\"inputRequests\""}]}`},
		{`{"content":[],"inputRequests":` + roots + `,"requestState":"s"}`, `{"content":[],"inputRequests":` + roots + `,"requestState":"s","resultType":"input_required"}`},
		{`{"inputRequests":` + roots + `,"resultType":"complete"}`, `{"inputRequests":` + roots + `,"resultType":"complete"}`},
		{`{"inputRequests":{}}`, `{"inputRequests":{}}`},
		{`{"inputRequests":[1]}`, `{"inputRequests":[1]}`},
		{`{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"tools/call"}}}`, `{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"tools/call"}}}`},
		{`{"inputRequests":{"a":1}}`, `{"inputRequests":{"a":1}}`},
	}
	for _, tt := range tests {
		if got, err := era.Unfinished(json.RawMessage(tt.result)); string(got) != tt.want || err != nil {
			t.Errorf("Unfinished(%s) = %s, %v, want %s", tt.result, got, err, tt.want)
		}
	}
}

func TestInputsAndRetry(t *testing.T) {
	result := json.RawMessage(`{"inputRequests":{"b":{"method":"roots/list"},"a":{"params":{"x":1.0},"method":"elicitation/create"}},"requestState":"<s>","resultType":"input_required"}`)
	inputs, state, asks, err := era.Inputs(result)
	want := []era.Input{{Key: "b", Method: era.Roots}, {Key: "a", Method: era.Elicit, Params: json.RawMessage(`{"x":1.0}`)}}
	if diff := cmp.Diff(want, inputs); diff != "" || string(state) != `"<s>"` || !asks || err != nil {
		t.Errorf("Inputs() = %s, %t, %v; inputs (-want +got):\n%s", state, asks, err, diff)
	}
	if _, _, asks, err := era.Inputs(json.RawMessage(`{"content":[]}`)); asks || err != nil {
		t.Errorf("Inputs of a result = %t, %v, want none", asks, err)
	}
	first := json.RawMessage(`{"name":"t","inputResponses":{"old":1},"requestState":"old","x":1.0}`)
	got, err := era.Retry(first, map[string]json.RawMessage{"a": json.RawMessage(`{"t":"<&>"}`)}, state)
	if string(got) != `{"name":"t","x":1.0,"inputResponses":{"a":{"t":"<&>"}},"requestState":"<s>"}` || err != nil {
		t.Errorf("Retry() = %s, %v", got, err)
	}
	if got, err := era.Retry(first, nil, nil); string(got) != `{"name":"t","x":1.0}` || err != nil {
		t.Errorf("Retry without answers = %s, %v", got, err)
	}
}

func TestRelayed(t *testing.T) {
	can := era.Abilities{Form: true}
	result := json.RawMessage(`{"resultType":"input_required","x":1.0,"inputRequests":{"a":{"y":2.0,"method":"elicitation/create","params":{"message":"Who?"}}},"requestState":"s"}`)
	got, err := can.Relayed("one", result, func(s string) string { return "(" + s + ")" })
	want := `{"resultType":"input_required","x":1.0,"inputRequests":{"a":{"y":2.0,"method":"elicitation/create","params":{"message":"one asks: Who?"}}},"requestState":"(s)"}`
	if string(got) != want || err != nil {
		t.Errorf("Relayed() = %s, %v, want %s", got, err, want)
	}
	for _, refused := range []string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"x/y"}}}`,
		`{"resultType":"input_required","requestState":1}`,
	} {
		var refusal *jsonrpc.Error
		if got, err := can.Relayed("one", json.RawMessage(refused), func(s string) string { return s }); !errors.As(err, &refusal) {
			t.Errorf("Relayed(%s) = %s, %v, want a refusal", refused, got, err)
		}
	}
}

func TestForwarded(t *testing.T) {
	for capabilities, want := range map[string]string{
		``: `{}`, `[]`: `{}`, `{"roots":{}}`: `{"roots":{}}`,
		`{"extensions":{"x/tasks":{}},"roots":{"listChanged":true},"tasks":{},"experimental":{"v":1.0}}`: `{"roots":{"listChanged":true},"experimental":{"v":1.0}}`,
	} {
		if got := era.Forwarded(json.RawMessage(capabilities)); string(got) != want {
			t.Errorf("Forwarded(%s) = %s, want %s", capabilities, got, want)
		}
	}
}
