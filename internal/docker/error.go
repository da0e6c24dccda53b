package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// An EngineError says that the engine could not be asked at all.
type EngineError struct {
	Host string
	Err  error
}

// Error returns "docker engine at HOST: CAUSE".
func (e *EngineError) Error() string {
	return fmt.Sprintf("docker engine at %s: %v", e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *EngineError) Unwrap() error { return e.Err }

// Is makes it the engine's failure, and nobody else's.
func (e *EngineError) Is(target error) bool { return target == sandbox.ErrEngineFailed }

// Hint says what the user can do.
func (e *EngineError) Hint() string {
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return "this user may not use the engine's socket; on Linux add the user to the group \"docker\" and log in again, or use a rootless engine"
	case isSocket(e.Host) && (errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, syscall.ECONNREFUSED)):
		return "start the engine (Docker Desktop, or \"sudo systemctl start docker\"), or name another one with DOCKER_HOST or DOCKER_CONTEXT"
	case strings.HasPrefix(e.Host, "ssh://"):
		return "check that \"ssh\" reaches the host without a question, and that docker is installed there"
	default:
		return "check that the engine runs and that DOCKER_HOST or the Docker context names it"
	}
}

// The reasons of an [ImageError], for errors.Is.
var (
	ErrImageNotFound  = errors.New("no such image")
	ErrUnauthorized   = errors.New("unauthorized")
	ErrDigestMismatch = errors.New("content does not match its digest")
	ErrNoPlatform     = errors.New("no image for this platform")
	ErrRateLimited    = errors.New("too many pulls")
	ErrUnreachable    = errors.New("registry not reachable")
	ErrInterrupted    = errors.New("pull interrupted")
	ErrReference      = errors.New("not an image reference")
)

// ErrDiskFull says that the engine has no room left, for an image or a
// container.
var ErrDiskFull = errors.New("no space left on the engine's disk")

// An ImageError says why an image cannot be had.
type ImageError struct {
	// Ref is the image as it was asked for.
	Ref string
	// Reason is one of the errors above, or nil.
	Reason error
	// Err is what the engine said.
	Err error
}

// Error returns "image REF: REASON: DETAIL".
func (e *ImageError) Error() string {
	if e.Reason == nil || errors.Is(e.Err, e.Reason) {
		return fmt.Sprintf("image %s: %v", e.Ref, e.Err)
	}
	return fmt.Sprintf("image %s: %v: %v", e.Ref, e.Reason, e.Err)
}

// Unwrap returns the reason and the cause.
func (e *ImageError) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.Err}
	}
	return []error{e.Reason, e.Err}
}

// Hint says what the user can do.
func (e *ImageError) Hint() string {
	switch {
	case errors.Is(e.Reason, ErrImageNotFound):
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
	case errors.Is(e.Reason, ErrDiskFull):
		return diskHint
	case errors.Is(e.Reason, ErrReference):
		return "an image is named as in \"docker pull\": [HOST/]NAME[:TAG][@sha256:DIGEST]"
	default:
		return ""
	}
}

const diskHint = "free space on the engine's disk, for instance with \"docker image prune\""

// A StartError says why a container did not start. Nothing is left of it.
type StartError struct {
	Server string
	// Reason is [ErrDiskFull], [ErrMountSource], [ErrCommand] or nil.
	Reason error
	Err    error
}

// The reasons of a [StartError], for errors.Is.
var (
	ErrMountSource = errors.New("mounted path does not exist on the engine's host")
	ErrCommand     = errors.New("command cannot be run in the image")
)

// Error returns "start container of "SERVER": DETAIL".
func (e *StartError) Error() string {
	if e.Reason == nil {
		return fmt.Sprintf("start container of %q: %v", e.Server, e.Err)
	}
	return fmt.Sprintf("start container of %q: %v: %v", e.Server, e.Reason, e.Err)
}

// Unwrap returns the reason and the cause.
func (e *StartError) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.Err}
	}
	return []error{e.Reason, e.Err}
}

// Is makes a full disk the engine's failure, and nobody else's.
func (e *StartError) Is(target error) bool {
	return target == sandbox.ErrEngineFailed && errors.Is(e.Reason, ErrDiskFull)
}

// Hint says what the user can do.
func (e *StartError) Hint() string {
	switch {
	case errors.Is(e.Reason, ErrMountSource):
		return "create the folder, or change the server's setting that names it"
	case errors.Is(e.Reason, ErrCommand):
		return "the entry's command, entrypoint or user does not fit its image"
	case errors.Is(e.Reason, ErrNotRunning):
		return "start the container with \"docker start\"; this gateway never starts what it has not made"
	case errors.Is(e.Reason, ErrDiskFull):
		return diskHint
	}
	var hinted interface{ Hint() string }
	if errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// said makes an error of the client one of ours: an [*EngineError] if there
// was no answer, else the engine's own words.
func (e *Engine) said(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case client.IsErrConnectionFailed(err):
		return &EngineError{Host: e.host, Err: e.why(err)}
	}
	var lost net.Error
	if errors.As(err, &lost) {
		return &EngineError{Host: e.host, Err: err}
	}
	return &answer{err}
}

// why finds the cause that the client's error has lost, by asking the socket.
func (e *Engine) why(err error) error {
	scheme, path, _ := strings.Cut(e.host, "://")
	if scheme != "unix" {
		return err
	}
	conn, dialed := net.DialTimeout("unix", path, time.Second)
	if dialed != nil {
		return dialed
	}
	if closed := conn.Close(); closed != nil {
		return closed
	}
	return err
}

// An answer is an error that the engine gave, without the client's preface.
type answer struct{ err error }

func (a *answer) Error() string {
	return strings.TrimPrefix(a.err.Error(), "Error response from daemon: ")
}

func (a *answer) Unwrap() error { return a.err }

// A symptom is a piece of what engines and registries say.
type symptom struct {
	text   string
	reason error
}

// reasonIn finds the reason in what an engine says of a failure. The engine
// passes on the words of registries, kernels and runtimes, without codes, so
// words are all there is to go by. The first match wins.
func reasonIn(err error, symptoms []symptom) error {
	text := strings.ToLower(err.Error())
	for _, s := range symptoms {
		if strings.Contains(text, s.text) {
			return s.reason
		}
	}
	return nil
}

func pullSymptoms() []symptom {
	return []symptom{
		{"no space left on device", ErrDiskFull},
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
		{"does not exist", ErrImageNotFound},
		{"manifest unknown", ErrImageNotFound},
		{"name unknown", ErrImageNotFound},
		{"not found", ErrImageNotFound},
		{"no such image", ErrImageNotFound},
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

// imageError says why the image could not be had.
func (e *Engine) imageError(ref string, err error) error {
	err = e.said(err)
	var down *EngineError
	if errors.As(err, &down) {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	reason := reasonIn(err, pullSymptoms())
	switch {
	case reason != nil:
	case cerrdefs.IsNotFound(err):
		reason = ErrImageNotFound
	case cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err):
		reason = ErrUnauthorized
	}
	return &ImageError{Ref: ref, Reason: reason, Err: err}
}

func startSymptoms() []symptom {
	return []symptom{
		{"no space left on device", ErrDiskFull},
		{"bind source path does not exist", ErrMountSource},
		{"executable file not found", ErrCommand},
		{"exec format error", ErrCommand},
		{"unable to find user", ErrCommand},
		{"unable to find group", ErrCommand},
		{"no matching entries in passwd file", ErrCommand},
		{"stat /", ErrCommand},
		{"exec: \"", ErrCommand},
	}
}

// startError says why the container did not start.
func (e *Engine) startError(server, image string, err error) error {
	err = e.said(err)
	if cerrdefs.IsNotFound(err) && reasonIn(err, []symptom{{"no such image", ErrImageNotFound}, {"platform", ErrNoPlatform}}) != nil {
		return &StartError{Server: server, Err: e.imageError(image, err)}
	}
	return &StartError{Server: server, Reason: reasonIn(err, startSymptoms()), Err: err}
}
