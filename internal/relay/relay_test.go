package relay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/relay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a dialer whose relay carries connections to a port.
func start(t *testing.T, port int) *relay.Dialer {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- relay.Serve(t.Context(), theirs, port) }()
	d, err := relay.NewDialer(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
		<-d.Done()
	})
	return d
}

// echoes is a server that sends back what it gets.
func echoes(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no such address: %v", err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

func TestCarry(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			d := start(t, echoes(t, address))
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					conn, err := d.DialContext(t.Context(), "", "")
					if err != nil {
						t.Errorf("DialContext() = %v", err)
						return
					}
					defer func() { _ = conn.Close() }()
					sent := bytes.Repeat([]byte{byte(i)}, 1<<20)
					go func() { _, _ = conn.Write(sent) }()
					got := make([]byte, len(sent))
					if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
						t.Errorf("connection %d sent back other bytes, or %v", i, err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = start(t, port).DialContext(t.Context(), "", "")
	var refused *relay.RefusedError
	if !errors.As(err, &refused) || refused.Reason == "" {
		t.Errorf("DialContext() = %v, want a *RefusedError with a reason", err)
	}
}

func TestTooMany(t *testing.T) {
	d := start(t, echoes(t, "127.0.0.1:0"))
	for range 128 {
		conn, err := d.DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	var refused *relay.RefusedError
	if _, err := d.DialContext(t.Context(), "", ""); !errors.As(err, &refused) {
		t.Errorf("connection 129 = %v, want a *RefusedError", err)
	}
}

// A relay that does not answer holds nobody for longer than they want.
func TestSilentRelay(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	d, err := relay.NewDialer(ours)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.DialContext(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("DialContext() = %v, want %v", err, context.DeadlineExceeded)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	_ = theirs.Close()
}

// What a hostile relay sends is the end of its stream, and of nothing else.
func FuzzDialer(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
		both.Go(func() {
			_, _ = theirs.Write(sent)
			_ = theirs.Close()
		})
		d, err := relay.NewDialer(ours)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := d.DialContext(t.Context(), "", ""); err == nil {
			_ = conn.Close()
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		both.Wait()
	})
}
