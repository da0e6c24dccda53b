package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/tool"
)

// The codes of failures that are ours, as clients, people and the record see them.
const (
	CodeToolNotFound  = "TOOL_NOT_FOUND"
	CodeTimeout       = "TOOL_EXECUTION_TIMEOUT"
	CodeExecution     = "TOOL_EXECUTION_ERROR"
	CodeConnection    = "SERVER_CONNECTION_ERROR"
	CodeConfiguration = "CONFIGURATION_ERROR"
	CodeValidation    = "VALIDATION_ERROR"
	// CodeStarting is a pull or a start that takes longer than clients wait.
	CodeStarting = "SERVER_STARTING"
	// CodeAudit is a call refused because it could not be recorded.
	CodeAudit = "AUDIT_ERROR"
	// CodeCancelled is a call that its client gave up.
	CodeCancelled = "CANCELLED"
)

// ErrNobody refuses a call without a principal.
var ErrNobody = errors.New("a call by nobody")

// A WaitingError is an answer given in time to a call whose server is not
// ready: what it waits for goes on.
type WaitingError struct {
	Server string
	// Doing is "pulling" or "starting".
	Doing string
}

// Error says that the work goes on.
func (e *WaitingError) Error() string {
	return fmt.Sprintf("%s: still %s %q; this goes on, call again in a moment", CodeStarting, e.Doing, e.Server)
}

// An UnknownItemError is a call for something the server does not have.
type UnknownItemError struct {
	Server string
	// Kind is "tool", "prompt" or "resource".
	Kind    string
	Item    string
	Nearest []string
}

// Error names the nearest.
func (e *UnknownItemError) Error() string {
	text := fmt.Sprintf("server %q has no %s %q", e.Server, e.Kind, e.Item)
	if len(e.Nearest) > 0 {
		text += "; nearest: " + strings.Join(e.Nearest, ", ")
	}
	return text
}

// Hint says how to see what there is.
func (e *UnknownItemError) Hint() string { return "see what it has: dockgate tools " + e.Server }

// A RecordError is a call that was refused, or whose answer is withheld,
// because it could not be recorded.
type RecordError struct{ Err error }

// Error gives the cause.
func (e *RecordError) Error() string {
	return fmt.Sprintf("%s: refused, because the audit record failed: %v", CodeAudit, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *RecordError) Hint() string {
	return "see what is wrong with the state folder: dockgate doctor"
}

// Code returns the code of a failure, or "" for a server's own answer.
func Code(err error) string {
	var (
		answer   *jsonrpc.Error
		pending  *approval.PendingError
		denied   *approval.DeniedError
		waiting  *WaitingError
		unknown  *UnknownItemError
		record   *RecordError
		expired  *fleet.TimeoutError
		noServer *catalog.UnknownServerError
		compile  *sandbox.CompileError
		settings *catalog.SettingsError
		missing  *secret.MissingError
		cannot   *plan.UnsupportedError
	)
	switch {
	case err == nil, errors.As(err, &answer):
		return ""
	case errors.As(err, &pending):
		return approval.CodePending
	case errors.As(err, &denied):
		return approval.CodeDenied
	case errors.As(err, &waiting):
		return CodeStarting
	case errors.As(err, &record):
		return CodeAudit
	case errors.As(err, &unknown), errors.As(err, &noServer):
		return CodeToolNotFound
	case errors.As(err, &compile), errors.As(err, &settings), errors.As(err, &missing), errors.As(err, &cannot):
		return CodeConfiguration
	case errors.As(err, &expired) && expired.Doing == "call":
		return CodeTimeout
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	default:
		return CodeConnection
	}
}

// Failure turns an error of ours into a tools/call result that says so to the
// model. A server's own error, and the end of the client's context, come back
// as they are.
func Failure(err error, ref tool.Ref) (json.RawMessage, error) {
	code := Code(err)
	if code == "" || code == CodeCancelled {
		return nil, err
	}
	text := err.Error()
	if !strings.HasPrefix(text, code) {
		text = code + ": " + text
	}
	failure := map[string]string{"code": code, "message": err.Error(), "tool": ref.Name}
	if ref.Server != "" {
		failure["server"] = ref.Server
	}
	return json.Marshal(map[string]any{
		"content":           []any{map[string]string{"type": "text", "text": text}},
		"structuredContent": map[string]any{"success": false, "error": failure},
		"isError":           true,
	})
}
