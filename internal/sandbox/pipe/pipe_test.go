package pipe_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dockgate/dockgate/internal/sandbox/pipe"
)

func TestPipeCarriesEverything(t *testing.T) {
	for _, limit := range []int{0, 1, 7, 64 << 10} {
		p := pipe.New(limit)
		want := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
		wrote := make(chan error, 1)
		go func() {
			for part := range bytes.SplitSeq(want, []byte("c")) {
				if _, err := p.Write(part); err != nil {
					wrote <- err
					return
				}
				if _, err := p.Write([]byte("c")); err != nil {
					wrote <- err
					return
				}
			}
			p.CloseWrite(nil)
			wrote <- nil
		}()
		got, err := io.ReadAll(p)
		if err != nil {
			t.Errorf("limit %d: ReadAll() = %v, want nil", limit, err)
		}
		if err := <-wrote; err != nil {
			t.Errorf("limit %d: Write() = %v, want nil", limit, err)
		}
		if want := append(want, 'c'); !bytes.Equal(got, want) {
			t.Errorf("limit %d: read %d bytes, want %d, the same", limit, len(got), len(want))
		}
	}
}

func TestWriteWaitsForRoom(t *testing.T) {
	tests := []struct {
		name    string
		release func(*pipe.Pipe)
		err     error
	}{
		{"read", func(p *pipe.Pipe) { _, _ = p.Read(make([]byte, 8)) }, nil},
		{"reader leaves", (*pipe.Pipe).CloseRead, io.ErrClosedPipe},
		{"discard", (*pipe.Pipe).Discard, nil},
		{"unbound", (*pipe.Pipe).Unbound, nil},
		{"closed", func(p *pipe.Pipe) { p.CloseWrite(nil) }, io.ErrClosedPipe},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipe.New(4)
				done := make(chan error, 1)
				go func() {
					_, err := p.Write([]byte("12345678"))
					done <- err
				}()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("Write past the limit returned %v, want it to wait", err)
				default:
				}
				tt.release(p)
				if err := <-done; !errors.Is(err, tt.err) {
					t.Errorf("Write() = %v, want %v", err, tt.err)
				}
			})
		})
	}
}

func TestReadAfterTheEnd(t *testing.T) {
	cause := errors.New("engine gone")
	tests := []struct {
		name string
		end  func(*pipe.Pipe)
		read string
		err  error
	}{
		{"closed", func(p *pipe.Pipe) { p.CloseWrite(nil) }, "rest", io.EOF},
		{"closed with a cause", func(p *pipe.Pipe) { p.CloseWrite(cause); p.CloseWrite(nil) }, "rest", cause},
		{"reader left", (*pipe.Pipe).CloseRead, "", io.ErrClosedPipe},
		{"discarded", (*pipe.Pipe).Discard, "", io.ErrClosedPipe},
	}
	for _, tt := range tests {
		p := pipe.New(0)
		if _, err := p.Write([]byte("rest")); err != nil {
			t.Fatal(err)
		}
		tt.end(p)
		var read strings.Builder
		var err error
		for err == nil {
			b := make([]byte, 3)
			var n int
			n, err = p.Read(b)
			read.Write(b[:n])
		}
		if read.String() != tt.read || !errors.Is(err, tt.err) {
			t.Errorf("%s: read %q, %v, want %q, %v", tt.name, read.String(), err, tt.read, tt.err)
		}
	}
}

// A burst that fills the pipe must not cost a buffer each time.
func TestPipeKeepsItsBuffer(t *testing.T) {
	p := pipe.New(pipe.Keep)
	part, got := make([]byte, pipe.Keep/2), make([]byte, pipe.Keep)
	allocations := testing.AllocsPerRun(100, func() {
		for range 2 {
			if _, err := p.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := p.Read(got); n != pipe.Keep || err != nil {
			t.Fatalf("Read() = %d, %v, want %d, nil", n, err, pipe.Keep)
		}
	})
	if allocations != 0 {
		t.Errorf("a burst of %d bytes makes %v allocations, want 0", pipe.Keep, allocations)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", pipe.TailSize)
	tests := []struct {
		name  string
		write []string
		want  string
	}{
		{"nothing", nil, ""},
		{"short", []string{"one\n", "two\n"}, "one\ntwo\n"},
		{"exactly full", []string{long}, long},
		{"first line cut", []string{"first ", long[:pipe.TailSize-10], "\nlast\n"}, "last\n"},
		{"one endless line", []string{long, "end"}, long[3:] + "end"},
		{"one write larger than all", []string{"a\n" + long + "\nb"}, "b"},
		{"no text", []string{"a\xff\xfeb"}, "ab"},
	}
	for _, tt := range tests {
		var tail pipe.Tail
		for _, part := range tt.write {
			if n, err := tail.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%s: Write(%d bytes) = %d, %v", tt.name, len(part), n, err)
			}
		}
		if got := tail.String(); got != tt.want {
			t.Errorf("%s: String() = %q, want %q", tt.name, got, tt.want)
		}
	}
}
