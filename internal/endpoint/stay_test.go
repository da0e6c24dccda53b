package endpoint_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/endpoint"
)

const (
	initializeOld  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	initializeAble = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"test","version":"1"}}}`

	ping     = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`
	hangCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__hang"}}`
	// hangProgress is a call during which its client can be sent something.
	hangProgress = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__hang","_meta":{"progressToken":1}}}`
)

// numbered is a message with another id.
func numbered(message, id string) string { return strings.Replace(message, `"id":1`, `"id":`+id, 1) }

// batchOf are messages in one body.
func batchOf(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

// sessionOf begins a session with an initialize of its own.
func sessionOf(t testing.TB, f *front, hello string, headers ...string) []string {
	t.Helper()
	id := post(t, f, hello, headers...).Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatal("initialize began no session")
	}
	return append([]string{"Mcp-Session-Id", id}, headers...)
}

// abandon makes a request that begins so many calls and leaves then; it returns
// when the HTTP request is over.
func (f *front) abandon(t *testing.T, server *hanging, calls int, body string, headers ...string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+endpoint.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.ServeHTTP(httptest.NewRecorder(), r)
	}()
	for range calls {
		within(t, server.began, "the call")
	}
	leave()
	within(t, over, "the end of the HTTP request")
}

// A call takes its part of its principal's limit until it ends, not until its
// client leaves.
func TestLimitCountsCalls(t *testing.T) {
	tests := []struct {
		name, hello string
		requests    []string
		calls       int // of each request
	}{
		{"past the SDK", initialize, []string{hangCall, numbered(hangCall, "2")}, 1},
		{"with progress", initialize, []string{hangProgress, numbered(hangProgress, "2")}, 1},
		{"of a client that can be asked", initializeAble, []string{hangCall, numbered(hangCall, "2")}, 1},
		{"in a batch", initializeOld, []string{batchOf(hangCall, numbered(hangCall, "2"))}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := newHanging()
			f := open(t, options{limits: endpoint.Limits{InFlight: 2}}, server.servers())
			session := sessionOf(t, f, tt.hello)
			for _, request := range tt.requests {
				f.abandon(t, server, tt.calls, request, session...)
			}
			w := post(t, f, ping, session...)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
				t.Errorf("ping while two abandoned calls go on = %d %s, want 429 with Retry-After", w.Code, w.Body)
			}
			close(server.let)
			f.answers(t, ping, session)
		})
	}
}

// answers waits until a request is answered that is refused for a while.
func (f *front) answers(t *testing.T, request string, session []string) {
	t.Helper()
	waited, done := context.WithTimeout(t.Context(), patience)
	defer done()
	for {
		w := post(t, f, request, session...)
		if w.Code == http.StatusOK {
			return
		}
		if waited.Err() != nil {
			t.Fatalf("%s = %d %s, want 200 in the end", request, w.Code, w.Body)
		}
	}
}

// A batch takes as much as the calls in it would alone.
func TestLimitCountsBatch(t *testing.T) {
	f := open(t, options{limits: endpoint.Limits{InFlight: 2}}, echoing())
	session := sessionOf(t, f, initializeOld)
	for calls, status := range map[int]int{2: http.StatusOK, 3: http.StatusTooManyRequests} {
		var messages []string
		for _, id := range []string{"2", "3", "4"}[:calls] {
			messages = append(messages, numbered(legacyCall, id))
		}
		if w := post(t, f, batchOf(messages...), session...); w.Code != status {
			t.Errorf("batch of %d calls where two may be under way = %d %s, want %d", calls, w.Code, w.Body, status)
		}
	}
	f.answers(t, ping, session)
}
