package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveHTTP starts the gateway at a free port, with a token for a client, and
// returns its URL and a client that sends the token.
func (h house) serveHTTP(t *testing.T, args ...string) (gateway *program, url string, client *http.Client) {
	t.Helper()
	token, err := h.command(t, "token", "new", "ann")
	if err != nil {
		t.Fatal(err)
	}
	gateway = h.serve(t, append([]string{"--http", "127.0.0.1:0", "--approve", "all"}, args...)...)
	url, err = bufio.NewReader(gateway).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway printed %q, %v, want its address", url, err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return gateway, strings.TrimSpace(url), &http.Client{Transport: bearer{transport, strings.TrimSpace(token)}}
}

type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip sends the token with a request.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// SIGTERM lets the calls under way end, takes no new ones, and leaves nothing.
func TestDrain(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		h := newHouse(t, demo)
		gateway, url, httpClient := h.serveHTTP(t, "--server", "thing")
		progress := make(chan struct{}, 64)
		client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} },
		})
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: httpClient},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: connect: %v\n%s", version, err, gateway.stderr)
		}
		answered := make(chan error, 1)
		go func() {
			params := &mcp.CallToolParams{Name: "thing__sleep", Arguments: map[string]any{"ms": 2000}, Meta: mcp.Meta{"progressToken": "p"}}
			result, err := session.CallTool(t.Context(), params)
			if err == nil && result.IsError {
				err = fmt.Errorf("%v", result.Content)
			}
			answered <- err
		}()
		select {
		case <-progress:
		case err := <-answered:
			t.Fatalf("%s: the call = %v before any progress", version, err)
		}
		if err := gateway.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("%s: the call under way = %v, want its result", version, err)
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "thing__echo", Arguments: map[string]any{"text": "x"}}); err == nil {
			t.Errorf("%s: a call after SIGTERM succeeds", version)
		}
		_ = session.Close()            // the gateway has gone
		rest, _ := io.ReadAll(gateway) // until it has ended
		if err := gateway.cmd.Wait(); err != nil || len(rest) > 0 {
			t.Errorf("%s: the gateway ended with %v and %q, want 0 and nothing", version, err, rest)
		}
		within(t, 10*time.Second, "the end of all containers", func() bool { return len(left(t, api, h)) == 0 })
	}
}
