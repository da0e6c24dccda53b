package door_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// Only the approved origin gets a request, whoever asks for another.
func TestOrigin(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	way, err := door.New(sandbox.Remote{URL: "HTTP://Example.com/mcp", Transport: catalog.StreamableHTTP}, nil, door.Options{
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	tests := []struct {
		url  string
		want string // the origin that is refused
	}{
		{"http://example.com/mcp", ""},
		{"http://EXAMPLE.com:80/other", ""},
		{"http://example.com:8080/mcp", "http://example.com:8080"},
		{"https://example.com/mcp", "https://example.com:443"},
		{"http://example.com.evil.test/", "http://example.com.evil.test:80"},
		{"http://example.com@evil.test/", "http://evil.test:80"},
	}
	for _, tt := range tests {
		before, other := reached.Load(), ""
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := way.RoundTrip(req)
		var refused *door.OriginError
		if errors.As(err, &refused) {
			other = refused.Other
		} else if err == nil {
			err = resp.Body.Close()
		}
		if other != tt.want || tt.want == "" && err != nil || (reached.Load() > before) != (tt.want == "") {
			t.Errorf("RoundTrip(%s) = %v after %d requests, refuses %q, want %q", tt.url, err, reached.Load()-before, other, tt.want)
		}
	}
}

// A secret is in the request that the server gets, and not in the one that is
// given back, which errors quote.
func TestSecretsStayOutside(t *testing.T) {
	got := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
	defer server.Close()
	const query = "/?key=${KEY}"
	way, err := door.New(
		sandbox.Remote{URL: server.URL + query, Transport: catalog.StreamableHTTP, Headers: []sandbox.Header{{Name: "X-Key", Template: "<${KEY}>"}}},
		map[string]secret.Value{"KEY": secret.NewValue(canary)}, door.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := way.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.URL.Query().Get("key") != canary || r.Header.Get("X-Key") != "<"+canary+">" {
		t.Errorf("the server got %s with X-Key %q, want the secret in both", r.URL, r.Header.Get("X-Key"))
	}
	if back := resp.Request; strings.Contains(back.URL.String(), canary) || back.Header.Get("X-Key") != "" {
		t.Errorf("the request of the answer is %s with X-Key %q, want no secret", back.URL, back.Header.Get("X-Key"))
	}
}
