package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/toolbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// tool is a tool that runs a program of the fake with the words of its argument.
func tool(name string) sandbox.Run {
	return sandbox.Run{
		Tool:       name,
		Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"}},"n":{"type":"integer"}}},"x-own":"<kept>"}`),
		Image:      sandbox.Image{Ref: name},
		Command:    []string{"{{arguments.args|into}}", "{{arguments.n}}"},
	}
}

// engine runs what the tests' tools are.
func engine() *sandboxtest.Fake {
	say := func(_ context.Context, c sandboxtest.Container) int {
		_, _ = fmt.Fprint(c.Stdout, strings.Join(c.Spec.Command, " "))
		return 0
	}
	return &sandboxtest.Fake{Servers: map[string]sandboxtest.Server{
		"say": say,
		"fail": func(_ context.Context, c sandboxtest.Container) int {
			_, _ = fmt.Fprint(c.Stdout, "half")
			_, _ = fmt.Fprintln(c.Stderr, "no such file")
			return 2
		},
		"eat": func(context.Context, sandboxtest.Container) int { return sandboxtest.OutOfMemory },
		"flood": func(_ context.Context, c sandboxtest.Container) int {
			if _, err := c.Stdout.Write([]byte(strings.Repeat("é", toolbox.MaxOutput))); err != nil {
				return 9
			}
			return 0
		},
		"binary": func(_ context.Context, c sandboxtest.Container) int {
			_, _ = c.Stdout.Write([]byte{'a', 0xff, 'b'})
			return 0
		},
		"hang": func(ctx context.Context, _ sandboxtest.Container) int {
			<-ctx.Done()
			return 143
		},
	}}
}

// start starts a server of all tools, which the test closes.
func start(t *testing.T, fake *sandboxtest.Fake) sandbox.Process {
	t.Helper()
	spec := sandbox.Spec{Server: "box"}
	for _, name := range []string{"say", "fail", "eat", "flood", "binary", "hang", "missing"} {
		spec.Runs = append(spec.Runs, tool(name))
	}
	p, err := (&toolbox.Runner{Containers: fake, Version: "1.2"}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if left := fake.Running(); len(left) > 0 {
			t.Errorf("after Close %v run, want nothing", left)
		}
	})
	return p
}

// converse begins a conversation that the test ends.
func converse(t *testing.T, p sandbox.Process) *upstream.Session {
	t.Helper()
	s, err := upstream.Connect(t.Context(), p, upstream.Options{Client: upstream.Implementation{Name: "test", Version: "1"}})
	if err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

type answer struct {
	Content []struct{ Text string }
	IsError bool
}

// call calls a tool and returns its texts, each as a line, and whether it failed.
func call(t *testing.T, s *upstream.Session, params string) (string, bool) {
	t.Helper()
	result, err := s.Call(t.Context(), "tools/call", json.RawMessage(params), nil)
	if err != nil {
		t.Fatalf("tools/call %s: %v", params, err)
	}
	var got answer
	if err := json.Unmarshal(result, &got); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range got.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n"), got.IsError
}

func TestConversation(t *testing.T) {
	fake := engine()
	s := converse(t, start(t, fake))
	if s.Era() != upstream.Legacy {
		t.Errorf("Era() = %s, want %s", s.Era(), upstream.Legacy)
	}
	listed, err := s.Call(t.Context(), "tools/list", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(listed, &list); err != nil || len(list.Tools) != 7 || string(list.Tools[0]) != string(tool("say").Definition) {
		t.Errorf("tools/list = %s, want the definitions as they are", listed)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping() = %v", err)
	}
	if fake.Started() > 0 {
		t.Errorf("%d containers started before a call, want none", fake.Started())
	}
	tests := []struct {
		params string
		want   string
		failed bool
	}{
		{`{"name":"say","arguments":{"args":["a b","{{config.x}}","$(id)"],"n":12345678901234567890}}`, "a b {{config.x}} $(id) 12345678901234567890", false},
		{`{"name":"say","arguments":{}}`, "the arguments do not fit: is empty with these arguments", true},
		{`{"name":"say"}`, "the arguments do not fit: is empty with these arguments", true},
		{`{"name":"say","arguments":{"args":[""]}}`, "", false},
		{`{"name":"say","arguments":{"args":["a\u0000b"]}}`, "the arguments do not fit: would hold a NUL character", true},
		{`{"name":"say","arguments":[1]}`, `the arguments do not fit: validating root: type: [1] has type "array", want "object"`, true},
		{`{"name":"say","arguments":{"n":"x"}}`, `the arguments do not fit: validating root: validating /properties/n: type: x has type "string", want "integer"`, true},
		{`{"name":"fail","arguments":{"n":1}}`, "half\nthe tool's container exited with code 2: no such file", true},
		{`{"name":"eat","arguments":{"n":1}}`, "the tool's container ran out of memory", true},
		{`{"name":"binary","arguments":{"n":1}}`, "a\ufffdb", false},
		{`{"name":"missing","arguments":{"n":1}}`, "the tool's container did not start: ", true},
	}
	for _, tt := range tests {
		got, failed := call(t, s, tt.params)
		if _, engines, open := strings.Cut(got, tt.want); open && strings.HasSuffix(tt.want, ": ") {
			got = strings.TrimSuffix(got, engines) // in the engine's own words
		}
		if failed != tt.failed || got != tt.want {
			t.Errorf("tools/call %s = %q, failed %v, want %q, failed %v", tt.params, got, failed, tt.want, tt.failed)
		}
	}
	got, failed := call(t, s, `{"name":"flood","arguments":{"n":1}}`)
	want := strings.Repeat("é", toolbox.MaxOutput/2) + "\n[cut: the output is longer than 1MiB]"
	if failed || got != want {
		t.Errorf("a flood = %d bytes, failed %v, want %d bytes", len(got), failed, len(want))
	}
	for _, params := range []string{`{"name":"nobody"}`, `[]`} {
		var refused *jsonrpc.Error
		if _, err := s.Call(t.Context(), "tools/call", json.RawMessage(params), nil); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("tools/call %s = %v, want invalid params", params, err)
		}
	}
	var unknown *jsonrpc.Error
	if _, err := s.Call(t.Context(), "prompts/list", nil, nil); !errors.As(err, &unknown) || unknown.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("prompts/list = %v, want method not found", err)
	}
	if left := fake.Running(); len(left) > 0 {
		t.Errorf("after the calls %v run, want nothing", left)
	}
}

// A call that is given up ends its container, and no other.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := engine()
		s := converse(t, start(t, fake))
		ctx, cancel := context.WithCancel(t.Context())
		hung := make(chan error)
		go func() {
			_, err := s.Call(ctx, "tools/call", json.RawMessage(`{"name":"hang","arguments":{"n":1}}`), nil)
			hung <- err
		}()
		synctest.Wait()
		if diff := cmp.Diff([]string{"box"}, fake.Running()); diff != "" {
			t.Fatalf("running (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-hung; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that is given up = %v, want %v", err, context.Canceled)
		}
		<-time.After(2 * sandbox.DefaultStop)
		synctest.Wait()
		if left := fake.Running(); len(left) > 0 {
			t.Errorf("after the call was given up %v run, want nothing", left)
		}
		if got, failed := call(t, s, `{"name":"say","arguments":{"args":["on"]}}`); got != "on" || failed {
			t.Errorf("the next call = %q, failed %v, want on", got, failed)
		}
	})
}

// No more containers run at a time than the memory was reserved for.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := engine()
		p := start(t, fake)
		s := converse(t, p)
		var calls sync.WaitGroup
		for range 2 * sandbox.RunsAtOnce {
			calls.Go(func() {
				if _, err := s.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"hang","arguments":{"n":1}}`), nil); err == nil {
					t.Error("a call of a server that was stopped = nil, want an error")
				}
			})
		}
		synctest.Wait()
		if got := len(fake.Running()); got != sandbox.RunsAtOnce {
			t.Errorf("%d containers run, want %d", got, sandbox.RunsAtOnce)
		}
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		calls.Wait()
		if fake.Started() != sandbox.RunsAtOnce || len(fake.Running()) > 0 {
			t.Errorf("%d containers started and %v run, want %d and nothing", fake.Started(), fake.Running(), sandbox.RunsAtOnce)
		}
	})
}

// The contract of a process holds for a server without a container.
func TestProcess(t *testing.T) {
	fake := engine()
	ctx, cancel := context.WithCancel(t.Context())
	spec := sandbox.Spec{Server: "box", Runs: []sandbox.Run{tool("say")}}
	runner := &toolbox.Runner{Containers: fake}
	p, err := runner.Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // does not matter any more
	if _, err := p.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, err := p.Read(line)
	if want := `{"jsonrpc":"2.0","id":1,"result":{}}`; err != nil || !strings.HasPrefix(string(line[:n]), want) {
		t.Errorf("Read() = %q, %v, want %s", line[:n], err, want)
	}
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := p.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	closing.Wait()
	<-p.Done()
	if _, err := p.Read(line); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Read() after Close = %v, want %v", err, io.ErrClosedPipe)
	}
	if _, err := p.Write(line); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write() after Close = %v, want %v", err, io.ErrClosedPipe)
	}
	if _, err := runner.Start(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("Start() with a context that has ended = %v, want %v", err, context.Canceled)
	}
	other, err := runner.Start(t.Context(), sandbox.Spec{Server: "other", Image: sandbox.Image{Ref: "hang"}})
	if err != nil || !slices.Equal(fake.Running(), []string{"other"}) {
		t.Errorf("Start() of a container = %v with %v running, want the engine's own", err, fake.Running())
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever a client writes, the server answers in JSON-RPC and starts nothing
// that it was not asked for.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"args":["x"]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":7}}`))
	f.Add([]byte("\x00{]\n\n[]"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := start(t, engine())
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() {
			if _, err := p.Write(append(sent, "\n"+`{"jsonrpc":"2.0","id":"the last","method":"ping"}`+"\n"...)); err != nil {
				t.Errorf("Write() = %v", err)
			}
		})
		answers := jsonrpc.NewReader(p, jsonrpc.ReaderOptions{Dropped: func(line []byte, reason string) {
			t.Errorf("answered %q: %s", line, reason)
		}})
		for {
			m, err := answers.Read()
			if err != nil {
				t.Fatalf("the conversation ended: %v", err)
			}
			if m.Kind() != jsonrpc.Response {
				t.Errorf("the server asks %s, want answers only", m.Method)
			}
			if string(m.ID) == `"the last"` {
				return
			}
		}
	})
}
