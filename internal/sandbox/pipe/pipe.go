// Package pipe is a byte pipe in memory with a bounded buffer.
//
// It stands between the stream of an engine and the reader of a container's
// stdout, so that a slow reader slows the container down instead of filling
// the memory, and so that a reader can be sent away while the stream goes on.
// It starts no goroutine, and blocks only on condition variables, so it can be
// used inside a testing/synctest bubble.
package pipe

import (
	"io"
	"sync"
)

// Keep is the largest buffer, in bytes, that an empty pipe holds on to.
const Keep = 64 << 10

// A Pipe carries bytes from its writer to its reader. All methods may be
// called from any goroutine.
type Pipe struct {
	mu       sync.Mutex
	changed  sync.Cond // on mu
	buf      []byte    // unread bytes are buf[off:]
	off      int
	limit    int   // of unread bytes; 0 is none
	end      error // what Read returns after the last byte; nil while open
	left     bool  // the reader has gone
	dropping bool  // writes go nowhere
}

// New returns a pipe whose writer waits while limit bytes are unread.
func New(limit int) *Pipe {
	p := &Pipe{limit: limit}
	p.changed.L = &p.mu
	return p
}

// Write hands b to the reader and waits while the buffer is full. It fails
// with [io.ErrClosedPipe] once either end is closed.
func (p *Pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var written int
	for {
		switch {
		case p.end != nil:
			return written, io.ErrClosedPipe
		case p.dropping:
			return written + len(b), nil
		case p.left:
			return written, io.ErrClosedPipe
		case len(b) == 0:
			return written, nil
		}
		room := len(b)
		if p.limit > 0 {
			room = min(room, p.limit-(len(p.buf)-p.off))
		}
		if room <= 0 {
			p.changed.Wait()
			continue
		}
		p.append(b[:room])
		b = b[room:]
		written += room
		p.changed.Broadcast()
	}
}

// append adds b to the unread bytes, moving them to the front first where
// that saves growing. The buffer does not grow past the limit, which is the
// most that it holds.
func (p *Pipe) append(b []byte) {
	if p.off > 0 && len(p.buf)+len(b) > cap(p.buf) {
		n := copy(p.buf, p.buf[p.off:])
		p.buf, p.off = p.buf[:n], 0
	}
	if need := len(p.buf) + len(b); need > cap(p.buf) && need <= p.limit {
		grown := make([]byte, len(p.buf), min(max(need, 2*cap(p.buf)), p.limit))
		copy(grown, p.buf)
		p.buf = grown
	}
	p.buf = append(p.buf, b...)
}

// Read waits for bytes and returns them. After the last byte it returns what
// CloseWrite was given, and [io.ErrClosedPipe] once the reader has gone.
func (p *Pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.left:
			return 0, io.ErrClosedPipe
		case p.off < len(p.buf):
			n := copy(b, p.buf[p.off:])
			p.off += n
			if p.off == len(p.buf) {
				p.empty()
			}
			p.changed.Broadcast()
			return n, nil
		case p.end != nil:
			return 0, p.end
		case len(b) == 0:
			return 0, nil
		}
		p.changed.Wait()
	}
}

// empty forgets all bytes, and the buffer if a burst has made it large.
func (p *Pipe) empty() {
	p.off = 0
	if cap(p.buf) > Keep {
		p.buf = nil
		return
	}
	p.buf = p.buf[:0]
}

// CloseWrite ends the pipe: what was written can still be read, then Read
// returns err, or [io.EOF] if err is nil. Only the first call counts.
func (p *Pipe) CloseWrite(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		return
	}
	if err == nil {
		err = io.EOF
	}
	p.end = err
	p.changed.Broadcast()
}

// CloseRead sends the reader away: Read and Write fail from now on.
func (p *Pipe) CloseRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	p.buf, p.off = nil, 0
	p.changed.Broadcast()
}

// Discard sends the reader away as CloseRead does, but lets the writer go on:
// what it writes is thrown away.
func (p *Pipe) Discard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.dropping = true, true
	p.buf, p.off = nil, 0
	p.changed.Broadcast()
}

// Unbound lifts the limit, for a writer that is known to end soon.
func (p *Pipe) Unbound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = 0
	p.changed.Broadcast()
}
