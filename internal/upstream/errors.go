package upstream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// ErrClosed is why a session ended that was closed by its owner.
var ErrClosed = errors.New("session closed")

// A LostError is a call without an answer because the conversation ended.
type LostError struct {
	// Delivered reports that the request was written, or may have been, so
	// that the server may have acted on it. A request that was not delivered
	// can be sent again to another process.
	Delivered bool
	// Err is why the conversation ended.
	Err error
}

// Error says that the connection was lost, and why.
func (e *LostError) Error() string {
	if e.Delivered {
		return "connection lost before the answer: " + e.Err.Error()
	}
	return "connection lost before the request was sent: " + e.Err.Error()
}

// Unwrap returns why the conversation ended.
func (e *LostError) Unwrap() error { return e.Err }

// A ProbeError is a server that was asked for its era and then ended the
// conversation, or refused to begin one. A fresh process that is not asked,
// but connected to with Era: [Legacy], may do better.
type ProbeError struct{ Err error }

// Error says what came of the probe.
func (e *ProbeError) Error() string { return "probe for the protocol era: " + e.Err.Error() }

// Unwrap returns what came of the probe.
func (e *ProbeError) Unwrap() error { return e.Err }

// A VersionError is a server that speaks no protocol version known here.
type VersionError struct {
	// Offered are the versions that the server named.
	Offered []string
}

// Error names the versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("unknown protocol version %s", strings.Join(e.Offered, ", "))
}

// An AnswerError is an answer that cannot be read: it is not JSON-RPC 2.0.
type AnswerError struct{ Problem string }

// Error says what is wrong with it.
func (e *AnswerError) Error() string { return "its answer is not JSON-RPC 2.0: " + e.Problem }

// errNoAnswer is a response that has neither a result nor an error.
var errNoAnswer = errors.New("response without result or error")

func errInternal() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}
