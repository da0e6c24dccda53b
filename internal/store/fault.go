package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dockgate/dockgate/internal/approval"
)

// An Error says that the state folder could not be read or written. What was
// committed before is still there.
type Error struct {
	Dir string
	Err error

	damaged bool
}

// Error returns the folder and the cause.
func (e *Error) Error() string { return fmt.Sprintf("state folder %s: %v", e.Dir, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what the user can do, or nothing.
func (e *Error) Hint() string {
	code := -1
	var failure *sqlite.Error
	if errors.As(e.Err, &failure) {
		code = failure.Code() & 0xff // without the extension
	}
	switch {
	case e.damaged || code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB:
		return fmt.Sprintf("the database is damaged: stop all gateways and move %s away; approvals are asked for again",
			filepath.Join(e.Dir, FileName))
	case code == sqlite3.SQLITE_FULL || errors.Is(e.Err, syscall.ENOSPC):
		return "the disk is full: free some space on it, or choose another folder with --state"
	case code == sqlite3.SQLITE_READONLY || code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_PERM ||
		errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.EROFS):
		return "make the folder writable for this user, or choose another with --state"
	case code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED:
		return "another process holds the database: look for a hanging dockgate, or a tool that has the file open"
	case code == sqlite3.SQLITE_IOERR:
		return "the disk reports an error, or is full; see the system's log"
	case errors.Is(e.Err, syscall.ENOTDIR) || errors.Is(e.Err, fs.ErrExist):
		return "the path is not a folder; choose another with --state"
	default:
		return ""
	}
}

// A NewerError says that a newer version of dockgate wrote the database.
type NewerError struct {
	Dir   string
	Found int64
	Known int64
}

// Error returns both versions.
func (e *NewerError) Error() string {
	return fmt.Sprintf("state folder %s: its database has version %d, this program knows %d", e.Dir, e.Found, e.Known)
}

// Hint returns what to do.
func (e *NewerError) Hint() string {
	return "update dockgate, or choose another state folder with --state"
}

// A NetworkError says that the state folder is on a file system that several
// kernels share, on which SQLite's locks and shared memory do not hold.
type NetworkError struct {
	Dir string
	// Kind is the file system's name, such as "nfs".
	Kind string
}

// Error returns the folder and the kind.
func (e *NetworkError) Error() string {
	return fmt.Sprintf("state folder %s is on a shared file system (%s), where locks do not hold", e.Dir, e.Kind)
}

// Hint returns what to do.
func (e *NetworkError) Hint() string {
	return "choose a folder on a local disk with --state; in a container, mount a named volume at /data"
}

// failed gives an error the folder and the hint, unless it is the caller's
// own.
func (db *DB) failed(err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, approval.ErrConflict),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return &Error{Dir: db.dir, Err: err}
	}
}
