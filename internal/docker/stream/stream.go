// Package stream takes an engine's output stream apart.
//
// An engine sends stdout and stderr of a container over one connection as
// frames: one byte that names the stream, three zero bytes, the length as
// four bytes, big-endian, then that many bytes (Docker Engine API, "Attach to
// a container", "Stream format"). The package refuses streams it does not
// know, because after such a byte nothing can be trusted.
package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// headerSize is the size of what precedes every frame.
const headerSize = 8

// The first byte of a frame.
const (
	stdinFrame = iota
	stdoutFrame
	stderrFrame
	systemFrame // an error of the engine itself, as text
)

// ErrFormat is what Split's error wraps when the connection carries something
// else than frames.
var ErrFormat = errors.New("not a stream of an engine")

// Split reads frames from r until it ends and writes what they hold to stdout
// and stderr; errors of the engine go to stderr. It returns nil if r ends
// between two frames. It allocates nothing, whatever length a frame claims.
func Split(r *bufio.Reader, stdout, stderr io.Writer) error {
	for {
		header, err := r.Peek(headerSize)
		if err != nil {
			if errors.Is(err, io.EOF) && len(header) == 0 {
				return nil
			}
			return ended(err)
		}
		var to io.Writer
		switch header[0] {
		case stdinFrame, stdoutFrame:
			to = stdout
		case stderrFrame, systemFrame:
			to = stderr
		default:
			return fmt.Errorf("frame of stream %d: %w", header[0], ErrFormat)
		}
		length := int64(binary.BigEndian.Uint32(header[4:]))
		if _, err := r.Discard(headerSize); err != nil {
			return ended(err)
		}
		if err := pass(r, to, length); err != nil {
			return err
		}
	}
}

// pass writes n bytes of r from r's own buffer, as they come.
func pass(r *bufio.Reader, to io.Writer, n int64) error {
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return ended(err)
		}
		part, err := r.Peek(int(min(n, int64(r.Buffered()))))
		if err != nil {
			return ended(err)
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
		if _, err := r.Discard(len(part)); err != nil {
			return ended(err)
		}
		n -= int64(len(part))
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
