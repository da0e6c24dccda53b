package endpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// What a tool's parameters say again in headers must be the same (MCP
// 2026-07-28: server/tools, "x-mcp-header").
func TestMirroredParameters(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":"integer","x-mcp-header":"Count"},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"where":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}`
	f := open(t, options{}, map[string]sandboxtest.Server{"test/one": gatewaytest.SDKServer(func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(schema)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
			})
	})})
	// A server is known when it has run.
	session := f.begin(t)
	if w := post(t, f, legacyCall, session...); w.Code != 200 {
		t.Fatalf("first call = %d %s", w.Code, w.Body)
	}
	f.Changed(t.Context())
	tests := []struct {
		arguments string
		headers   []string
		status    int
	}{
		{`{}`, nil, 200},
		{`{"region":null}`, nil, 200},
		{`{"list":[{"a":"x"}]}`, nil, 200},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "eu"}, 200},
		{`{"region":"eu"}`, []string{"mcp-param-region", "eu"}, 200},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "=?base64?ZXU=?="}, 200},
		{`{"region":"=?base64?ZXU=?="}`, []string{"Mcp-Param-Region", "=?base64?PT9iYXNlNjQ/WlhVPT89?="}, 200},
		{`{"region":"ü"}`, []string{"Mcp-Param-Region", "=?base64?w7w=?="}, 200},
		{`{"region":"us","region":"eu"}`, []string{"Mcp-Param-Region", "eu"}, 200}, // servers take the last
		{`{"count":42}`, []string{"Mcp-Param-Count", "42"}, 200},
		{`{"count":42.0}`, []string{"Mcp-Param-Count", "42"}, 200},
		{`{"count":-1}`, []string{"Mcp-Param-Count", "-1"}, 200},
		{`{"dry":true}`, []string{"Mcp-Param-Dry", "true"}, 200},
		{`{"where":{"city":"Bern"}}`, []string{"Mcp-Param-City", "Bern"}, 200},
		{`{"where":{}}`, nil, 200},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "eu", "Mcp-Param-Other", "x"}, 200},

		{`{"region":"eu"}`, nil, 400},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, 400},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "EU"}, 400},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", ""}, 400},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "=?base64?!?="}, 400},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "=?base64?dXM=?="}, 400},
		{`{"region":"ü"}`, []string{"Mcp-Param-Region", "ü"}, 400},
		{`{"region":"us","region":"eu"}`, []string{"Mcp-Param-Region", "us"}, 400},
		{`{}`, []string{"Mcp-Param-Region", "eu"}, 400},
		{`{"region":null}`, []string{"Mcp-Param-Region", "eu"}, 400},
		{`{"region":{}}`, []string{"Mcp-Param-Region", "{}"}, 400},
		{`{"count":42}`, []string{"Mcp-Param-Count", "43"}, 400},
		{`{"count":42}`, []string{"Mcp-Param-Count", "x"}, 400},
		{`{"count":1.5}`, []string{"Mcp-Param-Count", "1.5"}, 400},
		{`{"count":9007199254740993}`, []string{"Mcp-Param-Count", "9007199254740993"}, 400},
		{`{"dry":true}`, []string{"Mcp-Param-Dry", "false"}, 400},
		{`{"dry":true}`, []string{"Mcp-Param-Dry", "True"}, 400},
		{`{"where":{"city":"Bern"}}`, []string{"Mcp-Param-City", "Basel"}, 400},
	}
	for _, tt := range tests {
		for _, name := range []string{"one__echo", "one.echo"} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, name, tt.arguments, modernMeta)
			w := post(t, f, body, append(modernHeaders("tools/call", "Mcp-Name", name), tt.headers...)...)
			code := int64(0)
			if tt.status != 200 {
				code = -32020
			}
			if gotStatus, gotCode := answerOf(t, w); gotStatus != tt.status || gotCode != code {
				t.Errorf("%s(%s) with %q = %d, code %d: %s, want %d, %d", name, tt.arguments, tt.headers, gotStatus, gotCode, w.Body, tt.status, code)
			}
		}
	}
	// Clients of the other era know nothing of it.
	if w := post(t, f, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{"region":"eu"}}}`, session...); w.Code != 200 {
		t.Errorf("call in a session without headers = %d %s, want 200", w.Code, w.Body)
	}
}
