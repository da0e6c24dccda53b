package endpoint_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

const (
	modernHang         = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__hang",` + modernMeta + `}}`
	modernHangProgress = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__hang","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	modernListen       = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
)

// Whose token is taken back has no call under way any more, on whatever way it
// goes, and is told so where nothing was sent yet.
func TestRevokedCalls(t *testing.T) {
	modern := modernHeaders("tools/call", "Mcp-Name", "one__hang")
	tests := []struct {
		name, hello string // none in the modern era
		headers     []string
		body        string
	}{
		{"past the SDK", initialize, nil, hangCall},
		{"with progress", initialize, nil, hangProgress},
		{"of a client that can be asked", initializeAble, nil, hangCall},
		{"in a batch", initializeOld, nil, batchOf(hangCall)},
		{"modern", "", modern, modernHang},
		{"modern with progress", "", modern, modernHangProgress},
		{"modern, of a client that can be asked", "", modern, strings.Replace(modernHang, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := newHanging()
			f := open(t, options{locked: true}, server.servers())
			headers := append([]string{"Authorization", "Bearer " + f.token(t, "ann")}, tt.headers...)
			if tt.hello != "" {
				headers = sessionOf(t, f, tt.hello, headers...)
			}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				w := f.ask(t, t.Context(), http.MethodPost, tt.body, headers...)
				body, err := io.ReadAll(w.Body)
				if strings.Contains(tt.body, "progressToken") && w.StatusCode == http.StatusOK {
					if strings.Contains(string(body), `"id":1`) {
						t.Errorf("call whose token was revoked when its progress was sent already = %s, want a stream that ends without an answer", body)
					}
					return
				}
				if w.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(w.Header.Get("WWW-Authenticate"), "Bearer ") ||
					w.Header.Get("Content-Type") != "application/json" || !strings.Contains(string(body), `"code":-32600`) {
					t.Errorf("call whose token was revoked = %s %v: %s, %v, want 401 with a challenge", w.Status, w.Header, body, err)
				}
			}()
			within(t, server.began, "the call")
			check(t, f.store.DeleteToken(t.Context(), "ann"))
			within(t, server.cancelled, "the cancellation at the server")
			within(t, answered, "the answer")
		})
	}
}

// A call that its client has left behind ends with the token, too.
func TestRevokedAbandonedCalls(t *testing.T) {
	for name, request := range map[string]string{"past the SDK": hangCall, "with progress": hangProgress} {
		t.Run(name, func(t *testing.T) {
			server := newHanging()
			f := open(t, options{locked: true}, server.servers())
			session := sessionOf(t, f, initialize, "Authorization", "Bearer "+f.token(t, "ann"))
			f.abandon(t, server, 1, request, session...)
			check(t, f.store.DeleteToken(t.Context(), "ann"))
			within(t, server.cancelled, "the cancellation at the server")
		})
	}
}

// So does one that waits for what its caller was asked.
func TestRevokedParkedCall(t *testing.T) {
	asked := make(chan struct{})
	server := gatewaytest.SDKServerWith(mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}}, func(s *mcp.Server) {
		s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				defer close(asked)
				// Its own context: it is to hear what the gateway says.
				_, err := req.Session.Elicit(context.Background(), &mcp.ElicitParams{Message: "Your name?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
				return nil, err
			})
	})
	f := open(t, options{locked: true}, map[string]sandboxtest.Server{"test/one": server})
	headers := append(modernHeaders("tools/call", "Mcp-Name", "one__echo"), "Authorization", "Bearer "+f.token(t, "ann"))
	if w := post(t, f, asking(`{}`, ""), headers...); state(t, w) == "" {
		t.Fatalf("call of a tool that asks = %d %s, want its question", w.Code, w.Body)
	}
	check(t, f.store.DeleteToken(t.Context(), "ann"))
	within(t, asked, "the answer to the server that asked")
}

// So do streams that only wait for news.
func TestRevokedStreams(t *testing.T) {
	f := open(t, options{locked: true, sse: true}, echoing())
	bearer := []string{"Authorization", "Bearer " + f.token(t, "ann")}
	streams := map[string]*http.Response{
		"GET":    f.ask(t, t.Context(), http.MethodGet, "", sessionOf(t, f, initialize, bearer...)...),
		"listen": f.ask(t, t.Context(), http.MethodPost, modernListen, append(modernHeaders("subscriptions/listen"), bearer...)...),
	}
	old := *f
	old.url = strings.Replace(f.url, endpoint.Path, endpoint.SSEPath, 1)
	streams["event stream"] = old.ask(t, t.Context(), http.MethodGet, "", bearer...)
	check(t, f.store.DeleteToken(t.Context(), "ann"))
	for name, stream := range streams {
		if stream.StatusCode != http.StatusOK {
			t.Errorf("%s = %s, want 200", name, stream.Status)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, stream.Body) // until it ends, which it would not do by itself
		}()
		within(t, ended, "the end of "+name)
	}
}

// An answer to what the gateway has asked needs a token as every message does,
// and the token of the session's own principal.
func TestAnswerWithoutToken(t *testing.T) {
	f := open(t, options{locked: true}, echoing())
	ann, bob := "Bearer "+f.token(t, "ann"), "Bearer "+f.token(t, "bob")
	session := sessionOf(t, f, initializeAble, "Authorization", ann)
	tests := []struct {
		name, authorization string
		status              int
	}{
		{"no token", "", 401},
		{"a wrong token", "Bearer x", 401},
		{"another's token", bob, 403},
		{"its own", ann, 202},
		{"one that is revoked", ann, 401},
	}
	for _, tt := range tests {
		if tt.name == "one that is revoked" {
			check(t, f.store.DeleteToken(t.Context(), "ann"))
			f.refused(t, session)
		}
		headers := session[:2:2]
		if tt.authorization != "" {
			headers = append(headers, "Authorization", tt.authorization)
		}
		for _, body := range []string{`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`} {
			if w := post(t, f, body, headers...); w.Code != tt.status {
				t.Errorf("answer with %s = %d %s, want %d", tt.name, w.Code, w.Body, tt.status)
			}
		}
	}
}

// refused waits until a token is known to be revoked.
func (f *front) refused(t *testing.T, session []string) {
	t.Helper()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for post(t, f, ping, session...).Code != http.StatusUnauthorized {
			if t.Context().Err() != nil {
				return
			}
		}
	}()
	within(t, gone, "the refusal of a revoked token")
}
