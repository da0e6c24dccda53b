package door

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrNoEvents is a server that sends nothing by itself.
var ErrNoEvents = errors.New("no stream of the server's own messages")

// errRefreshed is a server that did not take the token, but may take the new one.
var errRefreshed = errors.New("the login was refreshed")

// A StatusError is a refusal in the words of HTTP alone.
type StatusError struct {
	// Code is the status code.
	Code int
}

// Error names the status.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the remote server answered %d %s", e.Code, http.StatusText(e.Code)))
}

// Hint says what the user can do.
func (e *StatusError) Hint() string {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return "the server does not accept the secrets it is given, or needs others; see the entry's headers with: dockgate plan"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "check the entry's URL and transport"
	}
	return ""
}

// An OriginError is a request that would have gone to another place than the
// one that was approved: by a redirect, or because the server said so.
type OriginError struct {
	// Approved and Other are "scheme://host".
	Approved, Other string
}

// Error names both places.
func (e *OriginError) Error() string {
	return fmt.Sprintf("the server at %s sends its clients on to %s, which was not approved", e.Approved, e.Other)
}

// Hint says what the user can do.
func (e *OriginError) Hint() string {
	return "if that is the right place, write its URL into the entry, and approve it"
}

// An oversizeError is an answer longer than allowed.
type oversizeError struct{ limit int }

func (e *oversizeError) Error() string {
	return fmt.Sprintf("message longer than %d bytes", e.limit)
}

// A mediaError is an answer that is neither a message nor a stream of them.
type mediaError struct{ media, problem string }

func (e *mediaError) Error() string {
	if e.problem != "" {
		return "its answer is not JSON-RPC 2.0: " + e.problem
	}
	return fmt.Sprintf("its answer is %q, not JSON", e.media)
}
