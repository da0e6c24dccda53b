package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// BenchmarkWarmCall is a call through everything but an engine: approval and
// audit are real, the server answers from a pipe.
func BenchmarkWarmCall(b *testing.B) {
	benchmarkCall(b, `{"content":[{"type":"text","text":"hello"}]}`)
}

// BenchmarkLargeResult is the same with a result of 10 MB.
func BenchmarkLargeResult(b *testing.B) {
	b.SetBytes(10 << 20)
	benchmarkCall(b, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 10<<20)+`"}]}`)
}

func benchmarkCall(b *testing.B, result string) {
	server := func(_ context.Context, c sandboxtest.Container) int {
		reader, writer := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
		answers := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
			"tools/call": result,
		}
		for {
			m, err := reader.Read()
			if err != nil {
				return 0
			}
			if m.ID == nil {
				continue
			}
			answer := jsonrpc.Message{ID: m.ID, Result: json.RawMessage(answers[m.Method])}
			if answer.Result == nil {
				answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
			}
			if err := writer.Write(answer); err != nil {
				return 1
			}
		}
	}
	h := build(b, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": server})
	toServer, fromClient := io.Pipe()
	toClient, fromServer, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(b.Context(), toServer, fromServer, principal.Local) }()
	reader := jsonrpc.NewReader(toClient, jsonrpc.ReaderOptions{})
	ask := func(line string) {
		if _, err := io.WriteString(fromClient, line+"\n"); err != nil {
			b.Fatal(err)
		}
		for {
			m, err := reader.Read()
			if err != nil {
				b.Fatal(err)
			}
			if m.Kind() == jsonrpc.Response {
				if m.Error != nil {
					b.Fatal(m.Error)
				}
				return
			}
		}
	}
	ask(hello)
	call := func(id int) {
		ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"hello"}}}`, id))
	}
	call(1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call(i + 2)
	}
	b.StopTimer()
	if err := fromClient.Close(); err != nil {
		b.Fatal(err)
	}
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}
