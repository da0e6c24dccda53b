package consent

import (
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/approval"
)

// The codes with which refusals begin, for models and programs.
const (
	CodePending = "APPROVAL_PENDING"
	CodeDenied  = "APPROVAL_DENIED"
)

// ErrNotListed is what [Desk.RequireTool] returns for a server whose tools were
// never listed, so that none is pinned.
var ErrNotListed = errors.New("the server's tools were never listed")

// A PendingError says that a person has not decided yet. Its text is for the
// model: it names the command that the user runs, and nothing to paste.
type PendingError struct {
	// ID is the question's, or empty if it was replaced meanwhile.
	ID     string
	Server string
	// Tool is set when the question is about a tool of an approved server.
	Tool string
	// Call reports that it is about one call of the tool.
	Call bool
	// State is why it waits: [approval.Missing], [approval.Changed] or [approval.Expired].
	State approval.State
}

// Error returns the code and what to tell the user.
func (e *PendingError) Error() string {
	text := fmt.Sprintf("%s: %s waits for approval", CodePending, subject(e.Server, e.Tool))
	if e.Call {
		text = fmt.Sprintf("%s: this call of %s waits for approval", CodePending, subject(e.Server, e.Tool))
	}
	switch e.State {
	case approval.Changed:
		text += " because it changed since it was approved"
	case approval.Expired:
		text += " because its approval expired"
	case approval.Missing, approval.Approved, approval.Denied:
	}
	text += "; ask the user to run dockgate approve"
	if e.ID != "" {
		text += " (question " + e.ID + ")"
	}
	return text
}

// Hint returns the command for the user.
func (e *PendingError) Hint() string { return "run dockgate approve " + e.Server }

// A DeniedError says that a server or a tool may not be used.
type DeniedError struct {
	// ID is the question that was denied, or empty if none was asked.
	ID     string
	Server string
	Tool   string
	// Call reports that it is about one call of the tool.
	Call   bool
	Reason string
}

// Error returns the code and the reason.
func (e *DeniedError) Error() string {
	text := fmt.Sprintf("%s: %s may not be used: %s", CodeDenied, subject(e.Server, e.Tool), e.Reason)
	if e.ID != "" {
		text += " (question " + e.ID + ")"
	}
	return text
}

// Hint returns how the user can change it.
func (e *DeniedError) Hint() string {
	if e.Call {
		return fmt.Sprintf("which rule has it confirmed is shown by dockgate explain %s %s", e.Server, e.Tool)
	}
	return "to allow it, run dockgate approve " + e.Server
}

func subject(server, tool string) string {
	if tool == "" {
		return fmt.Sprintf("%q", server)
	}
	return fmt.Sprintf("tool %q of %q", tool, server)
}
