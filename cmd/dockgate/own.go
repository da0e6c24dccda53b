package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/native"
	"github.com/dockgate/dockgate/internal/outside"
)

// ownOrigin is where the entries of the user's own catalog are from.
func ownOrigin(path string) catalog.Origin {
	return catalog.Origin{Catalog: path, Kind: catalog.User}
}

// addToOwn adds entries to the user's own catalog, and returns what it is then.
// Of entries whose name it has already it changes none, and returns the names.
func addToOwn(path string, entries []catalog.Server) (after []byte, kept []string, err error) {
	before, err := os.ReadFile(path) //nolint:gosec // the user's own folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("own catalog: %w", err)
	}
	after, kept, err = native.Add(ownOrigin(path), before, entries)
	if err != nil || bytes.Equal(before, after) || len(kept) == len(entries) {
		return after, kept, err
	}
	if err := replaceFile(path, after); err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
			_, inside := outside.Read(os.LookupEnv)
			return nil, nil, &unwritableError{path: path, inside: inside, err: err}
		}
		return nil, nil, fmt.Errorf("own catalog: %w", err)
	}
	return after, kept, nil
}

// An unwritableError says that the user's own catalog cannot be written.
type unwritableError struct {
	path   string
	inside bool // a container that has the home folder of its host
	err    error
}

func (e *unwritableError) Error() string {
	return fmt.Sprintf("own catalog %s cannot be written: %v", e.path, e.err)
}

func (e *unwritableError) Unwrap() error { return e.err }

// Hint says how to write it all the same.
func (e *unwritableError) Hint() string {
	folder := filepath.Dir(e.path)
	if !e.inside {
		return "make " + folder + " writable for you, or name another folder with XDG_CONFIG_HOME"
	}
	return fmt.Sprintf(`this container may only read your home folder; on the host run: mkdir -p %[1]s; then this command again with -u "$(id -u):$(id -g)" -v %[1]s:%[1]s after "docker run"`, quote(folder))
}

// replaceFile writes a file so that it is the old one or the new one, whatever
// happens.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(filepath.Dir(path), ".servers-*.yaml")
	if err != nil {
		return err
	}
	_, err = made.Write(data)
	err = errors.Join(err, made.Sync(), made.Close())
	if err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made.Name()))
	}
	return nil
}
