package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/native"
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
		return nil, nil, fmt.Errorf("own catalog: %w", err)
	}
	return after, kept, nil
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
