package endpoint_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A front is an endpoint in front of a house, with an address.
type front struct {
	*gatewaytest.House
	*endpoint.Endpoint
	url   string
	store *store.DB
	// stop ends it as a signal does, and returns what Serve did.
	stop func() error
}

type options struct {
	limits  endpoint.Limits
	origins []string
	locked  bool // ask for tokens
	sse     bool
	fresh   time.Duration
	mode    approval.Mode // all unless set
}

// open makes a front at a loopback address whose servers are approved.
func open(t testing.TB, o options, servers map[string]sandboxtest.Server) *front {
	t.Helper()
	h := gatewaytest.Build(t, gatewaytest.Options{Mode: cmp.Or(o.mode, approval.ModeAll), Wait: time.Minute, Fresh: o.fresh, Active: []string{"one", "alone"}, Logger: slog.New(slog.DiscardHandler)}, servers)
	db, err := store.Open(t.Context(), t.TempDir())
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	f := &front{House: h, store: db}
	f.Endpoint = endpoint.New(endpoint.Options{
		Gateway: h.Gateway, Access: access.New(access.Options{Source: db, Open: !o.locked}),
		Origins: o.origins, SSE: o.sse, Limits: o.limits, Logger: slog.New(slog.DiscardHandler),
	})
	listener, err := endpoint.Listen(t.Context(), "127.0.0.1:0")
	check(t, err)
	f.url = "http://" + listener.Addr().String() + endpoint.Path
	f.stop = f.serve(t, listener)
	return f
}

// serve serves a listener until the test ends or the returned function is called.
func (f *front) serve(t testing.TB, listener net.Listener) func() error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, listener) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-served
	}
	t.Cleanup(func() { check(t, stop()) })
	return stop
}

// token makes a token for a name.
func (f *front) token(t testing.TB, name string) string {
	t.Helper()
	token, plain, err := access.Mint(name, "", time.Time{})
	check(t, err)
	check(t, f.store.AddToken(t.Context(), token))
	return plain.Reveal()
}

// join connects a client of the official SDK, with a token or without.
func (f *front) join(t testing.TB, version string, client *mcp.Client, token string) *mcp.ClientSession {
	t.Helper()
	transport := &http.Transport{}
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: f.url, HTTPClient: &http.Client{Transport: bearer{transport, token}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	check(t, err)
	t.Cleanup(func() {
		_ = session.Close() // the front may be gone already
		transport.CloseIdleConnections()
	})
	return session
}

// bearer sends a token with each request, if there is one.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

func versions() []string { return []string{"2025-11-25", "2026-07-28"} }

func newClient(o *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, o)
}

func echo(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Says it again", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
}

func echoing() map[string]sandboxtest.Server {
	return map[string]sandboxtest.Server{"test/one": gatewaytest.SDKServer(echo)}
}

func text(result *mcp.CallToolResult) string {
	var all []string
	for _, content := range result.Content {
		if said, ok := content.(*mcp.TextContent); ok {
			all = append(all, said.Text)
		}
	}
	return strings.Join(all, "\n")
}

// Clients of both eras list and call on one URL, with tokens and without.
func TestErasShareOneURL(t *testing.T) {
	for _, locked := range []bool{false, true} {
		f := open(t, options{locked: locked}, echoing())
		token := ""
		if locked {
			token = f.token(t, "ann")
		}
		for _, version := range versions() {
			session := f.join(t, version, newClient(nil), token)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("version = %q, want %q", got, version)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{"a": "<&>"}})
			check(t, err)
			if got, want := text(result), `{"a":"<&>"}`; got != want {
				t.Errorf("%s: echo = %s, want %s", version, got, want)
			}
			f.Changed(t.Context())
			var names []string
			for tool, err := range session.Tools(t.Context(), nil) {
				check(t, err)
				names = append(names, tool.Name)
			}
			if !strings.Contains(strings.Join(names, " "), "one__echo") {
				t.Errorf("%s: tools = %v, want one__echo among them", version, names)
			}
		}
	}
}

func post(t testing.TB, handler http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+endpoint.Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// What did not come from here goes no further, whoever it is from.
func TestOrigin(t *testing.T) {
	f := open(t, options{origins: []string{"https://app.example.com"}}, echoing())
	tests := []struct {
		host, origin string
		want         int
	}{
		{"localhost", "", 200},
		{"LOCALHOST:8811", "", 200},
		{"127.0.0.1:8811", "", 200},
		{"[::1]:8811", "", 200},
		{"[::1]", "", 200},
		{"192.0.2.1", "", 403}, // of another machine, and the connection is none to it
		{"evil.example.com", "", 403},
		{"localhost.evil.example.com", "", 403},
		{"127.0.0.1.evil.example.com:80", "", 403},
		{"", "", 403},
		{"localhost:8811", "http://localhost:8811", 200},
		{"localhost:8811", "http://localhost:3000", 403}, // another page of this machine
		{"localhost:8811", "https://app.example.com", 200},
		{"localhost:8811", "https://evil.example.com", 403},
		{"localhost:8811", "null", 403},
		{"localhost:8811", "://", 403},
		{"evil.example.com", "http://evil.example.com", 403}, // DNS rebinding
	}
	for _, tt := range tests {
		headers := []string{"Host", tt.host}
		if tt.origin != "" {
			headers = append(headers, "Origin", tt.origin)
		}
		if got := post(t, f, initialize, headers...); got.Code != tt.want {
			t.Errorf("POST with Host %q, Origin %q = %d %s, want %d", tt.host, tt.origin, got.Code, got.Body, tt.want)
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
