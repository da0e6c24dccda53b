package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
)

// quiet keeps a house from logging into a fuzz target.
type quiet struct{ testing.TB }

// Log drops what it is told.
func (quiet) Log(...any) {}

// FuzzLines holds that nothing a client writes, before or after its
// initialize, breaks or blocks its session: a last ping is answered, all that
// comes back is JSON-RPC, and the session ends with its stream.
func FuzzLines(f *testing.F) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__echo","arguments":{"a":1},"_meta":{"progressToken":1}}}`
	for _, lines := range []string{
		call,
		call + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		call + "\n" + call,
		hello,
		`[` + hello + `,` + call + `]`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp_add","arguments":{"name":"two"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"one.echo","requestState":"dockgate:x","inputResponses":{"approval":{}}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt"},"argument":null}}`,
		`{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"x:"}}` + "\n" + `{"jsonrpc":"2.0","id":6,"method":"prompts/get"}`,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":[]}` + "\n" + `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\r\n\r\n" + `{"id":1e3}` + "\x00\xff",
	} {
		f.Add(false, []byte(lines))
		f.Add(true, []byte(lines))
	}
	h := build(quiet{f}, options{mode: approval.ModeAll, active: []string{"one"}}, map[string]sandboxtest.Server{"test/one": sdkServer(echo)})
	f.Fuzz(func(t *testing.T, first bool, lines []byte) {
		in, client := io.Pipe()
		answers, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- h.Serve(context.WithoutCancel(t.Context()), in, out, principal.Local) }()
		last := `"` + rand.Text() + `"`
		said := []string{hello, string(lines), `{"jsonrpc":"2.0","id":` + last + `,"method":"ping"}`}
		if first {
			said[0], said[1] = said[1], said[0]
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			for _, text := range said {
				if _, err := io.WriteString(client, text+"\n"); err != nil {
					t.Errorf("the gateway reads no further than %.200q: %v", text, err)
					return
				}
			}
		}()
		// What blocks ends here, with the messages that say what did.
		patience := time.AfterFunc(20*time.Second, func() {
			_ = answers.CloseWithError(context.DeadlineExceeded)
			_ = client.CloseWithError(context.DeadlineExceeded)
		})
		defer patience.Stop()
		received := bytes.NewBuffer(nil)
		reader := jsonrpc.NewReader(io.TeeReader(answers, received), jsonrpc.ReaderOptions{Dropped: func(line []byte, reason string) {
			t.Errorf("the gateway says %q, which is no message: %s", line, reason)
		}})
		for {
			m, err := reader.Read()
			if err != nil {
				t.Fatalf("after %q the ping is not answered: %v; received\n%s", lines, err, received)
			}
			if m.Error != nil && m.Error.Code == 0 {
				t.Errorf("after %q an error without a code: %+v", lines, m)
			}
			if m.Kind() == jsonrpc.Response && string(m.ID) == last {
				break
			}
		}
		<-written
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, answers)
		}()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("after %q Serve = %v, want nil when the client leaves", lines, err)
		}
		<-drained
	})
}
