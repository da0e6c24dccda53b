package client

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile is how long a configuration may be, in bytes. One client keeps its
// history in it.
const maxFile = 64 << 20

// backupSuffix is what the name of a backup ends with, so that no client takes
// it for a configuration.
const backupSuffix = ".dockgate-backup"

// A FileError is a configuration that was left as it is.
type FileError struct {
	Path string
	// Line is 1-based; 0 where it is not known.
	Line    int
	Problem string
	Client  string
}

// Error returns "file:line: problem".
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Problem)
	}
	return e.Path + ": " + e.Problem
}

// Hint says how to go on.
func (e *FileError) Hint() string {
	return "the file was left as it is; correct it, or put in by hand what this prints: dockgate connect " + e.Client + " --print"
}

// A file is a configuration as it was read.
type file struct {
	// path is the file itself, with every link followed.
	path   string
	text   []byte
	exists bool
	info   fs.FileInfo // of the file, if it exists
}

// read reads a configuration. One that does not exist is empty.
func read(path string) (file, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, dangling := os.Lstat(path); dangling == nil {
			return file{}, fmt.Errorf("%s is a link to a file that does not exist", path)
		}
		return file{path: path}, nil
	}
	if err != nil {
		return file{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return file{}, fmt.Errorf("%s is no file of at most %d MB", path, maxFile>>20)
	}
	text, err := os.ReadFile(real) //nolint:gosec // the user's own, by a path that they named or that is fixed
	if err != nil {
		return file{}, err
	}
	return file{path: real, text: text, exists: true, info: info}, nil
}

// backup is where the file is kept as it was.
func (f file) backup() string { return f.path + backupSuffix }

// ErrChanged says that the client has written its configuration meanwhile.
var ErrChanged = errors.New("was changed by somebody else at the same moment; try again")

// unchanged returns an error if the file is not any more what was read.
func (f file) unchanged() error {
	now, err := read(f.path)
	if err != nil {
		return err
	}
	if now.exists != f.exists || !bytes.Equal(now.text, f.text) {
		return fmt.Errorf("%s: %w", f.path, ErrChanged)
	}
	return nil
}

// replace writes the file as a whole, with the mode and the owner it had.
func (f file) replace(text []byte) error {
	if err := f.write(f.path, text, f.unchanged); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// keep writes the backup.
func (f file) keep() error {
	if err := f.write(f.backup(), f.text, func() error { return nil }); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// write writes a file beside the configuration and puts it at path, if check
// has nothing against it by then.
func (f file) write(path string, text []byte, check func() error) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	placed := false
	defer func() {
		if !placed {
			err = errors.Join(err, os.Remove(fresh.Name()))
		}
	}()
	_, err = fresh.Write(text)
	if err == nil && f.exists {
		err = likeness(fresh, f.info)
	}
	if err == nil {
		err = fresh.Sync()
	}
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if err := os.Rename(fresh.Name(), path); err != nil {
		return err
	}
	placed = true
	return nil
}
