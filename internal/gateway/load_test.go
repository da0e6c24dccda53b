package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/upstream"
)

// Sixteen clients of one gateway call two servers that they share, and one
// that each has for itself. Every answer is the caller's own, and when the
// clients have left no goroutine of theirs is there any more.
func TestSixteenClients(t *testing.T) {
	const clients, calls = 16, 200
	server := sdkServer(echo)
	h := build(t, options{mode: approval.ModeAll, active: []string{"one", "two", "alone"}},
		map[string]sandboxtest.Server{"test/one": server, "test/two": server})
	wave := func(calls int) {
		t.Helper()
		var group errgroup.Group
		for client := range clients {
			group.Go(func() error { return h.visit(t.Context(), client, calls) })
		}
		check(t, group.Wait())
	}
	wave(3) // the shared servers run from here on
	before := runtime.NumGoroutine()
	wave(calls)
	// What has ended may still be on its way out.
	deadline := time.After(30 * time.Second)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-look.C:
		case <-deadline:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines after %d calls, %d before\n%s", runtime.NumGoroutine(), clients*calls, before, stacks[:runtime.Stack(stacks, true)])
		}
	}
	if got, want := h.fake.Running(), []string{"one", "two"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("when all clients have left, %v run, want %v", got, want)
	}
}

// visit is what one client does: it comes, makes its calls, and leaves.
func (h *house) visit(ctx context.Context, client, calls int) error {
	in, fromClient := io.Pipe()
	toClient, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, in, out, principal.Local) }()
	session, err := upstream.Connect(ctx, duplex{toClient, fromClient}, upstream.Options{
		Client: upstream.Implementation{Name: "client", Version: "1"}, Era: upstream.Legacy,
	})
	if err != nil {
		return err
	}
	for n := range calls {
		server := []string{"one", "two", "alone"}[(client+n)%3]
		nonce := fmt.Sprintf(`{"nonce":"client %d, call %d of %s"}`, client, n, server)
		raw, err := session.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":"%s__echo","arguments":%s}`, server, nonce), nil)
		if err != nil {
			return err
		}
		var result struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(raw, &result); err != nil {
			return err
		}
		if len(result.Content) != 1 || result.Content[0].Text != nonce {
			return fmt.Errorf("%s is answered with %s", nonce, raw)
		}
	}
	if err := session.Close(); err != nil {
		return err
	}
	return <-served
}

// A duplex is a client's end of two pipes.
type duplex struct {
	*io.PipeReader
	out *io.PipeWriter
}

// Write writes to the gateway.
func (d duplex) Write(b []byte) (int, error) { return d.out.Write(b) }

// Close closes both.
func (d duplex) Close() error {
	_ = d.out.Close() // a pipe of io's never fails to close
	return d.PipeReader.Close()
}
