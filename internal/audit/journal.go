package audit

import (
	"errors"
	"fmt"
	"sync"
)

// maxWriters bounds how many processes of one state folder keep records at once.
const maxWriters = 100

// A Journal is the record that one process keeps. It begins with its first
// entry, because commands that only look leave no trace, or with Open.
type Journal struct {
	// Dir is the folder of the record.
	Dir string

	mu     sync.Mutex
	writer *Writer // nil before the first entry
	closed bool
}

// Open begins the record under the first name that no other process of this
// state folder uses now.
func (j *Journal) Open() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open()
}

func (j *Journal) open() error {
	if j.closed {
		return ErrClosed
	}
	for n := 1; j.writer == nil; n++ {
		writer, err := Open(Options{Dir: j.Dir, Gateway: fmt.Sprintf("gateway-%d", n)})
		var locked *LockedError
		if errors.As(err, &locked) && n < maxWriters {
			continue
		}
		if err != nil {
			return err
		}
		j.writer = writer
	}
	return nil
}

// Append adds an entry.
func (j *Journal) Append(entry Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.open(); err != nil {
		return err
	}
	return j.writer.Append(entry)
}

// Close ends the record.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if j.writer == nil {
		return nil
	}
	return j.writer.Close()
}
