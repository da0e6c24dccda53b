package pull

import (
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/dockgate/dockgate/internal/docker/reach"
)

// The reasons of an [Error], for errors.Is.
var (
	ErrNotFound       = errors.New("no such image")
	ErrUnauthorized   = errors.New("unauthorized")
	ErrDigestMismatch = errors.New("content does not match its digest")
	ErrNoPlatform     = errors.New("no image for this platform")
	ErrRateLimited    = errors.New("too many pulls")
	ErrUnreachable    = errors.New("registry not reachable")
	ErrInterrupted    = errors.New("pull interrupted")
	ErrReference      = errors.New("not an image reference")
)

// An Error says why an image cannot be had.
type Error struct {
	// Ref is the image as it was asked for.
	Ref string
	// Reason is one of the errors above, or nil.
	Reason error
	// Err is what the engine said.
	Err error
}

// Error returns "image REF: REASON: DETAIL".
func (e *Error) Error() string {
	if e.Reason == nil || errors.Is(e.Err, e.Reason) {
		return fmt.Sprintf("image %s: %v", e.Ref, e.Err)
	}
	return fmt.Sprintf("image %s: %v: %v", e.Ref, e.Reason, e.Err)
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.Err}
	}
	return []error{e.Reason, e.Err}
}

// Hint says what the user can do.
func (e *Error) Hint() string {
	switch {
	case errors.Is(e.Reason, ErrNotFound):
		return "check the image's name; if it is private, run \"docker login\" for its registry"
	case errors.Is(e.Reason, ErrUnauthorized):
		return "run \"docker login\" for the image's registry"
	case errors.Is(e.Reason, ErrDigestMismatch):
		return "the registry, or something on the way to it, gave other content than was asked for; do not use it"
	case errors.Is(e.Reason, ErrNoPlatform):
		return "the publisher offers no image for the engine's processor"
	case errors.Is(e.Reason, ErrRateLimited):
		return "wait a while, or run \"docker login\" for a higher limit"
	case errors.Is(e.Reason, ErrUnreachable), errors.Is(e.Reason, ErrInterrupted):
		return "check the engine's connection to the registry and try again"
	case errors.Is(e.Reason, reach.ErrDiskFull):
		return reach.DiskHint
	case errors.Is(e.Reason, ErrReference):
		return "an image is named as in \"docker pull\": [HOST/]NAME[:TAG][@sha256:DIGEST]"
	default:
		return ""
	}
}

func symptoms() reach.Symptoms {
	return reach.Symptoms{
		{"no space left on device", reach.ErrDiskFull},
		{"toomanyrequests", ErrRateLimited},
		{"too many requests", ErrRateLimited},
		{"no matching manifest", ErrNoPlatform},
		{"no match for platform", ErrNoPlatform},
		{"does not match the specified platform", ErrNoPlatform},
		{"does not provide the specified platform", ErrNoPlatform},
		{"does not match digest", ErrDigestMismatch},
		{"does not match provided digest", ErrDigestMismatch},
		{"manifest verification failed", ErrDigestMismatch},
		{"verification failed", ErrDigestMismatch},
		{"failed commit on ref", ErrDigestMismatch},
		{"unexpected commit digest", ErrDigestMismatch},
		{"no basic auth credentials", ErrUnauthorized},
		{"does not exist", ErrNotFound},
		{"manifest unknown", ErrNotFound},
		{"name unknown", ErrNotFound},
		{"not found", ErrNotFound},
		{"no such image", ErrNotFound},
		{"unauthorized", ErrUnauthorized},
		{"authentication required", ErrUnauthorized},
		{"access denied", ErrUnauthorized},
		{"denied:", ErrUnauthorized},
		{"unexpected eof", ErrInterrupted},
		{"connection reset", ErrInterrupted},
		{"connection refused", ErrUnreachable},
		{"no such host", ErrUnreachable},
		{"i/o timeout", ErrUnreachable},
		{"tls handshake timeout", ErrUnreachable},
		{"network is unreachable", ErrUnreachable},
		{"server misbehaving", ErrUnreachable},
		{"request canceled while waiting for connection", ErrUnreachable},
		{"context deadline exceeded", ErrUnreachable},
		{": eof", ErrInterrupted},
	}
}

// Failed says of what the engine answered why an image cannot be had: an
// [*Error], or an [*reach.EngineError] below the image's name.
func Failed(at *reach.Engine, ref string, err error) error {
	err = at.Explain(err)
	var down *reach.EngineError
	if errors.As(err, &down) {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	reason := symptoms().Reason(err)
	switch {
	case reason != nil:
	case cerrdefs.IsNotFound(err):
		reason = ErrNotFound
	case cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err):
		reason = ErrUnauthorized
	}
	return &Error{Ref: ref, Reason: reason, Err: err}
}
