// Package toolbox runs servers whose every tool is a container: it speaks MCP
// for them, and makes one container for each call, whose stdout is the result.
//
// What a container may do is decided when the server is planned, and approved;
// a call fills in words of its command line and nothing else. Arguments that do
// not fit the tool's schema start nothing. However a call ends, by its
// container, by its cancellation or with the server, its container is removed
// before it is answered.
package toolbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/pipe"
	"github.com/dockgate/dockgate/internal/schema"
)

// Containers starts containers; an engine does.
type Containers interface {
	Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error)
}

// A Runner starts whatever a Spec describes: a server whose tools have
// containers of their own as a conversation in this process, and every other as
// Containers does. It keeps the contract of [sandbox.Process] for both.
type Runner struct {
	Containers Containers
	// Version is the gateway's, which speaks for the tools.
	Version string
}

// pending is how much of one direction of the conversation is not read yet
// before its writer has to wait.
const pending = 64 << 10

// Start starts what the Spec describes. A server of tools starts at once, and
// no container with it.
func (r *Runner) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if len(spec.Runs) == 0 {
		return r.Containers.Start(ctx, spec)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	b := &box{
		containers: r.Containers, spec: spec, version: cmp.Or(r.Version, "unknown"),
		in: pipe.New(pending), out: pipe.New(pending), turns: make(chan struct{}, sandbox.RunsAtOnce),
		calls: make(map[string]context.CancelFunc), done: make(chan struct{}),
	}
	b.answers = jsonrpc.NewWriter(b.out)
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel = cancel
	b.running.Go(func() { b.serve(serving) })
	return b, nil
}

// A box is the conversation of a server of tools. One goroutine reads it, and
// each call has one of its own; Close waits for all.
type box struct {
	containers Containers
	spec       sandbox.Spec
	version    string
	checker    schema.Checker

	in, out *pipe.Pipe
	answers *jsonrpc.Writer
	turns   chan struct{} // holds one for each container that runs
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	done    chan struct{} // closed by Close

	mu    sync.Mutex
	calls map[string]context.CancelFunc // under way, by the ids of their requests
	err   error                         // of containers that could not be removed
}

// ID returns "": no container is the server's own.
func (b *box) ID() string { return "" }

// Done is closed when Close has stopped every call.
func (b *box) Done() <-chan struct{} { return b.done }

// Exit is that of a server which ended because it was told to.
func (b *box) Exit() sandbox.Exit { return sandbox.Exit{} }

// Stderr returns "": what a container said last is in the result of its call.
func (b *box) Stderr() string { return "" }

// Read reads the server's messages as lines.
func (b *box) Read(p []byte) (int, error) { return b.out.Read(p) }

// Write takes our messages as lines.
func (b *box) Write(p []byte) (int, error) { return b.in.Write(p) }

// Close cancels the calls that are under way, and waits until their containers
// are gone.
func (b *box) Close() error {
	b.closing.Do(func() {
		b.cancel()
		b.in.CloseRead()
		b.out.CloseRead()
		b.running.Wait()
		close(b.done)
	})
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// serve answers until the conversation ends.
func (b *box) serve(ctx context.Context) {
	reader := jsonrpc.NewReader(b.in, jsonrpc.ReaderOptions{})
	for {
		m, err := reader.Read()
		var tooLong *jsonrpc.LineError
		switch {
		case errors.As(err, &tooLong):
			continue
		case err != nil:
			return
		}
		switch m.Kind() {
		case jsonrpc.Request:
			b.request(ctx, m)
		case jsonrpc.Notification:
			b.notified(m)
		case jsonrpc.Response: // nothing is ever asked
		}
	}
}

// notified ends the call that a client gives up.
func (b *box) notified(m jsonrpc.Message) {
	if m.Method != "notifications/cancelled" {
		return
	}
	b.mu.Lock()
	cancel := b.calls[string(jsonrpc.Lookup(m.Params, "requestId"))]
	b.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (b *box) request(ctx context.Context, m jsonrpc.Message) {
	switch m.Method {
	case "initialize":
		b.answer(m.ID, b.initialize(m.Params), nil)
	case "ping":
		b.answer(m.ID, struct{}{}, nil)
	case "tools/list":
		b.answer(m.ID, b.list(), nil)
	case "tools/call":
		b.call(ctx, m)
	default:
		b.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + m.Method})
	}
}

// answer writes a response. An error is that nobody reads any more.
func (b *box) answer(id json.RawMessage, result any, failure *jsonrpc.Error) {
	m := jsonrpc.Message{ID: id, Error: failure}
	if failure == nil {
		var encoded bytes.Buffer
		encoder := json.NewEncoder(&encoded)
		encoder.SetEscapeHTML(false) // the catalog's definitions are passed on as they are
		if err := encoder.Encode(result); err != nil {
			m.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		m.Result = encoded.Bytes()
	}
	_ = b.answers.Write(m)
}

// versions are the versions of the protocol that initialize can agree on, the
// newest first. What is said here is the same in all of them.
func versions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} }

func (b *box) initialize(params json.RawMessage) any {
	var asked struct {
		Version string `json:"protocolVersion"`
	}
	// What cannot be read asks for no version.
	if json.Unmarshal(params, &asked) != nil || !slices.Contains(versions(), asked.Version) {
		asked.Version = versions()[0]
	}
	return map[string]any{
		"protocolVersion": asked.Version,
		"capabilities":    map[string]any{"tools": struct{}{}},
		"serverInfo":      map[string]any{"name": b.spec.Server, "version": b.version},
	}
}

func (b *box) list() any {
	definitions := make([]json.RawMessage, len(b.spec.Runs))
	for i, r := range b.spec.Runs {
		definitions[i] = r.Definition
	}
	return map[string]any{"tools": definitions}
}

// call begins a call; its answer follows.
func (b *box) call(ctx context.Context, m jsonrpc.Message) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		b.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "tools/call: " + err.Error()})
		return
	}
	at := slices.IndexFunc(b.spec.Runs, func(r sandbox.Run) bool { return r.Tool == params.Name })
	if at < 0 {
		b.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool: " + params.Name})
		return
	}
	id := string(m.ID)
	calling, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	_, twice := b.calls[id]
	if !twice {
		b.calls[id] = cancel
	}
	b.mu.Unlock()
	if twice {
		cancel()
		b.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a request with this id is under way"})
		return
	}
	b.running.Go(func() {
		defer cancel()
		var result result
		select {
		case b.turns <- struct{}{}: // fewer containers run
			// When all end, ctx does first: a turn that comes before the end of
			// calling is none.
			if ctx.Err() == nil && calling.Err() == nil {
				result = b.make(calling, b.spec.Runs[at], params.Arguments)
			}
			<-b.turns
		case <-calling.Done():
		}
		b.mu.Lock()
		delete(b.calls, id)
		b.mu.Unlock()
		if ctx.Err() != nil || calling.Err() != nil {
			b.answer(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call was cancelled"})
			return
		}
		b.answer(m.ID, result, nil)
	})
}
