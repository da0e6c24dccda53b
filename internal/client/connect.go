package client

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
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
	// PutBack are the servers that had been moved and are in the file again.
	PutBack []string `json:"put_back,omitempty"`
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
	entry, err := c.look(f.text, Entry)
	if err != nil {
		return State{Err: c.wrong(path, err)}
	}
	return State{Connected: entry != nil}
}

// wrong is the error of a file that cannot be read or edited.
func (c Client) wrong(path string, err error) error {
	return &FileError{Path: path, Line: lineIn(err), Problem: err.Error(), Client: c.Name}
}

// Connect puts the entry for a command into a client's file, and takes out the
// servers of some names, which are kept beside it. It changes nothing if the
// file is so. The error is a [*FileError] if the file is broken.
func (c Client) Connect(path string, command Command, move ...string) (Change, error) {
	change := Change{Client: c.Name, Path: path, Outcome: Unchanged}
	f, err := read(path)
	if err != nil {
		return Change{}, err
	}
	entry, err := c.look(f.text, Entry)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	text := f.text
	if !has(entry, c.shape.fields(command)) {
		if text, err = c.renew(text, entry, command); err != nil {
			return Change{}, c.wrong(path, err)
		}
	}
	gone, err := f.moved()
	if err != nil {
		return Change{}, err
	}
	left, now, err := c.move(text, move, slices.Clone(gone))
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	moves := !bytes.Equal(left, text)
	if text = left; f.exists && bytes.Equal(text, f.text) {
		return change, nil
	}
	change.Outcome, change.Next = Created, c.Next
	if f.exists {
		change.Outcome = Changed
		if change.Backup, err = c.preserve(f, gone); err != nil {
			return Change{}, err
		}
	}
	if moves {
		if err := f.keepMoved(now); err != nil {
			return Change{}, err
		}
	}
	return change, f.replace(text)
}

// preserve makes sure that there is a backup, and returns its path. A backup
// from which the file differs by what was done here alone is the better one,
// and a file that was made here needs none.
func (c Client) preserve(f file, gone []moved) (backup string, err error) {
	before, ok := c.original(f, gone)
	if !ok {
		return f.backup(), f.keep()
	}
	if before == nil {
		return "", nil
	}
	return f.backup(), nil
}

// Disconnect takes the entry out of a client's file and puts back what was
// moved. If nothing else in the file has changed since, the file is what it was
// before, and its backup goes; else the file as it was with the entry becomes
// the backup.
func (c Client) Disconnect(path string) (Change, error) {
	change := Change{Client: c.Name, Path: path, Outcome: Unchanged}
	f, err := read(path)
	if err != nil {
		return Change{}, err
	}
	entry, err := c.look(f.text, Entry)
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	gone, err := f.moved()
	if err != nil {
		return Change{}, err
	}
	if entry == nil && len(gone) == 0 {
		return change, nil
	}
	change.Next = c.Next
	for _, m := range gone {
		change.PutBack = append(change.PutBack, m.Name)
	}
	if before, ok := c.original(f, gone); ok {
		if before == nil {
			change.Outcome = Removed
			return change, errors.Join(f.unchanged(), os.Remove(f.path))
		}
		change.Outcome = Restored
		if err := f.replace(before); err != nil {
			return Change{}, err
		}
		return change, errors.Join(os.Remove(f.backup()), f.forgetMoved())
	}
	text, err := c.take(f.text, Entry)
	for _, m := range gone {
		if err == nil {
			text, err = c.putBack(text, m.Name, m.Raw)
		}
	}
	if err != nil {
		return Change{}, c.wrong(path, err)
	}
	if err := f.keep(); err != nil {
		return Change{}, err
	}
	change.Outcome, change.Backup = Changed, f.backup()
	if err := f.replace(text); err != nil {
		return Change{}, err
	}
	return change, f.forgetMoved()
}

// original returns what a connected file was before it was connected: its
// backup, or nothing at all. It is known only if what was done here is the one
// difference.
func (c Client) original(f file, gone []moved) (before []byte, ok bool) {
	before, err := os.ReadFile(f.backup())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, false
	}
	if entry, err := c.look(before, Entry); err != nil || entry != nil {
		return nil, false
	}
	now, err := c.take(f.text, Entry)
	if err != nil || bytes.Equal(now, f.text) {
		return nil, false
	}
	// The way there and back leaves what was made around the entry.
	there, err := c.put(before, Command{Program: "x"})
	for _, m := range gone {
		if err == nil {
			there, err = c.take(there, m.Name)
		}
	}
	if err != nil {
		return nil, false
	}
	back, err := c.take(there, Entry)
	if err != nil || !bytes.Equal(back, now) {
		return nil, false
	}
	if missing {
		return nil, true
	}
	return before, true
}
