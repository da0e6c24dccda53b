package reach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

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

// ErrDiskFull says that the engine has no room left, for an image or a
// container.
var ErrDiskFull = errors.New("no space left on the engine's disk")

// DiskHint says what the user can do about [ErrDiskFull].
const DiskHint = "free space on the engine's disk, for instance with \"docker image prune\""

// Explain makes an error of the client one of ours: an [*EngineError] if there
// was no answer, else the engine's own words. The end of a context stays what
// it is.
func (e *Engine) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case client.IsErrConnectionFailed(err):
		return &EngineError{Host: e.address, Err: e.why(err)}
	}
	var lost net.Error
	if errors.As(err, &lost) {
		return &EngineError{Host: e.address, Err: err}
	}
	return &answer{err}
}

// why finds the cause that the client's error has lost, by asking the socket.
func (e *Engine) why(err error) error {
	scheme, path, _ := strings.Cut(e.address, "://")
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

// Symptoms are pieces of what engines and registries say, in lower case, and
// what is meant by each. The engine passes on the words of registries, kernels
// and runtimes, without codes, so words are all there is to go by.
type Symptoms []struct {
	Text   string
	Reason error
}

// Reason returns what is meant by the first of the symptoms that the error has;
// nil if it has none.
func (all Symptoms) Reason(err error) error {
	text := strings.ToLower(err.Error())
	for _, s := range all {
		if strings.Contains(text, s.Text) {
			return s.Reason
		}
	}
	return nil
}
