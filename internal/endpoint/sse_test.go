package endpoint_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/endpoint"
)

// openStream opens an event stream of MCP 2024-11-05 for the time of the test
// and returns the URL for its messages.
func (f *front) openStream(t *testing.T, headers ...string) (messages string) {
	t.Helper()
	base := strings.TrimSuffix(f.url, endpoint.Path)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+endpoint.SSEPath, nil)
	check(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	stream, err := f.client(t).Do(r)
	check(t, err)
	t.Cleanup(func() { _ = stream.Body.Close() })
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return base + path
		}
	}
	t.Fatalf("GET %s = %s without an endpoint", endpoint.SSEPath, stream.Status)
	return ""
}

// Clients of MCP 2024-11-05 are served too, if that is switched on.
func TestSSE(t *testing.T) {
	f := open(t, options{sse: true}, echoing())
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	session, err := newClient(nil).Connect(t.Context(), &mcp.SSEClientTransport{
		Endpoint: strings.TrimSuffix(f.url, endpoint.Path) + endpoint.SSEPath, HTTPClient: &http.Client{Transport: transport},
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2024-11-05"})
	check(t, err)
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{"a": "<&>"}})
	check(t, err)
	if got, want := text(result), `{"a":"<&>"}`; got != want {
		t.Errorf("echo = %s, want %s", got, want)
	}
	check(t, session.Close())

	off := open(t, options{}, echoing())
	response, err := off.client(t).Get(strings.TrimSuffix(off.url, endpoint.Path) + endpoint.SSEPath) //nolint:noctx // it answers at once
	check(t, err)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("GET %s where it is off = %s, want 404", endpoint.SSEPath, response.Status)
	}
}

// Who knows the address of another's stream cannot write to it.
func TestSSEOfAnother(t *testing.T) {
	f := open(t, options{sse: true, locked: true}, echoing())
	ann, bob := "Bearer "+f.token(t, "ann"), "Bearer "+f.token(t, "bob")
	messages := f.openStream(t, "Authorization", ann)
	tests := []struct {
		name, url, token, body string
		want                   int
	}{
		{"its own", messages, ann, initialize, 202},
		{"another's", messages, bob, initialize, 403},
		{"nobody's", messages, "", initialize, 401},
		{"none", messages + "x", ann, initialize, 404},
		{"no message", messages, ann, "hello", 400},
	}
	for _, tt := range tests {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url, strings.NewReader(tt.body))
		check(t, err)
		if tt.token != "" {
			r.Header.Set("Authorization", tt.token)
		}
		response, err := f.client(t).Do(r)
		check(t, err)
		check(t, response.Body.Close())
		if response.StatusCode != tt.want {
			t.Errorf("%s: POST = %s, want %d", tt.name, response.Status, tt.want)
		}
	}
}

// A call takes its part of its principal's limit here, too, until it ends.
func TestSSELimitCountsCalls(t *testing.T) {
	server := newHanging()
	f := open(t, options{sse: true, limits: endpoint.Limits{InFlight: 3}}, server.servers())
	messages := f.openStream(t)
	say := func(body string) int {
		t.Helper()
		response, err := f.client(t).Post(messages, "application/json", strings.NewReader(body)) //nolint:noctx // it answers at once
		check(t, err)
		check(t, response.Body.Close())
		return response.StatusCode
	}
	waited, done := context.WithTimeout(t.Context(), patience)
	defer done()
	accepted := func(body string) { // in the end: a POST is over a little after its answer
		t.Helper()
		for say(body) != http.StatusAccepted {
			if waited.Err() != nil {
				t.Fatalf("POST of %s is refused", body)
			}
		}
	}
	accepted(initialize)
	accepted(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, call := range []string{numbered(hangCall, "2"), numbered(hangProgress, "3"), numbered(hangCall, "4")} {
		accepted(call)
		within(t, server.began, "the call")
	}
	if status := say(ping); status != http.StatusTooManyRequests {
		t.Errorf("ping while three calls go on = %d, want 429", status)
	}
	close(server.let)
	accepted(ping)
}
