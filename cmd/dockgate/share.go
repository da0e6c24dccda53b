package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/docker/twin"
	"github.com/dockgate/dockgate/internal/endpoint/relay"
	"github.com/dockgate/dockgate/internal/policy"
)

// serveShared relays a client to the shared gateway of its state folder. It
// returns false if there is one of another version: then this client gets a
// gateway of its own.
func (s *serveFlags) serveShared(cmd *cobra.Command, f *flags, options daemon.Options) (shared bool, err error) {
	if err := os.MkdirAll(options.State, 0o700); err != nil {
		return false, err
	}
	state, err := filepath.Abs(options.State)
	if err != nil {
		return false, err
	}
	args, err := s.arguments(f, state)
	if err != nil {
		return false, err
	}
	starting := &starter{state: state, socket: socketIn(state, ""), idle: time.Duration(options.Config.Share.Idle), verbose: f.verbose}
	if options.Outside != nil {
		starting.twin, err = daemon.OpenTwin(cmd.Context(), options)
		var down *reach.EngineError
		if errors.As(err, &down) {
			options.Logger.Warn("without the engine no gateway can be shared, this client gets one of its own", "err", err)
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("--share: %w", err)
		}
		defer func() { err = errors.Join(err, starting.twin.Close()) }()
		starting.socket = socketIn(state, starting.twin.Key)
	}
	r := &relay.Relay{
		Hello: relay.Hello{Version: version, Dir: options.Dir, Env: os.Environ(), Args: args},
		Dial:  starting.dial,
	}
	in, out := stdio()
	err = r.Run(cmd.Context(), in, out)
	var refused *relay.RefusedError
	if errors.As(err, &refused) && refused.Version {
		options.Logger.Warn("the shared gateway is of another version, this client gets one of its own", "err", err)
		return false, nil
	}
	return true, err
}

// arguments are the command line with paths that mean the same elsewhere.
func (s *serveFlags) arguments(f *flags, state string) ([]string, error) {
	args := []string{"--state", state}
	path := func(flag, value string) error {
		if value == "" {
			return nil
		}
		full, err := filepath.Abs(value)
		args = append(args, flag, full)
		return err
	}
	if err := path("--config", f.config); err != nil {
		return nil, err
	}
	for _, file := range f.catalogs {
		if strings.Contains(file, "://") {
			args = append(args, "--catalog", file)
			continue
		}
		if err := path("--catalog", file); err != nil {
			return nil, err
		}
	}
	word := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				args = append(args, flag, value)
			}
		}
	}
	word("--host", f.host)
	word("--context", f.context)
	word("--server", s.servers...)
	word("--expose", s.expose...)
	word("--prefix", s.prefix)
	word("--approve", s.approve)
	return args, nil
}

// socketIn is the socket of a shared gateway of a state folder. In containers
// there is one for each kind of container, by its key.
func socketIn(state, key string) string {
	if key != "" {
		key = "-" + key
	}
	return filepath.Join(state, "gateway"+key+".sock")
}

// A starter joins a shared gateway of a state folder, and starts it.
type starter struct {
	state, socket string
	idle          time.Duration
	verbose       bool
	// twin makes its container, if it is to run in one; else nil.
	twin *twin.Twin
}

const (
	startTime  = 30 * time.Second
	startPause = 20 * time.Millisecond
)

// dial connects to the gateway. Of those who find none at the same time one
// starts it, and the others wait for that.
func (s *starter) dial(ctx context.Context) (net.Conn, error) {
	if connection, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket); err == nil {
		return connection, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the shared gateway did not start within %v; see %s, with: dockgate logs --gateway", startTime, logIn(s.state)))
	defer cancel()
	lock := flock.New(filepath.Join(s.state, "gateway.start.lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, startPause); err != nil {
		return nil, fmt.Errorf("start the shared gateway: %w", or(context.Cause(ctx), err))
	}
	defer func() { _ = lock.Close() }() // it holds nothing that could be lost
	var ended <-chan error
	ticker := time.NewTicker(startPause)
	defer ticker.Stop()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
		if err == nil {
			return connection, nil
		}
		if ended == nil {
			if ended, err = s.start(ctx); err != nil {
				return nil, fmt.Errorf("start the shared gateway: %w", err)
			}
		}
		select {
		case <-ticker.C:
		case err := <-ended:
			// The one before may have been about to end, and in its way.
			if ended = nil; err != nil && !isCode(err, exitOther) {
				return nil, fmt.Errorf("start the shared gateway: %w; see %s, with: dockgate logs --gateway", err, logIn(s.state))
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func or(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// An otherGatewayError is a shared gateway that finds another.
type otherGatewayError struct{ error }

// exitOther is how its process ends.
const exitOther = 3

func isCode(err error, code int) bool {
	var exit interface{ ExitCode() int } // of a process, or of a container
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// logIn is the file with what shared gateways of a state folder say.
func logIn(state string) string { return filepath.Join(state, "gateway.log") }

// maxLog is from which size on the file is begun anew.
const maxLog = 4 << 20

func openLog(state string) (*os.File, error) {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(logIn(state)); err == nil && info.Size() > maxLog {
		mode |= os.O_TRUNC
	}
	return os.OpenFile(logIn(state), mode, 0o600)
}

// start starts a gateway that outlives this process. What is returned gets
// how it ends, if this process is still there then.
func (s *starter) start(ctx context.Context) (ended <-chan error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"gateway", "--state", s.state, "--idle", cmp.Or(s.idle, policy.DefaultShareIdle).String()}
	if s.verbose {
		args = append(args, "--verbose")
	}
	if s.twin != nil {
		return s.twin.Start(ctx, program, append(args, "--socket", s.socket)...)
	}
	said, err := openLog(s.state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()       // the gateway has it
	command := exec.Command(program, args...) //nolint:gosec,noctx // it is this program, and outlives us
	command.Dir, command.Stderr = string(filepath.Separator), said
	detach(command)
	if err := command.Start(); err != nil {
		return nil, err
	}
	result := make(chan error, 1)
	// Nothing waits for this goroutine: it ends with the gateway, or with us.
	go func() { result <- command.Wait() }()
	return result, nil
}
