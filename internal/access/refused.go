package access

import (
	"net/http"
	"strings"
)

// The codes of refusals, as logs and answers have them.
const (
	// CodeUnauthenticated is a request without a credential that is good here.
	CodeUnauthenticated = "UNAUTHENTICATED"
	// CodeForbidden is a caller who is known and may not.
	CodeForbidden = "FORBIDDEN"
	// CodeUnavailable is a credential that cannot be checked now.
	CodeUnavailable = "ACCESS_UNAVAILABLE"
)

// A RefusedError is a request that is not let in. It holds nothing of the
// token that came with it.
type RefusedError struct {
	// Status is the HTTP status: 400, 401, 403 or 503.
	Status int
	// Challenge is the value of the WWW-Authenticate header; empty is no header.
	Challenge string
	// Reason says why, in words for the client.
	Reason string

	hint  string
	cause error
}

// Error gives the reason.
func (e *RefusedError) Error() string {
	if e.cause != nil {
		return e.Reason + ": " + e.cause.Error()
	}
	return e.Reason
}

// Unwrap returns the cause, if there is one. It is for the log, not for the
// client.
func (e *RefusedError) Unwrap() error { return e.cause }

// Hint says what the user can do.
func (e *RefusedError) Hint() string { return e.hint }

// Code says what kind of refusal it is.
func (e *RefusedError) Code() string {
	switch e.Status {
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusServiceUnavailable:
		return CodeUnavailable
	default:
		return CodeUnauthenticated
	}
}

// A cause of refusal, with the error code of RFC 6750, section 3.1.
type cause struct {
	status       int
	code         string
	reason, hint string
}

const hintNew = "make a token with: dockgate token new NAME, and send it as the header Authorization: Bearer TOKEN"

//nolint:gochecknoglobals // constants; Go has no constant structs
var (
	noToken       = cause{http.StatusUnauthorized, "", "a token is needed", hintNew}
	malformed     = cause{http.StatusBadRequest, "invalid_request", "the Authorization header is not one bearer token", hintNew}
	unknownToken  = cause{http.StatusUnauthorized, "invalid_token", "the token is not known here, or was revoked", hintNew}
	expiredToken  = cause{http.StatusUnauthorized, "invalid_token", "the token has expired", hintNew}
	earlyToken    = cause{http.StatusUnauthorized, "invalid_token", "the token is not good yet", "compare the clocks of the issuer and of this machine"}
	endlessToken  = cause{http.StatusUnauthorized, "invalid_token", "the token does not say when it expires", "let the issuer give its tokens an exp claim"}
	otherIssuer   = cause{http.StatusUnauthorized, "invalid_token", "the token is of an issuer that is not known here", "name the issuer in the configuration, under access.issuers"}
	otherAudience = cause{http.StatusUnauthorized, "invalid_token", "the token is not for this gateway", "ask the issuer for a token whose audience is access.resource of the configuration"}
	noSubject     = cause{http.StatusUnauthorized, "invalid_token", "the token does not say whose it is", "let the issuer give its tokens a sub claim of at most 255 bytes"}
	boundToken    = cause{http.StatusUnauthorized, "invalid_token", "the token is bound to a key, and no bearer token", "ask the issuer for a bearer token"}
	badSignature  = cause{http.StatusUnauthorized, "invalid_token", "the token was not signed by its issuer", hintNew}
	noScope       = cause{http.StatusForbidden, "insufficient_scope", "the token has no scope that is good here", "ask the issuer for a token with a scope that access.issuers of the configuration names"}
)

// refuse refuses a request, and asks for the scope with the fewest rights.
func (a *Authenticator) refuse(c cause) error {
	scope := ""
	if len(a.issuers) > 0 {
		scope = a.issuers[0].least()
	}
	return a.refusal(c, scope)
}

// refuseScope refuses a token of an issuer that has none of its scopes.
func (a *Authenticator) refuseScope(by *issuer) error { return a.refusal(noScope, by.least()) }

func (a *Authenticator) refusal(c cause, scope string) error {
	return &RefusedError{Status: c.status, Challenge: a.challenge(c, scope), Reason: c.reason, hint: c.hint}
}

// challenge writes a WWW-Authenticate value (RFC 6750, section 3; RFC 9728,
// section 5.1). A request without a token gets no error code.
func (a *Authenticator) challenge(c cause, scope string) string {
	parts := []string{`realm="dockgate"`}
	if c.code != "" {
		parts = append(parts, `error="`+c.code+`"`, `error_description="`+c.reason+`"`)
	}
	if scope != "" {
		parts = append(parts, `scope="`+scope+`"`)
	}
	if len(a.issuers) > 0 {
		parts = append(parts, `resource_metadata="`+a.metadataURL()+`"`)
	}
	return "Bearer " + strings.Join(parts, ", ")
}
