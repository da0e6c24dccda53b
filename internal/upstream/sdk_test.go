package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// serveSDK runs a server of the official SDK and returns the client's end.
func serveSDK(t testing.TB, server *sdk.Server) io.ReadWriteCloser {
	t.Helper()
	client, far := pipe()
	session, err := server.Connect(context.Background(), &sdk.IOTransport{Reader: far, Writer: far}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = session.Wait()
	})
	return client
}

// newServer returns a server with tools that show what reaches them.
func newServer(versions ...string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"},
		&sdk.ServerOptions{SupportedProtocolVersions: versions, PageSize: 2, Instructions: "use me"})
	object := json.RawMessage(`{"type":"object"}`)
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: object}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(string(r.Params.Arguments)), nil
	})
	server.AddTool(&sdk.Tool{Name: "fail", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &sdkrpc.Error{Code: -32042, Message: "no", Data: json.RawMessage(`{"why":9007199254740993}`)}
	})
	server.AddTool(&sdk.Tool{Name: "count", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 5 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i),
			}); err != nil {
				return nil, err
			}
		}
		return text("counted"), nil
	})
	server.AddTool(&sdk.Tool{Name: "wait", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken()}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	server.AddPrompt(&sdk.Prompt{Name: "p"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	server.AddResource(&sdk.Resource{URI: "a:b", Name: "r"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{}, nil
	})
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "c:{d}", Name: "t"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{}, nil
	})
	return server
}

func TestOfficialSDKServers(t *testing.T) {
	tests := []struct {
		name     string
		versions []string
		known    upstream.Era
		want     upstream.Era
		version  string
	}{
		{"both eras", nil, "", upstream.Modern, "2026-07-28"},
		{"both eras, as legacy", nil, upstream.Legacy, upstream.Legacy, "2025-11-25"},
		{"modern only", []string{"2026-07-28"}, "", upstream.Modern, "2026-07-28"},
		{"modern only, known", []string{"2026-07-28"}, upstream.Modern, upstream.Modern, "2026-07-28"},
		{"legacy only", []string{"2025-11-25", "2025-06-18"}, "", upstream.Legacy, "2025-11-25"},
		{"old", []string{"2024-11-05"}, "", upstream.Legacy, "2024-11-05"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := upstream.Connect(t.Context(), serveSDK(t, newServer(test.versions...)), options(test.known))
			if err != nil {
				t.Fatalf("Connect() = %v", err)
			}
			defer end(t, s)
			info := s.Info()
			if info.Era != test.want || info.ProtocolVersion != test.version || info.Instructions != "use me" {
				t.Errorf("Info() = %+v, want era %s, version %s", info, test.want, test.version)
			}
			if !strings.Contains(string(info.Server), `"name":"sdk"`) {
				t.Errorf("Server = %s, want its name", info.Server)
			}
			exercise(t, s)
		})
	}
}

// exercise goes through what a client does with a server of newServer.
func exercise(t *testing.T, s *upstream.Session) {
	t.Helper()
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping() = %v", err)
	}
	offer, err := s.Offer(t.Context())
	if err != nil {
		t.Fatalf("Offer() = %v", err)
	}
	var names []string
	for _, d := range offer.Tools {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"count", "echo", "fail", "wait"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if len(offer.Prompts) != 1 || len(offer.Resources) != 1 || len(offer.Templates) != 1 {
		t.Errorf("Offer() = %d prompts, %d resources, %d templates, want one of each",
			len(offer.Prompts), len(offer.Resources), len(offer.Templates))
	}
	const arguments = `{"b":9007199254740993,"a":1e400,"b":"<>&"}`
	got, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":`+arguments+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"1","progressToken":{}}}`), nil)
	if err != nil {
		t.Fatalf("Call(echo) = %v", err)
	}
	if text := firstText(t, got); text != arguments {
		t.Errorf("echo = %s, want %s", text, arguments)
	}
	_, err = s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"fail"}`), nil)
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != -32042 || string(refusal.Data) != `{"why":9007199254740993}` {
		t.Errorf("Call(fail) = %v, want code -32042 with its data", err)
	}
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			var counted []float64
			_, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"count"}`), func(params json.RawMessage) {
				var p struct{ Progress float64 }
				if err := json.Unmarshal(params, &p); err != nil {
					t.Error(err)
				}
				counted = append(counted, p.Progress)
			})
			if diff := cmp.Diff([]float64{0, 1, 2, 3, 4}, counted); err != nil || diff != "" {
				t.Errorf("Call(count) = %v, progress (-want +got):\n%s", err, diff)
			}
		})
	}
	group.Wait()
	// The server waits until it is cancelled; its session's end shows that the
	// cancellation reached it.
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Call(ctx, "tools/call", json.RawMessage(`{"name":"wait"}`), func(json.RawMessage) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Call(wait) = %v, want %v", err, context.Canceled)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping() = %v after a cancellation", err)
	}
}

func firstText(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var r struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("result = %s, %v, want text content", result, err)
	}
	return r.Content[0].Text
}

func TestCancellationReachesTheTool(t *testing.T) {
	for _, era := range []upstream.Era{upstream.Legacy, upstream.Modern} {
		server := newServer()
		ended := make(chan error, 1)
		entered := make(chan struct{})
		server.AddTool(&sdk.Tool{Name: "hang", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			close(entered)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
		s, err := upstream.Connect(t.Context(), serveSDK(t, server), options(era))
		if err != nil {
			t.Fatalf("%s: Connect() = %v", era, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		if _, err := s.Call(ctx, "tools/call", json.RawMessage(`{"name":"hang"}`), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Call() = %v, want %v", era, err, context.Canceled)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: tool's context ended with %v", era, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close() = %v", era, err)
		}
	}
}

func TestSamplingThroughServe(t *testing.T) {
	server := newServer("2025-11-25")
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "sure?"})
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer.Action}}}, nil
	})
	o := options("")
	o.Serve = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method != "elicitation/create" || !strings.Contains(string(params), `"message":"sure?"`) {
			t.Errorf("server asked %s %s", method, params)
		}
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	s, err := upstream.Connect(t.Context(), serveSDK(t, server), o)
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, s)
	got, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"ask"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := firstText(t, got); text != "decline" {
		t.Errorf("ask = %s, want decline", text)
	}
}

func TestListenIsACall(t *testing.T) {
	server := newServer("2026-07-28")
	heard := make(chan string, 10)
	o := options("")
	o.Notify = func(method string, params json.RawMessage) { heard <- method + " " + string(params) }
	s, err := upstream.Connect(t.Context(), serveSDK(t, server), o)
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	wait := start(func() {
		_, err := s.Call(ctx, "subscriptions/listen", json.RawMessage(`{"notifications":{"toolsListChanged":true}}`), nil)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Call(subscriptions/listen) = %v, want %v", err, context.Canceled)
		}
	})
	if got := <-heard; !strings.HasPrefix(got, "notifications/subscriptions/acknowledged ") {
		t.Errorf("first notification = %s, want the acknowledgement", got)
	}
	server.RemoveTools("fail")
	got := <-heard
	if !strings.HasPrefix(got, "notifications/tools/list_changed ") || !strings.Contains(got, "io.modelcontextprotocol/subscriptionId") {
		t.Errorf("second notification = %s, want the change with its subscription", got)
	}
	cancel()
	wait()
}

// echoPeer answers each request with a small result, as cheaply as can be.
func echoPeer(server io.ReadWriter) {
	lines := bufio.NewReader(server)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(line)
		if err != nil || m.ID == nil {
			continue
		}
		result := `{"content":[{"type":"text","text":"hello"}]}`
		if m.Method == "initialize" {
			result = `{"protocolVersion":"2025-11-25","capabilities":{}}`
		}
		if _, err := fmt.Fprintf(server, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", m.ID, result); err != nil {
			return
		}
	}
}

const benchParams = `{"name":"echo","arguments":{"text":"hello","path":"/srv/data/report.txt"},"_meta":{"traceparent":"00-ab"}}`

func BenchmarkRawPipe(b *testing.B) {
	client, server := pipe()
	wait := start(func() { echoPeer(server) })
	lines := bufio.NewReader(client)
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + benchParams + "}\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	_ = client.Close()
	wait()
}

func BenchmarkCall(b *testing.B) {
	client, server := pipe()
	wait := start(func() { echoPeer(server) })
	s, err := upstream.Connect(b.Context(), client, options(upstream.Legacy))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Call(b.Context(), "tools/call", json.RawMessage(benchParams), nil); err != nil {
			b.Fatal(err)
		}
	}
	_ = s.Close()
	wait()
}

func BenchmarkCallParallel(b *testing.B) {
	client, server := pipe()
	wait := start(func() { echoPeer(server) })
	s, err := upstream.Connect(b.Context(), client, options(upstream.Legacy))
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(next *testing.PB) {
		for next.Next() {
			if _, err := s.Call(b.Context(), "tools/call", json.RawMessage(benchParams), nil); err != nil {
				b.Error(err)
			}
		}
	})
	_ = s.Close()
	wait()
}
