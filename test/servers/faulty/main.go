// Command faulty is an MCP server that does what a server must not do. It
// speaks the stdio transport by hand, since no SDK would let it, and is
// correct but for one fault, which the variable FAULT names:
//
// At its start: mute answers nothing; exit-start and exit-probe leave at once
// and when asked for their era; version-start speaks a protocol of the future;
// hungry-start wants more memory than there is.
//
// At its end: deaf does not notice the end of its input, stubborn ignores
// SIGTERM too.
//
// On the wire, in a call of the tool fault unless it says otherwise: garbage
// writes lines that are none of the protocol before every message, pieces
// writes each byte by itself, half never ends its line; long-line, stderr,
// notifications and unknown-ids write 1 GiB in one line, 100 MB of messages,
// and floods of notifications and of answers to nobody; duplicates answers
// twice, version in another version of JSON-RPC, deep with 100,000 arrays in
// each other, utf8 with bytes that are no text.
//
// In its lists: pages has 5,000 tools on pages of 100, endless a cursor that
// never ends, circle one that comes back, changing another tool each time and
// says so at once, names what is no name, schemas what is no schema, huge a
// description of 10 MB and many large ones; bad-list lists well once for each
// folder that is mounted at /data, and then not.
//
// With its machine, in a call of the tool fault: exit-call leaves, fork-bomb,
// hungry and busy take processes, memory and time without end, tmp fills /tmp
// and files opens 100,000 files.
//
// Without FAULT it has none. The tool echo returns its text, look reports what
// the container looks like from inside, push what it lets happen.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func main() {
	s := &server{out: os.Stdout}
	name := os.Getenv("FAULT") //nolint:forbidigo // this is a command
	if name != "" {
		var known bool
		if s.fault, known = faults()[name]; !known {
			_, _ = fmt.Fprintf(os.Stderr, "faulty: unknown fault %q\n", name)
			os.Exit(64)
		}
	}
	if s.fault.boot != nil {
		s.fault.boot()
	}
	if err := s.serve(os.Stdin); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "faulty:", err)
		os.Exit(1)
	}
	if s.fault.stays {
		// The timer keeps the runtime from ending a program that only waits.
		<-time.NewTimer(time.Hour).C
	}
}

// A fault is what is wrong with the server.
type fault struct {
	// boot runs before anything is read.
	boot func()
	// meet sees each message first, and reports whether it dealt with it.
	meet func(*server, message) bool
	// write replaces how a line is written.
	write func(out io.Writer, line []byte) error
	// stays reports that the server does not leave at the end of its input.
	stays bool
}

// A message is what of a request matters here.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Cursor    string `json:"cursor"`
		Arguments struct {
			Text string `json:"text"`
		} `json:"arguments"`
	} `json:"params"`
}

type server struct {
	out   io.Writer
	fault fault
	lists int // how often the tools were listed
}

func (s *server) serve(in io.Reader) error {
	reader := bufio.NewReader(in)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { //nolint:errorlint // the reader's own
			return nil
		}
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(line))
		}
		if s.fault.meet == nil || !s.fault.meet(s, m) {
			s.answer(m)
		}
	}
}

// answer is what a good server does.
func (s *server) answer(m message) {
	switch {
	case m.ID == nil:
	case m.Method == "initialize":
		s.result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case m.Method == "ping":
		s.result(m, `{}`)
	case m.Method == "tools/list":
		s.lists++
		s.result(m, `{"tools":[`+tools()+`]}`)
	case m.Method == "tools/call":
		s.call(m)
	default:
		s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
	}
}

func (s *server) call(m message) {
	switch m.Params.Name {
	case "echo", "fault":
		s.text(m, m.Params.Arguments.Text)
	case "look", "push":
		var report bytes.Buffer
		inspect := probe.Inspect
		if m.Params.Name == "push" {
			inspect = probe.Push
		}
		if err := inspect(os.Args[1:], os.Environ(), &report); err != nil { //nolint:forbidigo // this is a command
			s.text(m, err.Error())
			return
		}
		s.result(m, `{"content":[],"structuredContent":`+strings.TrimSpace(report.String())+`}`)
	default:
		s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, m.ID)
	}
}

// tools are the entries of a good listing.
func tools() string {
	const schema = `"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}`
	return `{"name":"echo",` + schema + `},{"name":"fault",` + schema + `},{"name":"look",` + schema + `},{"name":"push",` + schema + `}`
}

// text answers a call with a text.
func (s *server) text(m message, text string) {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	s.result(m, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (s *server) result(m message, result string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// line writes one line. A server that cannot write has nobody to tell.
func (s *server) line(format string, args ...any) {
	line := fmt.Appendf(nil, format+"\n", args...)
	if s.fault.write != nil {
		_ = s.fault.write(s.out, line)
		return
	}
	_, _ = s.out.Write(line)
}
