package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

func bufferedOut(out io.Writer) *bufio.Writer { return bufio.NewWriterSize(out, 64<<10) }

// afterGarbage writes what servers print by mistake, and what they would not
// even then.
func afterGarbage(out io.Writer, line []byte) error {
	for _, garbage := range []string{
		"npm WARN deprecated", "", "{", "}", "[]", "null", "17", `"text"`, "\x1b[2J\x1b[31mred", "\x00\xff\xfe",
		`{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"result":1}`, `{"level":"info","id":3,"msg":"a log line"}`,
		`{"jsonrpc":"2.0","id":99,"id":98,"result":{}}`, strings.Repeat("x", 1<<20),
	} {
		if _, err := io.WriteString(out, garbage+"\n"); err != nil {
			return err
		}
	}
	_, err := out.Write(line)
	return err
}

func inPieces(out io.Writer, line []byte) error {
	for i := range line {
		if _, err := out.Write(line[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

func half(s *server, m message) {
	_, _ = fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, m.ID)
}

func longLine(s *server, m message) {
	flood(s, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		block := bytes.Repeat([]byte("x"), 64<<10)
		for range 1 << 30 / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, "\"}]}}\n")
	})
}

func chatter(s *server, m message) {
	w := bufferedOut(os.Stderr)
	line := strings.Repeat("error ", 16) + "\n"
	for range 100 << 20 / len(line) {
		if _, err := w.WriteString(line); err != nil {
			return
		}
	}
	_ = w.Flush()
	s.text(m, "said it")
}

func notifications(s *server, m message) {
	flood(s, func(w io.Writer) {
		for i := range 50_000 {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`+"\n", i)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`+"\n", i+1000)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:%d"}}`+"\n", i)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
		}
	})
	s.text(m, "told it")
}

func unknownIDs(s *server, m message) {
	flood(s, func(w io.Writer) {
		for i := range 200_000 {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`+"\n", i+1_000_000)
		}
	})
	s.text(m, "answered it")
}

func twice(s *server, m message) {
	s.text(m, "first")
	s.text(m, "second")
	s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"third"}}`, m.ID)
}

func otherVersion(s *server, m message) {
	s.line(`{"jsonrpc":"1.0","id":%s,"result":{"content":[]}}`, m.ID)
}

func deep(s *server, m message) {
	const depth = 100_000
	s.line(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"x":%s%s}}}`,
		m.ID, strings.Repeat("[", depth), strings.Repeat("]", depth))
}

func noText(s *server, m message) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"a%sb"}]}}`, m.ID, "\xff\xfe\xc3")
}
