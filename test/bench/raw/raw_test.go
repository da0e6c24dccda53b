package raw_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/test/bench/raw"
)

// converse returns a conversation with a server that is a function: it gets
// each request and returns the lines that it writes.
func converse(t *testing.T, server func(jsonrpc.Message) string) *raw.Conversation {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		reader := jsonrpc.NewReader(in, jsonrpc.ReaderOptions{})
		for {
			m, err := reader.Read()
			if err != nil {
				return
			}
			if m.Kind() != jsonrpc.Request {
				continue
			}
			if _, err := io.WriteString(out, server(m)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = fromServer.Close()
		_ = toServer.Close()
		<-done
	})
	return raw.New(fromServer, toServer)
}

func TestRequest(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	tests := []struct {
		name   string
		answer string
		want   string
		fails  string
	}{
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"a":1}`, ""},
		{"id behind", `{"result":{"a":1},"id":1,"jsonrpc":"2.0"}`, `{"a":1}`, ""},
		{"longer than the buffer", `{"jsonrpc":"2.0","id":1,"result":"` + long + `"}`, `"` + long + `"`, ""},
		{"notification first", `{"jsonrpc":"2.0","method":"note"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`, `{}`, ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}`, "", "no such method"},
		{"another id", `{"jsonrpc":"2.0","id":7,"result":{}}`, "", "answer to 7, want 1"},
		{"not a message", `hello`, "", "invalid"},
		{"tool error", `{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`, "", "isError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := converse(t, func(jsonrpc.Message) string { return tt.answer + "\n" })
			got, err := c.Call([]byte(`{"name":"echo"}`))
			switch {
			case tt.fails == "" && err != nil:
				t.Errorf("Call = %v, want a result", err)
			case tt.fails == "" && string(got) != tt.want:
				t.Errorf("Call = %.100s, want %.100s", got, tt.want)
			case tt.fails != "" && err == nil:
				t.Errorf("Call = %s, want an error with %q", got, tt.fails)
			case tt.fails != "" && tt.name != "not a message" && !strings.Contains(err.Error(), tt.fails):
				t.Errorf("Call = %v, want an error with %q", err, tt.fails)
			}
		})
	}
}

func TestEndOfStream(t *testing.T) {
	c := raw.New(strings.NewReader(`{"jsonrpc":"2.0","id":1,"res`), io.Discard)
	if _, err := c.Request("tools/list", nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Request = %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestInitialize(t *testing.T) {
	var said bytes.Buffer
	c := raw.New(strings.NewReader(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"), &said)
	if err := c.Initialize(); err != nil {
		t.Fatal(err)
	}
	var methods []string
	reader := jsonrpc.NewReader(&said, jsonrpc.ReaderOptions{})
	for m, err := reader.Read(); err == nil; m, err = reader.Read() {
		methods = append(methods, m.Method)
	}
	if got, want := fmt.Sprint(methods), "[initialize notifications/initialized]"; got != want {
		t.Errorf("Initialize said %s, want %s", got, want)
	}
}

func TestFlood(t *testing.T) {
	const count, width = 50, 4
	served := 0
	c := converse(t, func(m jsonrpc.Message) string {
		served++
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
	})
	// The pipes of the test hold nothing, so a window over them must be one.
	if err := c.Flood([]byte(`{}`), count, 1); err != nil {
		t.Fatal(err)
	}
	if served != count {
		t.Errorf("Flood made %d calls, want %d", served, count)
	}

	// Answers out of order, the first window at once.
	var answers, said bytes.Buffer
	for _, id := range []int{3, 1, 4, 2, 6, 5} {
		fmt.Fprintf(&answers, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", id)
	}
	if err := raw.New(&answers, &said).Flood([]byte(`{}`), 6, width); err != nil {
		t.Errorf("Flood with answers out of order = %v, want nil", err)
	}
	if got := bytes.Count(said.Bytes(), []byte("\n")); got != 6 {
		t.Errorf("Flood made %d calls, want 6", got)
	}

	twice := strings.NewReader(strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", 2))
	if err := raw.New(twice, io.Discard).Flood([]byte(`{}`), 2, 2); err == nil {
		t.Error("Flood with the same answer twice = nil, want an error")
	}
}

func TestDrain(t *testing.T) {
	line := func(size int) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}` + "\n"
	}
	for _, size := range []int{0, 100, 64 << 10, 1 << 20} {
		answers := `{"jsonrpc":"2.0","method":"note"}` + "\n" + line(size)
		got, err := raw.New(strings.NewReader(answers), io.Discard).Drain([]byte(`{}`))
		if want := len(line(size)); got != want || err != nil {
			t.Errorf("Drain of %d bytes = %d, %v, want %d, nil", size, got, err, want)
		}
	}
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}`,
		``,
	} {
		if got, err := raw.New(strings.NewReader(answer+"\n"), io.Discard).Drain([]byte(`{}`)); err == nil {
			t.Errorf("Drain of %q = %d, want an error", answer, got)
		}
	}
}

func frame(stream byte, payload string) string {
	header := []byte{stream, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(header[4:], uint32(len(payload)))
	return string(header) + payload
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	tests := []struct {
		name, in, want string
		err            error
	}{
		{"nothing", "", "", nil},
		{"one", frame(1, "hello\n"), "hello\n", nil},
		{"stderr between", frame(1, "he") + frame(2, "noise") + frame(1, "") + frame(1, "llo\n"), "hello\n", nil},
		{"long", frame(2, long) + frame(1, long), long, nil},
		{"cut in the header", frame(1, "hello") + "\x01\x00", "hello", io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, slow := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r },
				iotest.HalfReader,
				iotest.DataErrReader,
			} {
				got, err := io.ReadAll(&raw.Frames{From: bufio.NewReader(slow(strings.NewReader(tt.in)))})
				if string(got) != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("read %.60q, %v, want %.60q, %v", got, err, tt.want, tt.err)
				}
			}
		})
	}
	if _, err := io.ReadAll(&raw.Frames{From: bufio.NewReader(strings.NewReader(frame(7, "x")))}); err == nil {
		t.Error("reading stream 7 = nil, want an error")
	}
}
