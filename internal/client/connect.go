package client

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// An Outcome is what became of a configuration.
type Outcome string

// The outcomes. Created is a file that was not there; Removed one that was not
// there before it was connected; Restored one that is, byte for byte, what it
// was then.
const (
	Unchanged Outcome = "unchanged"
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Restored  Outcome = "restored"
	Removed   Outcome = "removed"
)

// A Change is what was done to a client's configuration.
type Change struct {
	Client  string  `json:"client"`
	Path    string  `json:"path"`
	Outcome Outcome `json:"outcome"`
	// Backup is the file as it was; empty if none was made.
	Backup string `json:"backup,omitempty"`
	// Next is what the user does so that the client sees the change.
	Next string `json:"next,omitempty"`
}

// A State is whether a client is connected.
type State struct {
	// Connected reports that the client's file has the entry.
	Connected bool
	// Err is why the file cannot be read.
	Err error
}

// State looks at a client's file.
func (c Client) State(path string) State {
	f, err := read(path)
	if err != nil {
		return State{Err: err}
	}
	entry, err := c.look(f.text)
	if err != nil {
		return State{Err: c.wrong(path, err)}
	}
	return State{Connected: entry != nil}
}

// wrong is the error of a file that cannot be read or edited.
func (c Client) wrong(path string, err error) error {
	return &FileError{Path: path, Line: lineIn(err), Problem: err.Error(), Client: c.Name}
}

// Connect puts the entry for a command into a client's file. It changes
// nothing if it is there. The error is a [*FileError] if the file is broken.
func (c Client) Connect(path string, command Command) (Change, error) {
	change := Change{Client: c.Name, Path: path, Outcome: Unchanged}
	f, err := read(path)
	if err != nil {
		return Change{}, err
	}
	entry, err := c.look(f.text)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	if has(entry, c.shape.fields(command)) {
		return change, nil
	}
	text, err := c.put(f.text, command)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	change.Outcome, change.Next = Created, c.Next
	if f.exists {
		change.Outcome = Changed
		// A backup from which this file differs by the entry alone is the better
		// one, and a file with nothing but the entry needs none.
		before, ok := c.original(f)
		if !ok {
			err = f.keep()
		}
		if err != nil {
			return Change{}, err
		}
		if !ok || before != nil {
			change.Backup = f.backup()
		}
	}
	return change, f.replace(text)
}

// Disconnect takes the entry out of a client's file. If nothing else in the
// file has changed since it was put in, the file is what it was before, and its
// backup goes; else the file as it was with the entry becomes the backup.
func (c Client) Disconnect(path string) (Change, error) {
	change := Change{Client: c.Name, Path: path, Outcome: Unchanged}
	f, err := read(path)
	if err != nil {
		return Change{}, err
	}
	entry, err := c.look(f.text)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	if entry == nil {
		return change, nil
	}
	change.Next = c.Next
	if before, ok := c.original(f); ok {
		if before == nil {
			change.Outcome = Removed
			return change, errors.Join(f.unchanged(), os.Remove(f.path))
		}
		change.Outcome = Restored
		if err := f.replace(before); err != nil {
			return Change{}, err
		}
		return change, os.Remove(f.backup())
	}
	text, err := c.take(f.text)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	if err := f.keep(); err != nil {
		return Change{}, err
	}
	change.Outcome, change.Backup = Changed, f.backup()
	return change, f.replace(text)
}

// original returns what a connected file was before it was connected: its
// backup, or nothing at all. It is known only if the entry is the one
// difference.
func (c Client) original(f file) (before []byte, ok bool) {
	before, err := os.ReadFile(f.backup())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, false
	}
	if entry, err := c.look(before); err != nil || entry != nil {
		return nil, false
	}
	now, err := c.take(f.text)
	if err != nil || bytes.Equal(now, f.text) {
		return nil, false
	}
	// The way there and back leaves what was made around the entry.
	there, err := c.put(before, Command{Program: "x"})
	if err != nil {
		return nil, false
	}
	back, err := c.take(there)
	if err != nil || !bytes.Equal(back, now) {
		return nil, false
	}
	if missing {
		return nil, true
	}
	return before, true
}
