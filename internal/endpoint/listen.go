package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const unixPrefix = "unix:"

// SocketPath returns the path in an address "unix:PATH".
func SocketPath(address string) (path string, ok bool) { return strings.CutPrefix(address, unixPrefix) }

// Listen listens on "HOST:PORT" or "unix:PATH". A socket can be used by its
// owner alone, from the moment when it is there. One that a gateway has left
// behind is replaced; one that is in use is a
// [*InUseError], and an address that is taken is a [*TakenError].
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var network net.ListenConfig
	path, ok := SocketPath(address)
	if !ok {
		listener, err := network.Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &TakenError{Address: address}
		}
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", address, err)
		}
		return listener, nil
	}
	listener, err := listenUnix(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	return listener, nil
}

// A TakenError says that a program listens on an address already.
type TakenError struct{ Address string }

// Error names the address.
func (e *TakenError) Error() string {
	return fmt.Sprintf("listen on %s: the address is in use", e.Address)
}

// Hint says what can be done.
func (e *TakenError) Hint() string {
	return "another gateway or program listens there: use that one, stop it, or choose another port (0 is any that is free)"
}

// An InUseError says that somebody else listens on a socket.
type InUseError struct{ Path string }

// Error names the socket.
func (e *InUseError) Error() string { return e.Path + " is in use" }

// Hint says what can be done.
func (e *InUseError) Hint() string {
	return "another gateway listens there: use that one, stop it, or choose another path"
}

// A socket is a listener at a path. Its lock says that it lives.
type socket struct {
	*net.UnixListener
	path  string
	lock  *flock.Flock
	close sync.Once
	err   error
}

// listenUnix makes a socket in a folder that only its owner can enter, and
// moves it to its place when its mode is set: at no time can others connect.
func listenUnix(ctx context.Context, path string) (_ net.Listener, err error) {
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, &InUseError{Path: path}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := clear(ctx, path); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".dg")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	hidden := filepath.Join(folder, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(hidden, 0o600), os.Rename(hidden, path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &socket{UnixListener: listener, path: path, lock: lock}, nil
}

// clear removes a socket that nobody listens on, and nothing else.
func clear(ctx context.Context, path string) error {
	found, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.Mode()&os.ModeSocket == 0 {
		return errors.New("there is a file that is no socket")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(&InUseError{Path: path}, connection.Close())
	}
	if !refusedByNobody(err) {
		return err
	}
	return os.Remove(path)
}

// Close stops listening and removes the socket.
func (s *socket) Close() error {
	s.close.Do(func() {
		s.err = errors.Join(s.UnixListener.Close(), ignoreMissing(os.Remove(s.path)), s.lock.Close())
	})
	return s.err
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
