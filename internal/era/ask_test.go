package era_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

func TestAbilitiesOf(t *testing.T) {
	tests := []struct {
		capabilities string
		want         era.Abilities
	}{
		{``, era.Abilities{}},
		{`{}`, era.Abilities{}},
		{`[]`, era.Abilities{}},
		{`{"elicitation":{}}`, era.Abilities{Form: true}},
		{`{"elicitation":{"form":{}}}`, era.Abilities{Form: true}},
		{`{"elicitation":{"url":{}}}`, era.Abilities{URL: true}},
		{`{"elicitation":{"url":{},"form":{}}}`, era.Abilities{Form: true, URL: true}},
		{`{"elicitation":null,"roots":true}`, era.Abilities{}},
		{`{"sampling":{},"roots":{"listChanged":true}}`, era.Abilities{Sampling: true, Roots: true}},
		{`{"sampling":{"tools":{}}}`, era.Abilities{Sampling: true, Tools: true}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, era.AbilitiesOf(json.RawMessage(tt.capabilities))); diff != "" {
			t.Errorf("AbilitiesOf(%s) (-want +got):\n%s", tt.capabilities, diff)
		}
	}
}

// What is written of abilities says the same when it is read.
func TestCapabilities(t *testing.T) {
	for bits := range 32 {
		can := func(bit int) bool { return bits>>bit&1 == 1 }
		want := era.Abilities{Form: can(0), URL: can(1), Sampling: can(2), Tools: can(2) && can(3), Roots: can(4)}
		written := want.Capabilities()
		if got := era.AbilitiesOf(json.RawMessage(written)); got != want || !json.Valid([]byte(written)) {
			t.Errorf("Capabilities() of %+v = %s, which is %+v", want, written, got)
		}
	}
	all := era.Abilities{Form: true, URL: true, Sampling: true, Tools: true, Roots: true}
	if got := all.Capabilities(); got != fleet.Capabilities {
		t.Errorf("Capabilities() of everything = %s, want %s", got, fleet.Capabilities)
	}
}

func TestQuestion(t *testing.T) {
	all := era.Abilities{Form: true, URL: true, Sampling: true, Tools: true, Roots: true}
	forms := era.Abilities{Form: true}
	const webMode = `{"mode":"url","message":"m","elicitationId":"1","url":`
	tests := []struct {
		name   string
		can    era.Abilities
		method string
		params string
		want   string // the params, or
		code   int64  // of the refusal
	}{
		{"form", forms, era.Elicit, `{"message":"Who?","x":1.0,"requestedSchema":{"b":1,"a":12345678901234567890}}`, `{"message":"one asks: Who?","x":1.0,"requestedSchema":{"b":1,"a":12345678901234567890}}`, 0},
		{"escapes stay", forms, era.Elicit, `{"message":"\u2028\u200b"}`, `{"message":"one asks: \u2028\u200b"}`, 0},
		{"one message", forms, era.Elicit, `{"message":"a","message":"b"}`, `{"message":"one asks: b"}`, 0},
		{"no message", forms, era.Elicit, `{"requestedSchema":{}}`, "", jsonrpc.CodeInvalidParams},
		{"message of another kind", forms, era.Elicit, `{"message":1}`, "", jsonrpc.CodeInvalidParams},
		{"no params", forms, era.Elicit, ``, "", jsonrpc.CodeInvalidParams},
		{"no elicitation", era.Abilities{Roots: true}, era.Elicit, `{"message":"m"}`, "", jsonrpc.CodeMethodNotFound},
		{"only forms", forms, era.Elicit, webMode + `"https://a.example"}`, "", jsonrpc.CodeInvalidParams},
		{"only addresses", era.Abilities{URL: true}, era.Elicit, `{"message":"m"}`, "", jsonrpc.CodeInvalidParams},
		{"unknown mode", all, era.Elicit, `{"mode":"voice","message":"m"}`, "", jsonrpc.CodeInvalidParams},
		{"address", all, era.Elicit, webMode + `"https://a.example/?q=<&>"}`, `{"mode":"url","message":"one asks: m","elicitationId":"1","url":"https://a.example/?q=<&>"}`, 0},
		{"http", all, era.Elicit, webMode + `"http://127.0.0.1:1/x"}`, `{"mode":"url","message":"one asks: m","elicitationId":"1","url":"http://127.0.0.1:1/x"}`, 0},
		{"file", all, era.Elicit, webMode + `"file:///etc/passwd"}`, "", jsonrpc.CodeInvalidParams},
		{"script", all, era.Elicit, webMode + `"javascript:alert(1)"}`, "", jsonrpc.CodeInvalidParams},
		{"no host", all, era.Elicit, webMode + `"https:///x"}`, "", jsonrpc.CodeInvalidParams},
		{"the address that counts", all, era.Elicit, `{"url":"file:///x","mode":"form","mode":"url","message":"m","url":"https://a.example"}`, `{"url":"https://a.example","mode":"url","message":"one asks: m"}`, 0},
		{"sampling", era.Abilities{Sampling: true}, era.Sample, `{"messages":[],"x":{}}`, `{"messages":[],"x":{}}`, 0},
		{"sampling with tools", era.Abilities{Sampling: true}, era.Sample, `{"tools":[]}`, "", jsonrpc.CodeInvalidParams},
		{"sampling with a tool choice", era.Abilities{Sampling: true}, era.Sample, `{"toolChoice":{}}`, "", jsonrpc.CodeInvalidParams},
		{"tools", all, era.Sample, `{"tools":[]}`, `{"tools":[]}`, 0},
		{"no sampling", forms, era.Sample, `{}`, "", jsonrpc.CodeMethodNotFound},
		{"roots", all, era.Roots, ``, `{}`, 0},
		{"token of the other hop", all, era.Roots, `{"_meta":{"progressToken":1,"v/x":2}}`, `{"_meta":{"v/x":2}}`, 0},
		{"no roots", forms, era.Roots, ``, "", jsonrpc.CodeMethodNotFound},
		{"unknown", all, "x/y", `{}`, "", jsonrpc.CodeMethodNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.can.Question("one", tt.method, json.RawMessage(tt.params))
			var refusal *jsonrpc.Error
			if errors.As(err, &refusal); (refusal != nil) != (tt.code != 0) || refusal != nil && refusal.Code != tt.code || string(got) != tt.want {
				t.Errorf("Question(%s, %s) = %s, %v, want %s, code %d", tt.method, tt.params, got, err, tt.want, tt.code)
			}
		})
	}
}
