package owner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// A Lease is the proof that a gateway lives: a lock on a file of its own,
// which the kernel frees however the gateway ends. Gateways in other
// containers that share the state folder see it too.
type Lease struct {
	// Owner is the gateway's id, in the labels of what is its own.
	Owner string

	file *flock.Flock
}

// owners is the folder of the lock files.
func owners(dir string) string { return filepath.Join(dir, "owners") }

// A hold is how a lease is locked: by its gateway alone, or by several
// processes that all say that it lives. A sweep takes neither over.
type hold func(*flock.Flock) (bool, error)

func alone(file *flock.Flock) (bool, error)  { return file.TryLock() }
func shared(file *flock.Flock) (bool, error) { return file.TryRLock() }

// Share makes a new owner for a gateway that is about to be started, and holds
// its lock until the gateway does so too, see [Hold].
func (b *Books) Share() (*Lease, error) { return takeLease(b.dir, shared) }

// Hold shows that the gateway lives whose container has this owner, until it is
// released. Its own process calls it first of all.
func Hold(dir, owner string) (release func() error, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if !isOwner(owner) {
		return nil, fmt.Errorf("%q is no owner", owner)
	}
	l := leaseOf(dir, owner)
	held, err := l.file.TryRLock()
	if err != nil {
		return nil, fmt.Errorf("lock of this gateway: %w", err)
	}
	if !held || !l.named() {
		return nil, errors.Join(errors.New("this gateway's container is being removed"), l.Unlock())
	}
	return l.Release, nil
}

// takeLease makes a new owner and locks its file.
func takeLease(dir string, how hold) (*Lease, error) {
	if err := os.MkdirAll(owners(dir), 0o700); err != nil {
		return nil, fmt.Errorf("lock of this gateway: %w", err)
	}
	for {
		l := leaseOf(dir, strings.ToLower(rand.Text()))
		taken, err := how(l.file)
		if err != nil {
			return nil, fmt.Errorf("lock of this gateway: %w", err)
		}
		// A sweep may have taken the new file between its creation and the
		// lock, and have removed it as one that nobody holds.
		if taken && l.named() {
			return l, nil
		}
		if err := l.Unlock(); err != nil {
			return nil, fmt.Errorf("lock of this gateway: %w", err)
		}
	}
}

func leaseOf(dir, id string) *Lease {
	return &Lease{Owner: id, file: flock.New(filepath.Join(owners(dir), id), flock.SetPermissions(0o600))}
}

// isOwner reports whether an id could be one of ours.
func isOwner(id string) bool {
	return id != "" && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// named reports whether the locked file is still the one in the folder.
func (l *Lease) named() bool {
	locked, err := l.file.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(l.file.Path())
	return err == nil && os.SameFile(locked, found)
}

// Unlock gives the lock up and leaves its file, for others that hold it or for
// a sweep.
func (l *Lease) Unlock() error { return l.file.Close() }

// Release gives the lock up and removes its file. The id is never used again,
// so it does not matter who finds the file in between.
func (l *Lease) Release() error {
	err := l.Unlock()
	if removed := os.Remove(l.file.Path()); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// takeOver returns the lease of an owner that is gone, or nil if it lives. An
// id that could not be one of ours is treated as living.
func takeOver(dir, id string) (*Lease, error) {
	if !isOwner(id) {
		return nil, nil
	}
	if err := os.MkdirAll(owners(dir), 0o700); err != nil {
		return nil, fmt.Errorf("lock of owner %s: %w", id, err)
	}
	l := leaseOf(dir, id)
	taken, err := l.file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock of owner %s: %w", id, err)
	}
	if !taken {
		return nil, l.Unlock()
	}
	return l, nil
}

// known returns the owners that have a lock file.
func known(dir string) ([]string, error) {
	entries, err := os.ReadDir(owners(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("locks of owners: %w", err)
	}
	ids := make([]string, 0, len(entries))
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids, nil
}
