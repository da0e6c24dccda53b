package stream_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dockgate/dockgate/internal/docker/stream"
)

func frame(name byte, content string) string {
	header := make([]byte, 8)
	header[0] = name
	binary.BigEndian.PutUint32(header[4:], uint32(len(content)))
	return string(header) + content
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	tests := []struct {
		name           string
		in             string
		stdout, stderr string
		err            error
	}{
		{"nothing", "", "", "", nil},
		{"both", frame(1, "out") + frame(2, "err") + frame(1, "more"), "outmore", "err", nil},
		{"empty frame", frame(1, "") + frame(1, "x"), "x", "", nil},
		{"longer than the buffer", frame(1, long) + frame(2, "e"), long, "e", nil},
		{"error of the engine", frame(3, "no more"), "", "no more", nil},
		{"cut header", frame(1, "a") + "\x01\x00\x00", "a", "", io.ErrUnexpectedEOF},
		{"cut content", frame(1, "abcdef")[:10], "ab", "", io.ErrUnexpectedEOF},
		{"plain text", "HTTP/1.1 500 Internal Server Error", "", "", stream.ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole":    strings.NewReader(tt.in),
				"one byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				var stdout, stderr bytes.Buffer
				err := stream.Split(bufio.NewReaderSize(r, 4096), &stdout, &stderr)
				if !errors.Is(err, tt.err) {
					t.Errorf("%s: Split() = %v, want %v", name, err, tt.err)
				}
				if got := stdout.String(); got != tt.stdout {
					t.Errorf("%s: stdout has %d bytes, want %d", name, len(got), len(tt.stdout))
				}
				if got := stderr.String(); got != tt.stderr {
					t.Errorf("%s: stderr = %q, want %q", name, got, tt.stderr)
				}
			}
		})
	}
}

func TestSplitAllocatesNothing(t *testing.T) {
	in := strings.Repeat(frame(1, strings.Repeat("x", 1000)), 100)
	source := strings.NewReader(in)
	r := bufio.NewReaderSize(source, 32<<10)
	got := testing.AllocsPerRun(10, func() {
		source.Reset(in)
		r.Reset(source)
		if err := stream.Split(r, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("Split of 100 frames allocates %v times, want 0", got)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(frame(1, "out") + frame(2, "err")))
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'x'})
	f.Add([]byte("HTTP/1.1 101 UPGRADED\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var stdout, stderr bytes.Buffer
		err := stream.Split(bufio.NewReaderSize(bytes.NewReader(in), 16), &stdout, &stderr)
		if got := stdout.Len() + stderr.Len(); got > len(in) {
			t.Errorf("Split(%d bytes) wrote %d bytes", len(in), got)
		}
		if err == nil {
			var out, errs bytes.Buffer
			if err := stream.Split(bufio.NewReader(bytes.NewReader(in)), &out, &errs); err != nil || !bytes.Equal(out.Bytes(), stdout.Bytes()) {
				t.Errorf("a larger buffer changes what Split returns: %v", err)
			}
		}
	})
}
