package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// plainEcho is a server that costs little, so that what is measured is ours.
func plainEcho(_ context.Context, c sandboxtest.Container) int {
	reader, writer := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
	for {
		m, err := reader.Read()
		if err != nil {
			return 0
		}
		answer := jsonrpc.Message{ID: m.ID}
		switch m.Method {
		case "initialize":
			answer.Result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"plain","version":"1"}}`)
		case "tools/list":
			answer.Result = json.RawMessage(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			answer.Result = json.RawMessage(`{"content":[{"type":"text","text":"the quick brown fox jumps over the lazy dog"}]}`)
		default:
			answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
		}
		if m.ID == nil {
			continue
		}
		if err := writer.Write(answer); err != nil {
			return 1
		}
	}
}

// BenchmarkCall measures a call over HTTP with a server that costs little, in
// both eras.
func BenchmarkCall(b *testing.B) {
	f := open(b, options{limits: endpoint.Limits{Rate: 1e9, Burst: 1e9}}, map[string]sandboxtest.Server{"test/one": plainEcho})
	for name, call := range map[string]struct {
		body    string
		headers []string
	}{
		"legacy": {legacyCall, f.begin(b)},
		"modern": {modernCall, modernHeaders("tools/call", "Mcp-Name", "one__echo")},
	} {
		b.Run(name, func(b *testing.B) {
			client := f.client(b)
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, f.url, strings.NewReader(call.body))
				check(b, err)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				for i := 0; i+1 < len(call.headers); i += 2 {
					r.Header.Set(call.headers[i], call.headers[i+1])
				}
				response, err := client.Do(r)
				check(b, err)
				body, err := io.ReadAll(response.Body)
				check(b, err)
				check(b, response.Body.Close())
				if !bytes.Contains(body, []byte("quick brown fox jumps")) {
					b.Fatalf("POST = %s %s", response.Status, body)
				}
			}
		})
	}
}
