package docker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/stream"
	"github.com/dockgate/dockgate/internal/sandbox/pipe"
)

const (
	// unread is how much of its stdout a container is ahead of its reader
	// before it has to wait. It is what a pipe keeps its buffer for: a new one
	// for each burst of a large result costs more than all copies of it.
	unread = pipe.Keep
	// readSize is how much is taken from the connection at once.
	readSize = 32 << 10
)

// A stdio is the connection to the standard streams of a process.
type stdio struct {
	conn   net.Conn
	half   client.CloseWriter // of conn; nil if it cannot be closed for writing only
	stdout *pipe.Pipe
	stderr pipe.Tail
	pumped chan struct{} // closed when split has ended
	// logged reports that stdout is no conversation, and goes where stderr does.
	logged bool

	writing sync.Mutex // around writes and the end of stdin
	closing atomic.Bool
}

func (s *stdio) joined(attached client.HijackedResponse) {
	s.conn = attached.Conn
	s.half, _ = attached.Conn.(client.CloseWriter)
	s.stdout = pipe.New(unread)
	s.pumped = make(chan struct{})
}

// split takes the output apart until the engine ends it. The error says that
// it could not be understood.
func (s *stdio) split(log io.Writer) error {
	defer close(s.pumped)
	defer s.stdout.CloseWrite(nil)
	stderr := io.MultiWriter(&s.stderr, log)
	stdout := io.Writer(s.stdout)
	if s.logged {
		stdout = stderr
	}
	err := stream.Split(bufio.NewReaderSize(s.conn, readSize), stdout, stderr)
	if errors.Is(err, stream.ErrFormat) {
		return err
	}
	return nil
}

func (s *stdio) Read(b []byte) (int, error) { return s.stdout.Read(b) }

func (s *stdio) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closing.Load() {
		return 0, io.ErrClosedPipe
	}
	n, err := s.conn.Write(b)
	if err != nil && s.closing.Load() {
		err = io.ErrClosedPipe
	}
	return n, err
}

func (s *stdio) Stderr() string { return s.stderr.String() }

// closeStdin ends the server's input, and with it a write that hangs because
// the server does not read.
func (s *stdio) closeStdin() {
	if !s.writing.TryLock() {
		// Only closing the whole connection is sure to end the write. The
		// engine then closes the server's stdin too.
		_ = s.conn.Close()
		return
	}
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if s.half == nil || s.half.CloseWrite() != nil {
		_ = s.conn.Close()
	}
}

// ended makes closing a connection that is already closed no error.
func ended(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
