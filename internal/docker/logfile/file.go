// Package logfile keeps what servers write to stderr, in files that grow no
// further than a bound.
//
// It decides when a file is set aside and which is given up: of each server a
// few are kept, all of them small. It refuses names of servers that are no names
// of files. A write never fails, because a full disk of ours must not stop a
// server; the error is told when the file is closed. Several processes may
// write and read the same files.
package logfile

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

// A Folder has the log files of a state folder's servers. All methods may be
// called from any goroutine.
type Folder struct {
	dir string

	mu   sync.Mutex
	open map[string]*File // by server, while it has users
}

// In returns the log files that are kept in a state folder. It makes nothing
// there.
func In(dir string) *Folder {
	return &Folder{dir: filepath.Join(dir, "logs"), open: make(map[string]*File)}
}

// Files returns the files that hold what the server's containers wrote to
// stderr, the oldest first. Files that do not exist are left out.
func (f *Folder) Files(server string) ([]string, error) {
	name, err := f.name(server)
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

func (f *Folder) name(server string) (string, error) {
	if server == "" || filepath.Base(server) != server {
		return "", fmt.Errorf("server %q: not a name for a log file", server)
	}
	return filepath.Join(f.dir, server+".log"), nil
}

// aside is the name of the n-th older file; 0 is the file itself.
func aside(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, n)
}

// A File is what the containers of a server write to stderr, in a file that
// is set aside when it is full. It is shared by all containers of the server
// in this process, and may be shared with other processes.
type File struct {
	folder *Folder
	server string
	name   string
	users  int // under Folder.mu

	mu   sync.Mutex
	file *os.File
	size int64
	err  error // the first that occurred; writes go nowhere after it
}

// Open returns the server's log file for one more user, who closes it.
func (f *Folder) Open(server string) (*File, error) {
	name, err := f.name(server)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.open[server]
	if log == nil {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		log = &File{folder: f, server: server, name: name}
		if err := log.open(); err != nil {
			return nil, fmt.Errorf("log file: %w", err)
		}
		f.open[server] = log
	}
	log.users++
	return log, nil
}

// Close gives the log file back; the last of its users closes it. That one is
// told of the first error that a write met.
func (l *File) Close() error {
	l.folder.mu.Lock()
	defer l.folder.mu.Unlock()
	l.users--
	if l.users > 0 {
		return nil
	}
	delete(l.folder.open, l.server)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.err, l.file.Close()); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return nil
}

func (l *File) open() error {
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
// container. The error is kept for Close.
func (l *File) Write(b []byte) (int, error) {
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
func (l *File) rotate() error {
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
