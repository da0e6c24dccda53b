package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stream is one end of two pipes.
type stream struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stream) Close() error {
	return errors.Join(s.ReadCloser.Close(), s.WriteCloser.Close())
}

// pipe returns the two ends of a conversation. Closing an end ends the Reads
// and Writes of both.
func pipe() (client, server stream) {
	fromServer, toClient := io.Pipe()
	fromClient, toServer := io.Pipe()
	return stream{fromServer, toServer}, stream{fromClient, toClient}
}

// What the client under test says of itself.
const (
	clientMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"gate","version":"1"}`
	clientInit = `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"gate","version":"1"}}`
)

func options(era upstream.Era) upstream.Options {
	return upstream.Options{
		Client:       upstream.Implementation{Name: "gate", Version: "1"},
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Era:          era,
	}
}

// A peer plays the server's side of a conversation, line by line.
type peer struct {
	stream
	t     *testing.T
	lines *bufio.Reader
}

func newPeer(t *testing.T, s stream) *peer {
	return &peer{s, t, bufio.NewReader(s)}
}

// receive returns the next line from the client, "" at the end.
func (p *peer) receive() string {
	line, err := p.lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Errorf("peer: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// send writes one line. The client may be gone.
func (p *peer) send(line string) { _, _ = io.WriteString(p.stream, line+"\n") }

// play follows a script: "> line" is what the client must send next, "< line"
// is sent to it, "EOF" ends the conversation. INIT and META stand for what
// the client says of itself; an id or version is left out of each line.
func (p *peer) play(script string) {
	expand := strings.NewReplacer("INIT", clientInit, "META", clientMeta)
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		switch text := strings.TrimPrefix(strings.TrimLeft(line, "<> "), "{"); {
		case line == "":
		case line == "EOF":
			_ = p.Close()
		case line[0] == '<' && text != strings.TrimLeft(line, "<> "):
			p.send(expand.Replace(`{"jsonrpc":"2.0",` + text))
		case line[0] == '<':
			p.send(text)
		default:
			want := expand.Replace(`{"jsonrpc":"2.0",` + text)
			if got := p.receive(); got != want {
				p.t.Errorf("client sent\n\t%s, want\n\t%s", got, want)
			}
		}
	}
}

// start returns a goroutine's end: wait for it before the test ends.
func start(f func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return func() { <-done }
}

// end closes a session that must close cleanly.
func end(t *testing.T, s *upstream.Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

const legacyHandshake = `
	> {"id":1,"method":"initialize","params":INIT}
	< {"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"0"}}}
	> {"method":"notifications/initialized"}
`

const modernHandshake = `
	> {"id":1,"method":"server/discover","params":{"_meta":{META}}}
	< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}}
`

// connect returns a session with a peer that has played the handshake.
func connect(t *testing.T, o upstream.Options) (*upstream.Session, *peer) {
	t.Helper()
	client, server := pipe()
	p := newPeer(t, server)
	handshake := legacyHandshake
	if o.Era == upstream.Modern {
		handshake = modernHandshake
	}
	played := start(func() { p.play(handshake) })
	s, err := upstream.Connect(context.Background(), client, o)
	if err != nil {
		t.Fatalf("Connect() = %v", err)
	}
	played()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		_ = p.Close()
	})
	return s, p
}
