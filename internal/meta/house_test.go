package meta_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A lister is an MCP server with the tools of a list, that answers each call
// with its arguments.
type lister struct {
	mu    sync.Mutex
	tools []string
	calls int
}

func (l *lister) serve(_ context.Context, c sandboxtest.Container) int {
	in, out := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
	for {
		m, err := in.Read()
		if err != nil {
			return 0
		}
		answer := jsonrpc.Message{ID: m.ID}
		switch m.Method {
		case "initialize":
			answer.Result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}`)
		case "tools/list":
			l.mu.Lock()
			answer.Result = json.RawMessage(`{"tools":[` + strings.Join(l.tools, ",") + `]}`)
			l.mu.Unlock()
		case "tools/call":
			l.mu.Lock()
			l.calls++
			l.mu.Unlock()
			answer.Result = json.RawMessage(`{"content":[], "vendor":1e400, "arguments":` + string(jsonrpc.Lookup(m.Params, "arguments")) + `}`)
			if name := string(jsonrpc.Lookup(m.Params, "name")); name == `"fails"` {
				answer.Result = json.RawMessage(`{"isError":true,  "content":[{"type":"text","text":"rate limit"}]}`)
			}
		case "ping":
			answer.Result = json.RawMessage(`{}`)
		default:
			if m.ID == nil {
				continue
			}
			answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown"}
		}
		if err := out.Write(answer); err != nil {
			return 1
		}
	}
}

func (l *lister) called() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// A visitor is a client of a house.
type visitor struct {
	t *testing.T
	*gatewaytest.House
	session *mcp.ClientSession
}

// visit builds a house with the servers one and two, and joins it.
func visit(t *testing.T, o gatewaytest.Options, one, two *lister) *visitor {
	t.Helper()
	if o.Mode == "" {
		o.Mode = approval.ModeAll
	}
	servers := map[string]sandboxtest.Server{"test/one": one.serve}
	if two != nil {
		servers["test/two"] = two.serve
	}
	v := &visitor{t: t, House: gatewaytest.Build(t, o, servers)}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { served <- v.Serve(ctx, toServer, fromServer, principal.Local) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	var err error
	v.session, err = client.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	check(t, err)
	t.Cleanup(func() {
		_ = v.session.Close()
		_ = fromClient.Close()
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Serve = %v", err)
		}
	})
	return v
}

// call calls one of our own tools.
func (v *visitor) call(name string, arguments map[string]any) *mcp.CallToolResult {
	v.t.Helper()
	result, err := v.session.CallTool(v.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	check(v.t, err)
	return result
}

// add makes servers ready.
func (v *visitor) add(servers ...string) {
	v.t.Helper()
	for _, server := range servers {
		if result := v.call("mcp_add", map[string]any{"name": server}); result.IsError {
			v.t.Fatalf("mcp_add(%s) = %s", server, text(result))
		}
	}
}

// fetch calls one of our own tools that succeeds, and decodes its structure.
func (v *visitor) fetch(name string, arguments map[string]any, into any) string {
	v.t.Helper()
	result := v.call(name, arguments)
	if result.IsError {
		v.t.Errorf("%s(%v) = %s, want a result", name, arguments, text(result))
	}
	encoded, err := json.Marshal(result.StructuredContent)
	check(v.t, err)
	check(v.t, json.Unmarshal(encoded, into))
	return text(result)
}

// A failure is the structure of our own failures.
type failure struct {
	Success *bool
	Error   struct {
		Code, Message, Server, Tool string
		Details                     map[string]any
	}
}

// fails calls one of our own tools that fails, and returns why.
func (v *visitor) fails(name string, arguments map[string]any) failure {
	v.t.Helper()
	result := v.call(name, arguments)
	var f failure
	encoded, err := json.Marshal(result.StructuredContent)
	check(v.t, err)
	check(v.t, json.Unmarshal(encoded, &f))
	if !result.IsError || f.Success == nil || *f.Success || !strings.HasPrefix(text(result), f.Error.Code+": ") {
		v.t.Errorf("%s(%v) = %s %s, want a failure", name, arguments, text(result), encoded)
	}
	return f
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

func ruled(t *testing.T, list ...rules.Rule) rules.Rules {
	t.Helper()
	set, err := rules.Compile(list, rules.Default{})
	check(t, err)
	return set
}
