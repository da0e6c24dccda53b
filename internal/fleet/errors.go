package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// ErrClosed answers every order once the fleet closes.
var ErrClosed = errors.New("the gateway is stopping")

// ErrStopped is the end of a start that was given up on purpose.
var ErrStopped = errors.New("the start was given up")

// A StartError is a server that could not be started.
type StartError struct {
	Server string
	Err    error
	// Exit is how the container ended, if it did.
	Exit *sandbox.Exit
	// Stderr is the tail of what the server wrote there.
	Stderr string
}

// Error says why, how it ended and the last line that the server wrote.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start server %q: %v", e.Server, e.Err)
	if e.Exit != nil {
		text = fmt.Sprintf("start server %q: it %s before it answered", e.Server, e.Exit)
	}
	return text + said(e.Stderr)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *StartError) Hint() string {
	for _, sign := range []string{"EACCES", "EROFS", "Read-only file system", "Permission denied", "permission denied"} {
		if strings.Contains(e.Stderr, sign) {
			return "the server wants to write outside /tmp: give it a mount, or another user (see: dockgate plan " + e.Server + ")"
		}
	}
	return "see what it wrote: dockgate logs " + e.Server
}

// A LostError is a server that went away during a call.
type LostError struct {
	Server string
	Exit   sandbox.Exit
	Stderr string
}

// Error says how the server ended and the last line that it wrote.
func (e *LostError) Error() string {
	return fmt.Sprintf("server %q %s during the call", e.Server, e.Exit) + said(e.Stderr)
}

// Hint says what the user can do.
func (e *LostError) Hint() string {
	if e.Exit.OutOfMemory {
		return "raise limits.memory of " + e.Server
	}
	return "see what it wrote: dockgate logs " + e.Server
}

// A TimeoutError is a limit that passed.
type TimeoutError struct {
	Server string
	// Doing is "start" or "call".
	Doing string
	Limit time.Duration
}

// Error names the limit.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("server %q did not answer the %s within %v", e.Server, e.Doing, e.Limit)
}

// Hint names the setting.
func (e *TimeoutError) Hint() string {
	return fmt.Sprintf("raise timeouts.%s of %s, if it needs longer", e.Doing, e.Server)
}

// A BackoffError is a server that failed lately and is not started yet again.
type BackoffError struct {
	Server string
	// Wait is the time until it may be tried.
	Wait time.Duration
	Err  error
}

// Error says when to try again, and how it failed.
func (e *BackoffError) Error() string {
	return fmt.Sprintf("server %q failed and is not started again for %v: %v", e.Server, e.Wait.Round(time.Second), e.Err)
}

// Unwrap returns the failure.
func (e *BackoffError) Unwrap() error { return e.Err }

// said returns the last line of stderr as the end of an error.
func said(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	if stderr == "" {
		return ""
	}
	return ": " + stderr[strings.LastIndexByte(stderr, '\n')+1:]
}
