package raw

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Frames reads what a container writes to its stdout from the connection of
// an attach, which carries stdout and stderr in frames of an eight byte header
// and its payload. Stderr is dropped. It adds no goroutine and no copy, so it
// is the floor that everything else is measured against.
type Frames struct {
	// From is the connection.
	From *bufio.Reader

	left int
}

const (
	stdoutFrame = 1
	stderrFrame = 2
	headerSize  = 8
)

// Read reads a part of one frame.
func (f *Frames) Read(b []byte) (int, error) {
	for f.left == 0 {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.From.Read(b[:min(len(b), f.left)])
	f.left -= n
	return n, err
}

func (f *Frames) open() error {
	header, err := f.From.Peek(headerSize)
	if err != nil {
		if len(header) > 0 {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	length := int(binary.BigEndian.Uint32(header[4:]))
	stream := header[0]
	if _, err := f.From.Discard(headerSize); err != nil {
		return err
	}
	switch stream {
	case stdoutFrame:
		f.left = length
		return nil
	case stderrFrame:
		_, err := f.From.Discard(length)
		return err
	default:
		return fmt.Errorf("frame of stream %d: not the connection of an attach", stream)
	}
}
