package jsonrpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// readAll reads to the end and renders what came: messages as lines, and what
// else happened.
func readAll(r io.Reader, limit int) []string {
	var got []string
	reader := jsonrpc.NewReader(r, jsonrpc.ReaderOptions{
		Limit:   limit,
		Dropped: func(line []byte, reason string) { got = append(got, fmt.Sprintf("dropped %.20q: %s", line, reason)) },
	})
	for {
		m, err := reader.Read()
		var long *jsonrpc.LineError
		switch {
		case errors.As(err, &long):
			got = append(got, fmt.Sprintf("long, id %s", long.ID))
		case err != nil:
			return append(got, err.Error())
		default:
			line, err := m.Append(nil)
			if err != nil {
				return append(got, err.Error())
			}
			got = append(got, string(line))
		}
	}
}

func TestReader(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const note = `{"jsonrpc":"2.0","method":"n"}`
	long := func(format string) string { return fmt.Sprintf(format, strings.Repeat("x", 100_000)) }
	tests := []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"lines", ping + "\n\n  \r\n" + note + "\r\n", 0, []string{ping, note, "EOF"}},
		{"no last line break", ping + "\n" + note, 0, []string{ping, note, "EOF"}},
		{"cut off", ping + "\n" + note[:10], 0, []string{ping, `dropped "{\"jsonrpc\"": unexpected end at byte 10`, "EOF"}},
		{"garbage between", "hello\n" + ping + "\n{}\n[]\n" + note + "\n", 0, []string{
			`dropped "hello": not an object at byte 0`, ping,
			`dropped "{}": no jsonrpc member at byte 2`, `dropped "[]": empty batch`, note, "EOF",
		}},
		{"batch", "[" + ping + ", 7 ," + note + "]\n" + note + "\n", 0, []string{
			ping, `dropped "7": not an object at byte 0`, note, note, "EOF",
		}},
		{"broken batch", "[" + ping + ",\n" + note + "\n", 0, []string{
			`dropped "[{\"jsonrpc\":\"2.0\",\"i": unexpected end at byte 42`, note, "EOF",
		}},
		{
			"long line within the buffer", strings.Repeat(" ", 11) + "\n" + strings.Repeat(" ", 10) + "\n", 10,
			[]string{"long, id ", "EOF"},
		},
		{"long garbage", long("%s") + "\n" + note + "\n", 50_000, []string{"long, id ", note, "EOF"}},
		{"long without line break", long("%s"), 50_000, []string{"long, id ", "EOF"}},
		{
			"long response, id first", long(`{"jsonrpc":"2.0","id":42,"result":"%s"}`) + "\n" + note + "\n", 50_000,
			[]string{"long, id 42", note, "EOF"},
		},
		{
			"long response, id last", long(`{"result":{"a":"%s"},"jsonrpc":"2.0","id":"s"}`) + "\n" + note + "\n", 50_000,
			[]string{`long, id "s"`, note, "EOF"},
		},
		{
			"long response, another id last", long(`{"result":{"a":"%s","x":{"id":5}}}`) + "\n", 50_000,
			[]string{"long, id ", "EOF"},
		},
		{
			"long request", long(`{"jsonrpc":"2.0","method":"m","id":42,"params":"%s"}`) + "\n", 50_000,
			[]string{"long, id ", "EOF"},
		},
		{
			"longer than the buffer", long(`{"jsonrpc":"2.0","id":42,"result":"%s"}`) + "\n", 0,
			[]string{long(`{"jsonrpc":"2.0","id":42,"result":"%s"}`), "EOF"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, readAll(strings.NewReader(test.in), test.limit)); diff != "" {
				t.Errorf("in one piece (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, readAll(iotest.OneByteReader(strings.NewReader(test.in)), test.limit)); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderLimitIsExact(t *testing.T) {
	for _, size := range []int{100, 32 << 10, 32<<10 + 1, 1 << 20} {
		line := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", size-36) + `"}`
		for _, end := range []string{"\n", ""} {
			if got := readAll(strings.NewReader(line+end), size); got[0] != line {
				t.Errorf("line of %d bytes at limit %d: %.40q, want it accepted", len(line), size, got[0])
			}
			if got := readAll(strings.NewReader(line+end), size-1); got[0] != "long, id 1" {
				t.Errorf("line of %d bytes at limit %d: %.40q, want it refused", len(line), size-1, got[0])
			}
		}
	}
}

func TestReaderDefaultLimit(t *testing.T) {
	fill := func(size int) io.Reader {
		const start, end = `{"jsonrpc":"2.0","id":1,"result":"`, "\"}\n"
		body := strings.Repeat("x", size-len(start)-len(end)+1)
		return io.MultiReader(strings.NewReader(start), strings.NewReader(body), strings.NewReader(end))
	}
	if m, err := jsonrpc.NewReader(fill(16<<20), jsonrpc.ReaderOptions{}).Read(); err != nil || len(m.Result) < 16<<20-50 {
		t.Errorf("Read() = %d bytes of result, %v for a line of 16 MiB, want it accepted", len(m.Result), err)
	}
	var long *jsonrpc.LineError
	if _, err := jsonrpc.NewReader(fill(16<<20+1), jsonrpc.ReaderOptions{}).Read(); !errors.As(err, &long) || string(long.ID) != "1" {
		t.Errorf("Read() = %v for a line over 16 MiB, want a LineError with id 1", err)
	}
}

// Whoever waits for a response that is too long need not wait for its end.
func TestReaderGivesUpEarly(t *testing.T) {
	in, out := io.Pipe()
	r := jsonrpc.NewReader(in, jsonrpc.ReaderOptions{Limit: 1 << 20})
	wrote := make(chan error, 1)
	write := func(text string) {
		go func() {
			_, err := io.WriteString(out, text)
			wrote <- err
		}()
	}
	write(`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 1<<20+64<<10))
	var long *jsonrpc.LineError
	if _, err := r.Read(); !errors.As(err, &long) || string(long.ID) != "7" {
		t.Fatalf("Read() = %v of half a line, want a LineError with id 7", err)
	}
	read := make(chan error, 1)
	var m jsonrpc.Message
	go func() {
		var err error
		m, err = r.Read()
		read <- err
	}()
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	write("xxx\"}\n" + `{"jsonrpc":"2.0","method":"next"}` + "\n")
	if err := <-read; err != nil || m.Method != "next" {
		t.Errorf("Read() = %+v, %v after the line, want the next", m, err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
}

// A long line is parsed as it arrives: whatever its parts end in, it is what
// it is as a whole.
func TestReaderParsesInParts(t *testing.T) {
	const buffer = 32 << 10
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"result":["a\\\"\/\u00e9\ud83d\ude00é😀",true,false,null,-0.5e+10, 12, {}, [ ]]} ` + "\t\r",
		`{"jsonrpc":"2.0","id":1,"result":"\u12g4"}`,
		`{"jsonrpc":"2.0","id":1,"result":nul}`,
		`{"jsonrpc":"2.0","id":1,"result":1e}`,
		`{"jsonrpc":"2.0","id":1,"result":{}} {}`,
		`{"jsonrpc":"2.0","id":1,"result":{}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\xff\xfeb\"}",
		`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`,
		`no message`,
	}
	for _, line := range lines {
		for _, end := range []string{"\n" + `{"jsonrpc":"2.0","method":"next"}` + "\n", ""} {
			want := readAll(strings.NewReader(line+end), 0)
			for before := range len(line) + 1 {
				in := strings.Repeat(" ", buffer-before) + line + end
				got := readAll(strings.NewReader(in), 0)
				for i := range got {
					// What is dropped is told with where it stood.
					got[i], want[i] = text(got[i]), text(want[i])
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%.60q, %d bytes of it in the first part (-want +got):\n%s", line+end, before, diff)
				}
			}
		}
	}
}

// text returns what readAll says, without the start of a dropped line and the
// place in it.
func text(said string) string {
	if _, reason, ok := strings.Cut(said, `": `); ok && strings.HasPrefix(said, "dropped") {
		said, _, _ = strings.Cut(reason, " at byte")
	}
	return said
}

func TestReaderReturnsTheStreamsError(t *testing.T) {
	broken := errors.New("broken")
	r := jsonrpc.NewReader(io.MultiReader(strings.NewReader(`{"jsonrpc"`), iotest.ErrReader(broken)), jsonrpc.ReaderOptions{})
	for range 2 {
		if _, err := r.Read(); !errors.Is(err, broken) {
			t.Errorf("Read() = %v, want %v", err, broken)
		}
	}
}

// countingWriter remembers each Write.
type countingWriter struct {
	mu    sync.Mutex
	lines []string
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, string(p))
	return len(p), nil
}

func TestWriterWritesWholeLinesOnce(t *testing.T) {
	var out countingWriter
	w := jsonrpc.NewWriter(&out)
	var group sync.WaitGroup
	want := make(map[string]int)
	for i := range 50 {
		want[fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":[%d]}`+"\n", i)] = 1
		group.Go(func() {
			if err := w.Write(jsonrpc.Message{Method: "m", Params: fmt.Appendf(nil, "[\n%d\n]", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := make(map[string]int)
	for _, line := range out.lines {
		got[line]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// shortWriter takes n bytes and fails.
type shortWriter struct {
	n   int
	err error
}

func (w *shortWriter) Write(p []byte) (int, error) { return min(w.n, len(p)), w.err }

func TestWriterKnowsWhatWasDelivered(t *testing.T) {
	broken := errors.New("broken")
	m := jsonrpc.Message{Method: "m"}
	line, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		n           int
		first, then error
	}{
		{"nothing", 0, broken, broken},
		{"a part", len(line) - 1, broken, broken},
		{"all but the line break", len(line), nil, broken},
	}
	for _, test := range tests {
		w := jsonrpc.NewWriter(&shortWriter{test.n, broken})
		if got := w.Write(m); !errors.Is(got, test.first) {
			t.Errorf("%s: Write() = %v, want %v", test.name, got, test.first)
		}
		if got := w.Write(m); !errors.Is(got, test.then) {
			t.Errorf("%s: second Write() = %v, want %v", test.name, got, test.then)
		}
	}
	w := jsonrpc.NewWriter(&shortWriter{3, nil})
	if got := w.Write(m); !errors.Is(got, io.ErrShortWrite) {
		t.Errorf("Write() = %v, want %v", got, io.ErrShortWrite)
	}
}

func TestWriterSurvivesAnInvalidMessage(t *testing.T) {
	var out bytes.Buffer
	w := jsonrpc.NewWriter(&out)
	var invalid *jsonrpc.MessageError
	if err := w.Write(jsonrpc.Message{Method: "m", Params: raw("{")}); !errors.As(err, &invalid) {
		t.Errorf("Write() = %v, want a MessageError", err)
	}
	if err := w.Write(jsonrpc.Message{Method: "m"}); err != nil {
		t.Errorf("Write() = %v after an invalid message, want nil", err)
	}
	if got, want := out.String(), `{"jsonrpc":"2.0","method":"m"}`+"\n"; got != want {
		t.Errorf("written = %q, want %q", got, want)
	}
}

func TestWriterPass(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name string
		m    jsonrpc.Message
		want string
	}{
		{"result", jsonrpc.Message{ID: raw("1"), Result: raw(` {"a" : "` + long + `"} `)}, `{"jsonrpc":"2.0","id":1,"result": {"a" : "` + long + `"} }` + "\n"},
		{"params", jsonrpc.Message{Method: "m", Params: raw(`{"a":[1, 2]}`)}, `{"jsonrpc":"2.0","method":"m","params":{"a":[1, 2]}}` + "\n"},
		{"line break", jsonrpc.Message{ID: raw("1"), Result: raw("{\n\"a\": 1\n}")}, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}` + "\n"},
		{"carriage return", jsonrpc.Message{ID: raw("1"), Result: raw("[1,\r2]")}, `{"jsonrpc":"2.0","id":1,"result":[1,2]}` + "\n"},
		{"error", jsonrpc.Message{ID: raw("1"), Error: &jsonrpc.Error{Code: 5, Message: "m"}}, `{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"m"}}` + "\n"},
		{"line break in a string", jsonrpc.Message{ID: raw("1"), Result: raw("\"a\nb\"")}, ""},
		{"empty", jsonrpc.Message{ID: raw("1"), Result: raw("")}, ""},
		{"id that is none", jsonrpc.Message{ID: raw(`1,"x":2`), Result: raw("{}")}, ""},
	}
	for _, test := range tests {
		var out bytes.Buffer
		err := jsonrpc.NewWriter(&out).Pass(test.m)
		if got := out.String(); got != test.want {
			t.Errorf("%s: Pass() wrote %.200q, want %.200q", test.name, got, test.want)
		}
		var invalid *jsonrpc.MessageError
		if refused := errors.As(err, &invalid); refused != (test.want == "") {
			t.Errorf("%s: Pass() = %v, want a MessageError: %t", test.name, err, test.want == "")
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(sample+"\n[]\nx\n["+sample+"]\n"), 64)
	f.Add([]byte("\n\xff\n{\"jsonrpc\":\"2.0\",\"id\":1}"), 8)
	f.Fuzz(func(t *testing.T, stream []byte, limit int) {
		if len(stream) > 1<<16 {
			return
		}
		got := readAll(bytes.NewReader(stream), limit%4096)
		if last := got[len(got)-1]; last != "EOF" {
			t.Fatalf("stream ended with %q, want EOF", last)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	stream := strings.NewReader("")
	r := jsonrpc.NewReader(readerFunc(func(p []byte) (int, error) {
		if stream.Len() == 0 {
			stream.Reset(strings.Repeat(sample+"\n", 100))
		}
		return stream.Read(p)
	}), jsonrpc.ReaderOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func BenchmarkReaderLarge(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("lorem ipsum ", 1<<20) + `"}` + "\n")
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonrpc.NewReader(bytes.NewReader(line), jsonrpc.ReaderOptions{}).Read(); err != nil {
			b.Fatal(err)
		}
	}
}
