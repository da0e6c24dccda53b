package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// ErrClosed answers every order once the fleet closes.
var ErrClosed = errors.New("the gateway is stopping")

// The reasons for which a server is ended, for errors.Is.
var (
	// ErrStopped is the end of a start or a call whose server was stopped on
	// purpose.
	ErrStopped = errors.New("it was stopped")
	// ErrStoppedOutside is the end of a server that another process has stopped
	// at the engine.
	ErrStoppedOutside = errors.New("it was stopped from outside, as dockgate stop does")
	// ErrSilent is the end of a server that answered neither a call nor a ping.
	ErrSilent = errors.New("it answered neither a call nor a ping, and was stopped")
)

// A StartError is a server that could not be started.
type StartError struct {
	Server string
	Err    error
	// Exit is how the container ended, if it did so by itself.
	Exit *sandbox.Exit
	// Stderr is the tail of what the server wrote there.
	Stderr string
}

// Error says why, or how it ended, and the last line that the server wrote.
func (e *StartError) Error() string {
	var late *TimeoutError
	var full *MemoryError
	text := fmt.Sprintf("start server %q: %v", e.Server, e.Err)
	switch {
	case errors.As(e.Err, &full):
		return full.Error()
	case e.Exit != nil && e.Exit.Reason == "":
		text = fmt.Sprintf("start server %q: it %s before it answered", e.Server, e.Exit)
	case errors.As(e.Err, &late):
		text = late.Error()
	}
	return text + said(e.Stderr)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Hint says what the user can do: about what the server complained of, else
// about the cause, else where to look.
func (e *StartError) Hint() string {
	for _, sign := range []string{"EACCES", "EROFS", "Read-only file system", "Permission denied", "permission denied"} {
		if strings.Contains(e.Stderr, sign) {
			return "the server wants to write outside /tmp: give it a mount, or another user (see: dockgate plan " + e.Server + ")"
		}
	}
	var hinted interface{ Hint() string }
	var full *MemoryError
	switch {
	case errors.As(e.Err, &hinted):
		return hinted.Hint()
	case errors.Is(e.Err, ErrStopped), errors.Is(e.Err, ErrStoppedOutside), errors.As(e.Err, &full):
		return ""
	case e.Exit != nil:
		return afterExit(e.Server, *e.Exit)
	default:
		return seeLogs(e.Server)
	}
}

func seeLogs(server string) string { return "see what it wrote: dockgate logs " + server }

// killed is 128 + SIGKILL.
const killed = 137

// afterExit is a hint for a server that went by itself. An engine under load
// misses some of the kernel's reports of memory that ran out.
func afterExit(server string, exit sandbox.Exit) string {
	if exit.Reason != "" { // nothing of it is here to be seen
		return ""
	}
	if exit.Code == killed {
		return "the kernel kills what passes its memory limit: if it needs more, raise limits.memory of " + server + "; " + seeLogs(server)
	}
	return seeLogs(server)
}

// A LostError is a server that went away during a call.
type LostError struct {
	Server string
	// Why is [ErrStopped], [ErrExpired] or [ErrSilent] if the fleet ended it,
	// [ErrStoppedOutside] if another process did, a [*MemoryError] if the kernel
	// did; nil if it went by itself.
	Why error
	// Exit and Stderr say how it went by itself.
	Exit   sandbox.Exit
	Stderr string
}

// Error says how the server ended and the last line that it wrote.
func (e *LostError) Error() string {
	var full *MemoryError
	if errors.As(e.Why, &full) {
		return full.Error()
	}
	if e.Why != nil {
		return fmt.Sprintf("server %q: %v", e.Server, e.Why)
	}
	return fmt.Sprintf("server %q %s", e.Server, e.Exit) + said(e.Stderr)
}

// Unwrap returns why the server was ended, or nil.
func (e *LostError) Unwrap() error { return e.Why }

// Hint says what the user can do.
func (e *LostError) Hint() string {
	var full *MemoryError
	switch {
	case errors.Is(e.Why, ErrStopped), errors.Is(e.Why, ErrStoppedOutside), errors.Is(e.Why, ErrExpired), errors.As(e.Why, &full):
		return ""
	case e.Why == nil:
		return afterExit(e.Server, e.Exit)
	default:
		return seeLogs(e.Server)
	}
}

// A TimeoutError is a limit that passed.
type TimeoutError struct {
	Server string
	// Doing is "start", "list" or "call".
	Doing string
	// Setting is the timeout of the entry that passed: "start", "list",
	// "call" or "call_max"; or the quota "max_call".
	Setting string
	Limit   time.Duration
}

// Error names the limit.
func (e *TimeoutError) Error() string {
	if e.Doing == "list" {
		return fmt.Sprintf("server %q did not list what it offers within %v", e.Server, e.Limit)
	}
	return fmt.Sprintf("server %q did not answer the %s within %v", e.Server, e.Doing, e.Limit)
}

// Hint names the setting.
func (e *TimeoutError) Hint() string {
	if e.Setting == "max_call" {
		return "raise quotas.max_call, if calls need longer"
	}
	return fmt.Sprintf("raise timeouts.%s of %s, if it needs longer", e.Setting, e.Server)
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
	wait := max(e.Wait.Round(time.Second), time.Second)
	return fmt.Sprintf("server %q failed and is not started again for %v: %v", e.Server, wait, e.Err)
}

// Unwrap returns the failure.
func (e *BackoffError) Unwrap() error { return e.Err }

// said returns the last line of stderr as the end of an error, without what a
// terminal would obey.
func said(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	last := strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, stderr[strings.LastIndexByte(stderr, '\n')+1:])
	if last == "" {
		return ""
	}
	return ": " + last
}
