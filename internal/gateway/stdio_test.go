package gateway_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// TestLines writes lines as no client of the SDK would, and reads the answers.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	tests := []struct {
		name string
		in   []string
		want []string // sorted: ids, with the code of an error
	}{
		{"ids of both kinds", []string{`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a\"b","method":"ping"}`}, []string{`"a\"b"`, `7`}},
		{"id that is large", []string{`{"jsonrpc":"2.0","id":4503599627370497,"method":"ping"}`}, []string{`4503599627370497`}},
		{"garbage between", []string{`hello`, ``, `{"jsonrpc":"2.0","id":1,`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`}, []string{`2`, `null -32700`, `null -32700`}},
		{"batch", []string{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`}, []string{`1`, `2`}},
		{"answer to nothing", []string{`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":3,"method":"ping"}`}, []string{`3`}},
		{"long line", []string{`{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":{"long":"` + long + `"}}}`}, []string{`4`}},
		{"unknown method", []string{`{"jsonrpc":"2.0","id":5,"method":"no/such"}`}, []string{`5 -32601`}},
		{"params missing", []string{`{"jsonrpc":"2.0","id":6,"method":"tools/call"}`}, []string{`6 -32602`}},
		{"page that is none", []string{`{"jsonrpc":"2.0","id":7,"method":"prompts/list","params":{"cursor":"x"}}`}, []string{`7 -32602`}},
		{"second initialize", []string{hello}, []string{`"hello" -32600`}},
		{"listen in a session", []string{`{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{"notifications":{}}}`}, []string{`8 -32601`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := build(t, options{}, nil)
			in, client := io.Pipe()
			answers, out := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- h.Serve(context.WithoutCancel(t.Context()), in, out, principal.Local) }()
			reader := jsonrpc.NewReader(answers, jsonrpc.ReaderOptions{})
			say(t, client, hello)
			if m, err := reader.Read(); err != nil || string(m.ID) != `"hello"` || m.Result == nil {
				t.Fatalf("initialize = %+v, %v, want a result", m, err)
			}
			said := make(chan struct{})
			go func() {
				defer close(said)
				for _, line := range tt.in {
					say(t, client, line)
				}
			}()
			var got []string
			for range tt.want {
				m, err := reader.Read()
				check(t, err)
				entry := string(m.ID)
				if m.Error != nil {
					entry += " " + strconv.FormatInt(m.Error.Code, 10)
				}
				got = append(got, entry)
			}
			<-said
			slices.Sort(got) // requests are answered at the same time
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			check(t, client.Close())
			if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("Serve = %v, want nil when the client leaves", err)
			}
		})
	}
}

// What comes before a session has begun is refused, and the session can begin.
func TestLinesBeforeInitialize(t *testing.T) {
	h := build(t, options{}, nil)
	in, client := io.Pipe()
	answers, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve(context.WithoutCancel(t.Context()), in, out, principal.Local) }()
	reader := jsonrpc.NewReader(answers, jsonrpc.ReaderOptions{})
	tests := []struct {
		line string
		code int64
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, -32600},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`, -32600},
		{`{"jsonrpc":"2.0","id":3,"method":"initialize"}`, -32602},
		{`{"jsonrpc":"2.0","id":4,"method":"initialize","params":[]}`, -32602},
		{`{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"capabilities":1}}`, -32602},
		{`{"jsonrpc":"2.0","id":6,"method":"ping"}`, 0},
		{hello, 0},
	}
	for _, tt := range tests {
		said := make(chan struct{})
		go func() {
			defer close(said)
			say(t, client, tt.line)
		}()
		m, err := reader.Read()
		check(t, err)
		<-said
		if got := m.Error; (got == nil) != (tt.code == 0) || got != nil && got.Code != tt.code {
			t.Errorf("answer to %s = %+v, want code %d", tt.line, got, tt.code)
		}
	}
	check(t, client.Close())
	check(t, <-served)
}

func say(t *testing.T, client io.Writer, line string) {
	if _, err := io.WriteString(client, line+"\n"); err != nil {
		t.Errorf("write %.60s: %v", line, err)
	}
}

// stubborn is like standard input: closing it does not end a read of it.
type stubborn struct{ io.Reader }

func (stubborn) Close() error { return nil }

// Standard input can be one whose close ends a read of it, and then the read
// fails: no error, since nobody but the gateway closes it.
func TestServeEndsWellWhenItClosesItsInput(t *testing.T) {
	h := build(t, options{}, nil)
	in, client, err := os.Pipe()
	check(t, err)
	answers, out, err := os.Pipe()
	check(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, in, out, principal.Local) }()
	say(t, client, hello)
	if m, err := jsonrpc.NewReader(answers, jsonrpc.ReaderOptions{}).Read(); err != nil || m.Result == nil {
		t.Fatalf("initialize = %+v, %v, want a result", m, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve = %v, want nil when its context ends", err)
	}
	check(t, errors.Join(client.Close(), answers.Close()))
}

// A signal ends the gateway whether or not its client closes the pipe.
func TestServeEndsWithItsContext(t *testing.T) {
	h := build(t, options{}, nil)
	in, client := io.Pipe()
	answers, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, stubborn{in}, out, principal.Local) }()
	say(t, client, hello)
	if m, err := jsonrpc.NewReader(answers, jsonrpc.ReaderOptions{}).Read(); err != nil || m.Result == nil {
		t.Fatalf("initialize = %+v, %v, want a result", m, err)
	}
	cancel()
	select {
	case err := <-served:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Serve = %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Serve goes on after its context has ended, while it reads")
	}
	check(t, client.Close())
}
