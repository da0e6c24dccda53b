package e2e_test

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/upstream"
)

const demo = "  thing: {image: dockgate/demo, description: The demo server under another name}\n"

// join connects a client of the official SDK to the gateway.
func join(t *testing.T, p *program, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o)
	session, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: readCloser{p}, Writer: p}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, p.stderr)
	}
	return session
}

type readCloser struct{ *program }

func text(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var all []string
	for _, content := range result.Content {
		if said, ok := content.(*mcp.TextContent); ok {
			all = append(all, said.Text)
		}
	}
	return strings.Join(all, "\n")
}

// A client without forms is told to ask the user; a person at another
// terminal approves, and the waiting call goes on.
func TestApproveFromAnotherProcess(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, demo)
	h.allowScripts(t)
	session := join(t, h.serve(t, "--server", "thing"), nil)
	answered := make(chan string, 1)
	go func() { answered <- text(t, session, "thing__add", map[string]any{"a": 40, "b": 2}) }()
	within(t, 10*time.Second, "the question", func() bool {
		out, err := h.command(t, "approve", "--yes", "thing")
		return err == nil && out != "never"
	})
	select {
	case got := <-answered:
		if got != "42" {
			t.Errorf("thing__add = %q, want 42", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the call did not go on after the approval")
	}
}

// However the gateway ends, nothing of it is left.
func TestNothingIsLeft(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	for _, end := range []struct {
		name string
		do   func(p *program) error
		code int
	}{
		{"stdin closed", func(p *program) error { return p.Close() }, 0},
		{"SIGTERM", func(p *program) error { return p.cmd.Process.Signal(syscall.SIGTERM) }, 0},
		{"SIGINT", func(p *program) error { return p.cmd.Process.Signal(syscall.SIGINT) }, 0},
		{"SIGKILL", func(p *program) error { return p.cmd.Process.Kill() }, -1},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, demo)
			p := h.serve(t, "--approve", "all", "--server", "thing")
			session := connect(t, p, upstream.Legacy)
			if _, err := session.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"thing__echo","arguments":{"text":"x"}}`), nil); err != nil {
				t.Fatal(err)
			}
			if len(left(t, api, h)) == 0 {
				t.Fatal("no container runs after a call")
			}
			// One more call is under way when the end comes.
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			under := make(chan struct{})
			go func() {
				defer close(under)
				_, _ = session.Call(ctx, "tools/call", json.RawMessage(`{"name":"thing__sleep","arguments":{"ms":20000}}`), func(json.RawMessage) {})
			}()
			if err := end.do(p); err != nil {
				t.Fatal(err)
			}
			<-under
			within(t, 10*time.Second, "nothing left", func() bool { return len(left(t, api, h)) == 0 })
		})
	}
}

// A second gateway of the same state folder knows the tools without starting
// anything, and a changed right is asked for again.
func TestRememberedAndHeld(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, demo)
	first := join(t, h.serve(t, "--approve", "all", "--server", "thing"), nil)
	if got := text(t, first, "thing__add", map[string]any{"a": 1, "b": 1}); got != "2" {
		t.Fatalf("thing__add = %q, want 2", got)
	}
	_ = first.Close()
	within(t, 10*time.Second, "nothing left", func() bool { return len(left(t, api, h)) == 0 })

	second := join(t, h.serve(t, "--approve", "pinned", "--server", "thing"), nil)
	tools, err := second.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "thing__sandbox") || len(left(t, api, h)) != 0 {
		t.Errorf("tools %v with %v running, want thing__sandbox and none", names, left(t, api, h))
	}
	if got := text(t, second, "thing__add", map[string]any{"a": 1, "b": 2}); got != "3" {
		t.Errorf("thing__add of an approved server = %q, want 3", got)
	}

	wider := newHouse(t, strings.Replace(demo, "}", ", network: full}", 1))
	wider.state = h.state
	third := join(t, wider.serve(t, "--approve", "pinned", "--server", "thing"), nil)
	if got := text(t, third, "thing__add", map[string]any{"a": 1, "b": 2}); !strings.HasPrefix(got, "APPROVAL_DENIED") {
		t.Errorf("thing__add with full network = %q, want APPROVAL_DENIED", got)
	}
}

// What the approval promised is what a server finds inside.
func TestSandbox(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, "  thing: {image: dockgate/demo, limits: {memory: 96MB, cpus: 0.5, pids: 40, tmp: 8MB}}\n")
	session := connect(t, h.serve(t, "--approve", "all", "--server", "thing"), upstream.Legacy)
	raw, err := session.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"thing__sandbox","arguments":{}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Report struct {
			Capabilities string `json:"capabilities"`
			NoNew        bool   `json:"no_new_privileges"`
			ReadOnly     bool   `json:"read_only_root"`
			Seccomp      bool   `json:"seccomp"`
			Limits       struct {
				CPUs   float64 `json:"cpus"`
				Memory int64   `json:"memory"`
				PIDs   int64   `json:"pids"`
			} `json:"limits"`
			Network struct {
				Reached bool `json:"reached"`
			} `json:"network"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	r := result.Report
	if r.Capabilities != "0000000000000000" || !r.NoNew || !r.ReadOnly || !r.Seccomp || r.Network.Reached ||
		r.Limits.CPUs != 0.5 || r.Limits.Memory != 96<<20 || r.Limits.PIDs != 40 {
		t.Errorf("inside the sandbox: %+v", r)
	}
}
