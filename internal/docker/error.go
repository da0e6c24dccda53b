package docker

import (
	"errors"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// A StartError says why a container did not start. Nothing is left of it.
type StartError struct {
	Server string
	// Reason is [reach.ErrDiskFull], [ErrMountSource], [ErrCommand] or nil.
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
	return target == sandbox.ErrEngineFailed && errors.Is(e.Reason, reach.ErrDiskFull)
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
	case errors.Is(e.Reason, reach.ErrDiskFull):
		return reach.DiskHint
	}
	var hinted interface{ Hint() string }
	if errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// A HelperError is a container beside a server that did not get ready.
type HelperError struct {
	Server, Helper string
	// Problem says what became of it.
	Problem string
	// Err is why it was not waited for any longer; nil if it has ended.
	Err error
}

// Error names the helper and what became of it.
func (e *HelperError) Error() string {
	return fmt.Sprintf("server %q: its helper %q %s", e.Server, e.Helper, e.Problem)
}

// Unwrap returns why it was not waited for any longer.
func (e *HelperError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *HelperError) Hint() string { return "see what it wrote with: dockgate logs " + e.Server }

func symptoms() reach.Symptoms {
	return reach.Symptoms{
		{"no space left on device", reach.ErrDiskFull},
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

// missing are the symptoms of an image that is gone, or not for the platform.
func missing() reach.Symptoms {
	return reach.Symptoms{{"no such image", pull.ErrNotFound}, {"platform", pull.ErrNoPlatform}}
}

// startError says why the container did not start.
func (e *Engine) startError(server, image string, err error) error {
	err = e.Explain(err)
	if cerrdefs.IsNotFound(err) && missing().Reason(err) != nil {
		return &StartError{Server: server, Err: pull.Failed(e.Engine, image, err)}
	}
	return &StartError{Server: server, Reason: symptoms().Reason(err), Err: err}
}
