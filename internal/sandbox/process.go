package sandbox

import (
	"errors"
	"fmt"
	"io"
)

// ErrEngineFailed is what the error of a Start is, for errors.Is, if the engine
// could not be asked, or has no room. It says nothing about the container.
var ErrEngineFailed = errors.New("engine failed")

// A Process is a started container, joined to its stdio: Read yields its
// stdout, Write feeds its stdin.
//
// An engine's Start returns a Process once the container has started, or an
// error and leaves nothing behind: no container, network or volume.
//
// Read returns io.EOF when the container has closed its stdout or has gone.
// Read and Write may run at the same time, but not each with itself. Both
// fail once Close has begun.
//
// Close stops the container by the ladder of the MCP specification
// (basic/lifecycle, "Shutdown"): it closes stdin, waits, sends SIGTERM, waits
// again, sends SIGKILL, and removes what Start made. The waits are those of
// [Spec.Ladder]: 2 s and 3 s unless the Spec says otherwise. It returns when
// nothing is left. It may be called at any time, more than once and from
// several goroutines; every call waits for the end and returns the same error.
// It must be called even if the container went by itself.
type Process interface {
	io.ReadWriteCloser
	// ID is the engine's id of the container.
	ID() string
	// Done is closed when the container has exited and Exit is known.
	Done() <-chan struct{}
	// Exit says how the container ended. It is valid once Done is closed.
	Exit() Exit
	// Stderr returns the last lines of the container's stderr, at most 4 KiB.
	Stderr() string
}

// An Exit is how a container ended.
type Exit struct {
	// Code is the exit code; 128 + n after signal n.
	Code int
	// OutOfMemory reports that the engine saw the memory limit passed. Under
	// load it does not see it each time.
	OutOfMemory bool
	// Stopped reports that the engine was asked by somebody else to end it, as
	// dockgate stop does. A server that ends itself with a signal is not that.
	Stopped bool
	// Lost reports that the engine went away, so that Code is not known.
	Lost bool
	// Reason, if not empty, says how a server ended that is no container of
	// ours, as a phrase; the rest is then not known.
	Reason string
}

// String returns a phrase for an error: "exited with code 1".
func (e Exit) String() string {
	switch {
	case e.Reason != "":
		return "is not connected any more: " + e.Reason
	case e.OutOfMemory:
		return "ran out of memory"
	case e.Stopped:
		return "was stopped from outside"
	case e.Lost:
		return "was lost with the engine"
	case e.Code > 128 && e.Code < 128+65:
		return fmt.Sprintf("was ended by signal %d", e.Code-128)
	default:
		return fmt.Sprintf("exited with code %d", e.Code)
	}
}
