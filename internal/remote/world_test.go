package remote_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// newServer is a server of the SDK's with tools that use what a conversation has.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	tool := func(name string, do mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, do)
	}
	tool("echo", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(string(req.Params.Arguments)), nil
	})
	tool("count", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3,
			})
			if err != nil {
				return nil, err
			}
		}
		return text("three"), nil
	})
	tool("ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		roots, err := req.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers of the legacy era ask for them
		if err != nil {
			return nil, err
		}
		return text(roots.Roots[0].URI), nil
	})
	tool("grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool("grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text(""), nil })
		return text("grown"), nil
	})
	s.AddTool(&mcp.Tool{
		Name:        "mirrored",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"where":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}}}`),
	}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Extra == nil { // the older transport has none
			return text(""), nil
		}
		return text(req.Extra.Header.Get("Mcp-Param-City")), nil
	})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// A place is where a server is reached: a handler that can be changed.
type place struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	// seen has the headers of every request.
	seen chan http.Header
}

func (p *place) serve(h http.Handler) { p.handler.Store(&h) }

func newPlace(t *testing.T, h http.Handler) *place {
	t.Helper()
	p := &place{seen: make(chan http.Header, 1000)}
	p.serve(h)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.seen <- r.Header.Clone()
		(*p.handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// streamable is a server over streamable HTTP in one era.
func streamable(s *mcp.Server, era upstream.Era) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: era == upstream.Modern, PropagateRequestCancellation: true,
	})
}

func oldSSE(s *mcp.Server) http.Handler {
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
}

// dial opens a stream to a server that the test closes.
func dial(t *testing.T, server sandbox.Remote, options door.Options) sandbox.Process {
	t.Helper()
	if server.Transport == "" {
		server.Transport = catalog.StreamableHTTP
	}
	way, err := door.New(server, nil, options)
	if err != nil {
		t.Fatalf("New(%s) = %v", server.URL, err)
	}
	return open(t, way, nil)
}

func open(t *testing.T, way *door.Door, log *slog.Logger) sandbox.Process {
	t.Helper()
	p, err := remote.Open(t.Context(), way, log)
	if err != nil {
		t.Fatalf("Open(%s) = %v", way.Host(), err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return p
}

// converse begins a conversation that the test ends.
func converse(t *testing.T, p sandbox.Process, options upstream.Options) *upstream.Session {
	t.Helper()
	options.Client = upstream.Implementation{Name: "test", Version: "1"}
	s, err := upstream.Connect(t.Context(), p, options)
	if err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool and returns the text of its answer.
func call(t *testing.T, s *upstream.Session, params string, progress func(json.RawMessage)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := s.Call(ctx, "tools/call", json.RawMessage(params), progress)
	if err != nil {
		t.Fatalf("tools/call %s: %v", params, err)
	}
	var got struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &got); err != nil || len(got.Content) == 0 {
		t.Fatalf("tools/call %s = %s, want a text", params, result)
	}
	return got.Content[0].Text
}
