package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

// The codes of failures that are ours, as clients, people and the record see them.
const (
	CodeToolNotFound  = "TOOL_NOT_FOUND"
	CodeTimeout       = "TOOL_EXECUTION_TIMEOUT"
	CodeExecution     = "TOOL_EXECUTION_ERROR"
	CodeConnection    = "SERVER_CONNECTION_ERROR"
	CodeConfiguration = "CONFIGURATION_ERROR"
	CodeValidation    = "VALIDATION_ERROR"
	// CodeArguments are arguments that do not fit the tool's schema.
	CodeArguments = "TOOL_VALIDATION_ERROR"
	// CodeDisabled is a tool that the rules disable.
	CodeDisabled = "TOOL_DISABLED"
	// CodeMemory is a server that passed its memory limit.
	CodeMemory = "OUT_OF_MEMORY"
	// CodeStarting is a pull or a start that takes longer than clients wait.
	CodeStarting = "SERVER_STARTING"
	// CodeAudit is a call refused because it could not be recorded.
	CodeAudit = "AUDIT_ERROR"
	// CodeQuota is a server for which there is no place, or not enough memory.
	CodeQuota = "QUOTA_EXCEEDED"
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

// Code says what kind of failure it is.
func (e *WaitingError) Code() string { return CodeStarting }

// A PatienceError is a call that was given up because it took longer than a
// client without a progress token waits.
type PatienceError struct {
	Server   string
	Patience time.Duration
}

// Error says how long the client waits.
func (e *PatienceError) Error() string {
	return fmt.Sprintf("server %q did not answer within the %v that a client without a progress token is taken to wait; the call was cancelled", e.Server, e.Patience)
}

// Code says what kind of failure it is.
func (e *PatienceError) Code() string { return CodeTimeout }

// Hint says what the user can do.
func (e *PatienceError) Hint() string {
	return "send a progress token with the call or, if the client waits longer without one, raise patience in the configuration"
}

// An UnknownItemError is a call for something the server does not have.
type UnknownItemError struct {
	Server string
	// Kind is "tool", "prompt" or "resource".
	Kind    string
	Item    string
	Nearest []string
	// Known are all that the server has, where they are known.
	Known []string
}

// UnknownTool is the answer to the name of a tool that a server does not have;
// known are those that it has.
func UnknownTool(server, name string, known []string) *UnknownItemError {
	return &UnknownItemError{Server: server, Kind: "tool", Item: name, Nearest: catalog.Nearest(name, known), Known: known}
}

// Error names the nearest.
func (e *UnknownItemError) Error() string {
	text := fmt.Sprintf("server %q has no %s %q", e.Server, e.Kind, e.Item)
	if len(e.Nearest) > 0 {
		text += "; nearest: " + strings.Join(e.Nearest, ", ")
	}
	if n := min(len(e.Known), maxNamed); n > 0 {
		text += "; it has: " + strings.Join(e.Known[:n], ", ")
		if n < len(e.Known) {
			text += fmt.Sprintf(" and %d more", len(e.Known)-n)
		}
	}
	return text
}

// maxNamed is how many names stand in the text of an error.
const maxNamed = 20

// Code says what kind of failure it is.
func (e *UnknownItemError) Code() string { return CodeToolNotFound }

// Details are the names, as many as a model can use.
func (e *UnknownItemError) Details() any {
	const most = 100
	return map[string]any{"nearest": e.Nearest, "tools": e.Known[:min(len(e.Known), most)]}
}

// A RecordError is a call that was refused, or whose answer is withheld,
// because it could not be recorded.
type RecordError struct {
	Err error
	// Withheld reports that the server had the call, and may have acted on it.
	Withheld bool
}

// Error says what became of the call, and gives the cause.
func (e *RecordError) Error() string {
	if e.Withheld {
		return fmt.Sprintf("%s: the call was made, but its answer is withheld, because the audit record failed: %v", CodeAudit, e.Err)
	}
	return fmt.Sprintf("%s: refused, because the audit record failed: %v", CodeAudit, e.Err)
}

// Code says what kind of failure it is.
func (e *RecordError) Code() string { return CodeAudit }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *RecordError) Hint() string {
	return "see what is wrong with the state folder: dockgate doctor"
}

// Code returns the code of a failure, or "" for a server's own answer.
func Code(err error) string {
	var (
		pending  *consent.PendingError
		denied   *consent.DeniedError
		coded    interface{ Code() string }
		expired  *fleet.TimeoutError
		full     *fleet.MemoryError
		noServer *catalog.UnknownServerError
		compile  *sandbox.CompileError
		settings *catalog.SettingsError
		missing  *secret.MissingError
		badFile  *secret.FileError
		cannot   *plan.UnsupportedError
		tooLong  *jsonrpc.LineError
		noAnswer *upstream.AnswerError
		noJSON   *jsonrpc.MessageError
	)
	switch {
	case err == nil, isAnswer(err):
		return ""
	case errors.As(err, &pending):
		return consent.CodePending
	case errors.As(err, &denied), errors.Is(err, ErrNobody), errors.Is(err, approval.ErrNotApproved):
		return consent.CodeDenied
	case errors.As(err, &coded):
		return coded.Code()
	case errors.As(err, &noServer):
		return CodeToolNotFound
	case errors.As(err, &compile), errors.As(err, &settings), errors.As(err, &missing), errors.As(err, &badFile), errors.As(err, &cannot):
		return CodeConfiguration
	case errors.As(err, &full):
		return CodeMemory
	case errors.As(err, &expired) && expired.Doing == "call":
		return CodeTimeout
	case errors.As(err, &noJSON):
		return CodeValidation
	case errors.As(err, &tooLong), errors.As(err, &noAnswer):
		return CodeExecution
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	default:
		return CodeConnection
	}
}

// isAnswer reports that an error is the server's own answer to the call, and
// not what it said when it was started.
func isAnswer(err error) bool {
	var start *fleet.StartError
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && !errors.As(err, &start)
}

// Failure turns an error of ours into a tools/call result that says so to the
// model, with what the user can do. A server's own error, and the end of the
// client's context, come back as they are.
func Failure(err error, ref tool.Ref) (json.RawMessage, error) {
	code := Code(err)
	if code == "" || code == CodeCancelled {
		return nil, err
	}
	text := err.Error()
	if !strings.HasPrefix(text, code) {
		text = code + ": " + text
	}
	failure := map[string]any{"code": code, "message": err.Error(), "tool": ref.Name}
	if ref.Server != "" {
		failure["server"] = ref.Server
	}
	if hint := advice(err, code); hint != "" {
		failure["hint"] = hint
		text += "\n" + hint
	}
	if more := details(err); more != nil {
		failure["details"] = more
	}
	return json.Marshal(map[string]any{
		"content":           []any{map[string]string{"type": "text", "text": text}},
		"structuredContent": map[string]any{"success": false, "error": failure},
		"isError":           true,
	})
}

// details returns what a program can use of an error, beside its text.
func details(err error) any {
	var detailed interface{ Details() any }
	var noServer *catalog.UnknownServerError
	switch {
	case errors.As(err, &detailed):
		return detailed.Details()
	case errors.As(err, &noServer):
		return map[string]any{"nearest": noServer.Nearest}
	}
	return nil
}

// advice returns the hint of an error for a model to pass on. What approves is
// for a person to know: a model gets no command to paste.
func advice(err error, code string) string {
	var hinted interface{ Hint() string }
	if code == consent.CodePending || code == consent.CodeDenied || !errors.As(err, &hinted) {
		return ""
	}
	return hinted.Hint()
}
