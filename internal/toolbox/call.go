package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// MaxOutput is how much of a container's stdout becomes the result, in bytes.
const MaxOutput = 1 << 20

// A result is that of tools/call.
type result struct {
	Content []content `json:"content"`
	IsError bool      `json:"isError,omitempty"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) content { return content{Type: "text", Text: strings.ToValidUTF8(s, "\ufffd")} }

func failed(reason string) result { return result{Content: []content{text(reason)}, IsError: true} }

// make runs the container of a call from its start to its removal.
func (b *box) make(ctx context.Context, r sandbox.Run, arguments json.RawMessage) result {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if err := b.checker.Check(jsonrpc.Lookup(r.Definition, "inputSchema"), arguments); err != nil {
		return failed("the arguments do not fit: " + err.Error())
	}
	// Numbers stay as they were written: they become words of the command line.
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return failed("the arguments are no object")
	}
	spec, err := b.spec.Call(r, values)
	if err != nil {
		var refused *sandbox.CompileError
		if errors.As(err, &refused) {
			return failed("the arguments do not fit: " + refused.Problems[0].Text)
		}
		return failed(err.Error())
	}
	p, err := b.containers.Start(ctx, spec)
	if err != nil {
		return failed("the tool's container did not start: " + err.Error())
	}
	var out output
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, p) // its error is the container's end, which is known better
	}()
	select {
	case <-p.Done():
		<-read
	case <-ctx.Done():
	}
	closed := p.Close()
	<-read
	if closed != nil {
		b.mu.Lock()
		b.err = errors.Join(b.err, closed)
		b.mu.Unlock()
	}
	return ended(&out, p)
}

// ended is the result of a container that has exited.
func ended(out *output, p sandbox.Process) result {
	var said result
	exit := p.Exit()
	failing := exit.Code != 0 || exit.OutOfMemory || exit.Lost
	if !failing || out.kept.Len() > 0 {
		said.Content = append(said.Content, text(out.kept.String()))
	}
	if out.cut {
		said.Content = append(said.Content, text(fmt.Sprintf("[cut: the output is longer than %s]", units.BytesSize(MaxOutput))))
	}
	if failing {
		reason := "the tool's container " + exit.String()
		if last := strings.TrimSpace(p.Stderr()); last != "" {
			reason += ": " + last
		}
		said.Content = append(said.Content, text(reason))
		said.IsError = true
	}
	return said
}

// An output keeps the start of what is written to it.
type output struct {
	kept bytes.Buffer
	cut  bool
}

// Write keeps what there is room for, and takes the rest too: the container is
// to come to its end.
func (o *output) Write(p []byte) (int, error) {
	room := MaxOutput - o.kept.Len()
	o.kept.Write(p[:min(room, len(p))])
	o.cut = o.cut || len(p) > room
	return len(p), nil
}
