package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	// logSize is the size at which a log file is set aside.
	logSize = 5 << 20
	// logsKept is how many set-aside files there are of each server.
	logsKept = 2
)

// Logs returns the files that hold what the server's containers wrote to
// stderr, the oldest first. Files that do not exist are left out.
func (e *Engine) Logs(server string) ([]string, error) {
	name, err := e.logName(server)
	if err != nil {
		return nil, err
	}
	var found []string
	for n := logsKept; n >= 0; n-- {
		file := aside(name, n)
		switch _, err := os.Stat(file); {
		case err == nil:
			found = append(found, file)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, nil
}

func (e *Engine) logName(server string) (string, error) {
	if server == "" || filepath.Base(server) != server {
		return "", fmt.Errorf("server %q: not a name for a log file", server)
	}
	return filepath.Join(e.dir, "logs", server+".log"), nil
}

// aside is the name of the n-th older file; 0 is the file itself.
func aside(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, n)
}

// A logFile is what the containers of a server write to stderr, in a file that
// is set aside when it is full. It is shared by all containers of the server
// in this process, and may be shared with other processes.
type logFile struct {
	server string
	name   string
	users  int // under Engine.mu

	mu   sync.Mutex
	file *os.File
	size int64
	err  error // the first that occurred; writes go nowhere after it
}

// openLog returns the server's log file for one more user.
func (e *Engine) openLog(server string) (*logFile, error) {
	name, err := e.logName(server)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	log := e.logs[server]
	if log == nil {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		log = &logFile{server: server, name: name}
		if err := log.open(); err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		e.logs[server] = log
	}
	log.users++
	return log, nil
}

// closeLog gives the log file back. It returns the first error that a write
// met.
func (e *Engine) closeLog(log *logFile) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	log.users--
	if log.users > 0 {
		return nil
	}
	delete(e.logs, log.server)
	log.mu.Lock()
	defer log.mu.Unlock()
	if err := errors.Join(log.err, log.file.Close()); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return nil
}

func (l *logFile) open() error {
	file, err := os.OpenFile(l.name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends b. It never fails: a full disk of ours must not stop the
// container. The error is kept for closeLog.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return len(b), nil
	}
	if l.size+int64(len(b)) > logSize {
		if l.err = l.rotate(); l.err != nil {
			return len(b), nil
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	l.err = err
	return len(b), nil
}

// rotate sets the file aside and opens a new one, unless another process has
// just done so.
func (l *logFile) rotate() error {
	ours, err := l.file.Stat()
	if err != nil {
		return err
	}
	found, err := os.Stat(l.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && os.SameFile(ours, found) {
		for n := logsKept; n > 0; n-- {
			if err := os.Rename(aside(l.name, n-1), aside(l.name, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}
