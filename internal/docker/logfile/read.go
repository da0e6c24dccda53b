package logfile

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
)

// logPoll is how often Follow looks for new lines. Files are read rather
// than watched: it works on every file system, and across containers.
const logPoll = 250 * time.Millisecond

// Read returns the last n lines that containers of the server wrote to
// stderr, the oldest first; all that are kept if n is negative.
func (f *Folder) Read(server string, n int) ([]string, error) {
	lines, tail, err := f.keptLines(server)
	if err != nil {
		return nil, err
	}
	if tail.partial != "" {
		lines = append(lines, tail.partial)
	}
	return lastOf(lines, n), tail.close()
}

// Follow yields what Read returns, but for a line without an end, and
// then each new line, until ctx ends or the caller has enough. An error is the
// last thing it yields. Lines of a file that is set aside twice within a
// moment may be missed.
func (f *Folder) Follow(ctx context.Context, server string, n int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines, tail, err := f.keptLines(server)
		if err != nil {
			yield("", err)
			return
		}
		defer func() { _ = tail.close() }() // it was only read
		ticker := time.NewTicker(logPoll)
		defer ticker.Stop()
		for lines = lastOf(lines, n); ; lines, err = tail.read() {
			for _, line := range lines {
				if !yield(line, nil) {
					return
				}
			}
			if err != nil {
				yield("", err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}

func lastOf(lines []string, n int) []string {
	if n >= 0 && len(lines) > n {
		return lines[len(lines)-n:]
	}
	return lines
}

// keptLines returns all complete lines that are kept, and what goes on reading
// after them. The caller closes it, unless there is an error.
func (f *Folder) keptLines(server string) ([]string, *logTail, error) {
	name, err := f.name(server)
	if err != nil {
		return nil, nil, err
	}
	var lines []string
	for older := logsKept; older > 0; older-- {
		found, err := os.ReadFile(aside(name, older))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if len(found) > 0 {
			lines = append(lines, strings.Split(strings.TrimSuffix(string(found), "\n"), "\n")...)
		}
	}
	tail := &logTail{name: name}
	newest, err := tail.read()
	if err != nil {
		return nil, nil, errors.Join(err, tail.close())
	}
	return append(lines, newest...), tail, nil
}

// A logTail reads a log file as it grows, and the one that takes its place.
type logTail struct {
	name    string
	file    *os.File // nil until there is one
	reader  *bufio.Reader
	partial string // a line that has no end yet
}

// read returns the lines that are complete since the last read.
func (t *logTail) read() ([]string, error) {
	var lines []string
	for {
		if t.file == nil {
			file, err := os.Open(t.name)
			if errors.Is(err, fs.ErrNotExist) {
				return lines, nil
			}
			if err != nil {
				return lines, err
			}
			t.file, t.reader = file, bufio.NewReader(file)
		}
		// Before the lines are read, so that none is written in between.
		replaced, err := t.replaced()
		if err != nil {
			return lines, err
		}
		found, err := t.drain()
		lines = append(lines, found...)
		if err != nil || !replaced {
			return lines, err
		}
		if t.partial != "" {
			lines = append(lines, t.partial)
		}
		if err := t.close(); err != nil {
			return lines, err
		}
	}
}

func (t *logTail) drain() ([]string, error) {
	var lines []string
	for {
		text, err := t.reader.ReadString('\n')
		t.partial += text
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, strings.TrimSuffix(t.partial, "\n"))
		t.partial = ""
	}
}

// replaced reports whether the file was set aside and another one is there.
func (t *logTail) replaced() (bool, error) {
	found, err := os.Stat(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // about to be made again
	}
	if err != nil {
		return false, err
	}
	ours, err := t.file.Stat()
	return err == nil && !os.SameFile(ours, found), err
}

func (t *logTail) close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file, t.partial = nil, ""
	return err
}
