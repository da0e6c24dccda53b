package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// hanging has a tool that begins and goes on until its call is cancelled.
type hanging struct {
	began, cancelled chan struct{}
}

func newHanging() *hanging {
	return &hanging{began: make(chan struct{}, 8), cancelled: make(chan struct{}, 8)}
}

func (h *hanging) server(s *mcp.Server) {
	echo(s)
	s.AddTool(&mcp.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			h.began <- struct{}{}
			<-ctx.Done()
			h.cancelled <- struct{}{}
			return nil, ctx.Err()
		})
}

// within fails the test if something does not happen soon.
func within(t *testing.T, happens <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not happen within 30 s", what)
	}
}

// clients are one that takes forms and one that does not: calls of the former
// may be parked.
func clients() map[string]*mcp.Client {
	var asked []string
	return map[string]*mcp.Client{
		"forms":    answering("approve", &asked),
		"no forms": mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil),
	}
}

func eachClient(t *testing.T, run func(t *testing.T, h *house, server *hanging, client *mcp.Client, version string)) {
	t.Helper()
	for _, version := range versions() {
		for name, client := range clients() {
			t.Run(version+" "+name, func(t *testing.T) {
				server := newHanging()
				h := build(t, options{mode: approval.ModeAll, active: []string{"one"}},
					map[string]sandboxtest.Server{"test/one": sdkServer(server.server)})
				run(t, h, server, client, version)
			})
		}
	}
}

func TestClientCancels(t *testing.T) {
	eachClient(t, func(t *testing.T, h *house, server *hanging, client *mcp.Client, version string) {
		session := h.join(t, client, version)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "one__hang"})
			ended <- err
		}()
		within(t, server.began, "the call")
		cancel()
		within(t, server.cancelled, "the cancellation at the server")
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("CallTool = %v, want the context's error", err)
		}
		// Nothing but the call has ended.
		started := h.fake.Started()
		if result := invoke(t, session, "one__echo", map[string]any{}); result.IsError || h.fake.Started() != started {
			t.Errorf("one__echo = %s after %d starts and %d before, want a result of the same server", text(result), h.fake.Started(), started)
		}
	})
}

func TestClientDisconnects(t *testing.T) {
	eachClient(t, func(t *testing.T, h *house, server *hanging, client *mcp.Client, version string) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- h.Serve(context.WithoutCancel(t.Context()), toServer, fromServer, principal.Local) }()
		session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		check(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__hang"})
			ended <- err
		}()
		within(t, server.began, "the call")
		check(t, fromClient.Close())
		within(t, server.cancelled, "the cancellation at the server")
		check(t, <-served)
		check(t, toClient.Close())
		if err := <-ended; err == nil {
			t.Error("CallTool of who has left = nil, want an error")
		}
		_ = session.Close()
	})
}

// Without a token there is an answer in time even while the server works, and
// the server learns that nobody waits any more.
func TestPatience(t *testing.T) {
	eachClient(t, func(t *testing.T, h *house, server *hanging, client *mcp.Client, version string) {
		session := h.join(t, client, version)
		invoke(t, session, "one__echo", map[string]any{}) // the start is not to count
		h.Caller.Patience = 300 * time.Millisecond
		result := invoke(t, session, "one__hang", map[string]any{})
		if got := text(result); !result.IsError || !strings.HasPrefix(got, call.CodeTimeout) || !strings.Contains(got, "send a progress token") {
			t.Errorf("one__hang = %s, want %s and what to do", got, call.CodeTimeout)
		}
		within(t, server.cancelled, "the cancellation at the server")
	})
}

// The end of the gateway does not wait for calls under way.
func TestEndCancels(t *testing.T) {
	eachClient(t, func(t *testing.T, h *house, server *hanging, client *mcp.Client, version string) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
		defer end()
		served := make(chan error, 1)
		go func() { served <- h.Serve(ctx, toServer, fromServer, principal.Local) }()
		session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		check(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "one__hang"})
			ended <- err
		}()
		within(t, server.began, "the call")
		end()
		within(t, server.cancelled, "the cancellation at the server")
		check(t, <-served)
		if err := <-ended; err == nil {
			t.Error("CallTool when the gateway ends = nil, want an error")
		}
		_ = session.Close()
	})
}
