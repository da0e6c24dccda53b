package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/endpoint/relay"
	"github.com/dockgate/dockgate/internal/policy"
)

// serveShared relays a client to the shared gateway of its state folder. It
// returns false if there is one of another version: then this client gets a
// gateway of its own.
func (s *serveFlags) serveShared(cmd *cobra.Command, f *flags, options daemon.Options) (shared bool, err error) {
	if options.Outside != nil {
		return false, &usageError{
			cmd: cmd, err: errors.New("--share: a gateway that runs in a container cannot be shared"),
			hint: "serve without --share; or share one over HTTP",
		}
	}
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
	r := &relay.Relay{
		Hello: relay.Hello{Version: version, Dir: options.Dir, Env: os.Environ(), Args: args},
		Dial:  (&starter{state: state, idle: time.Duration(options.Config.Share.Idle), verbose: f.verbose}).dial,
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

// socketIn is the socket of the shared gateway of a state folder.
func socketIn(state string) string { return filepath.Join(state, "gateway.sock") }

// A starter joins the shared gateway of a state folder, and starts it.
type starter struct {
	state   string
	idle    time.Duration
	verbose bool
}

const (
	startTime  = 30 * time.Second
	startPause = 20 * time.Millisecond
)

// dial connects to the gateway. Of those who find none at the same time one
// starts it, and the others wait for that.
func (s *starter) dial(ctx context.Context) (net.Conn, error) {
	socket := socketIn(s.state)
	if connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
		return connection, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("the shared gateway did not start within %v; see %s", startTime, s.log()))
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
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return connection, nil
		}
		if ended == nil {
			if ended, err = s.start(); err != nil {
				return nil, fmt.Errorf("start the shared gateway: %w", err)
			}
		}
		select {
		case <-ticker.C:
		case err := <-ended:
			// The one before may have been about to end, and in its way.
			if ended = nil; err != nil && !isCode(err, exitOther) {
				return nil, fmt.Errorf("start the shared gateway: %w; see %s", err, s.log())
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
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// log is the file with what the shared gateway says.
func (s *starter) log() string { return filepath.Join(s.state, "gateway.log") }

// maxLog is from which size on the file is begun anew.
const maxLog = 4 << 20

// start starts a gateway that outlives this process. What is returned gets
// how it ends, if this process is still there then.
func (s *starter) start() (ended <-chan error, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(s.log()); err == nil && info.Size() > maxLog {
		mode |= os.O_TRUNC
	}
	said, err := os.OpenFile(s.log(), mode, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }() // the gateway has it
	args := []string{"gateway", "--state", s.state, "--idle", cmp.Or(s.idle, policy.DefaultShareIdle).String()}
	if s.verbose {
		args = append(args, "--verbose")
	}
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

// newGateway is the process that relays share. People do not start it.
func newGateway(f *flags) *cobra.Command {
	var idle time.Duration
	cmd := &cobra.Command{
		Use:    "gateway",
		Short:  "Serve the clients that share a gateway",
		Hidden: true,
		Long: `Serve the clients that share the gateway of a state folder, until none has been
there for a while. "dockgate serve --share" starts it when it is needed.

Exit codes: 0 done, 1 failed, 2 used wrongly, 3 another serves them already.`,
		Example: `  dockgate gateway --idle 1m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settle()
			options, err := f.around()
			if err != nil {
				return err
			}
			listener, err := endpoint.Listen(cmd.Context(), "unix:"+socketIn(options.State))
			var other *endpoint.InUseError
			if errors.As(err, &other) {
				return &otherGatewayError{err}
			}
			if err != nil {
				return err
			}
			host := &relay.Host{Version: version, Key: keyOf, Open: f.openRoom, Idle: idle, Logger: options.Logger}
			return errors.Join(host.Run(cmd.Context(), listener), unlessClosed(listener.Close()))
		},
	}
	cmd.Flags().DurationVar(&idle, "idle", policy.DefaultShareIdle, "how long to stay without a client")
	return cmd
}

func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// optionsOf returns the options of a relay's client, as if it were here.
//
//nolint:contextcheck // the completion of flags, which nobody asks for here
func optionsOf(hello relay.Hello, logger *slog.Logger) (*flags, daemon.Options, error) {
	env := make(map[string]string, len(hello.Env))
	for _, variable := range hello.Env {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	f := &flags{client: &surroundings{dir: hello.Dir, env: env}}
	var s serveFlags
	root, cmd := &cobra.Command{}, &cobra.Command{Use: "serve"}
	f.register(root)
	root.AddCommand(cmd)
	s.register(cmd, f)
	if err := cmd.ParseFlags(hello.Args); err != nil {
		return nil, daemon.Options{}, err
	}
	options, err := s.options(f)
	if err != nil {
		return nil, daemon.Options{}, err
	}
	for i, file := range options.Config.Catalogs {
		if !filepath.IsAbs(file) && !strings.Contains(file, "://") {
			options.Config.Catalogs[i] = filepath.Join(hello.Dir, file)
		}
	}
	if logger != nil {
		options.Logger = logger
	}
	return f, options, nil
}

// keyOf returns what clients that share everything have in common.
func keyOf(ctx context.Context, hello relay.Hello) (string, error) {
	f, options, err := optionsOf(hello, nil)
	if err != nil {
		return "", err
	}
	around, err := options.Fingerprint(ctx)
	if err != nil {
		return "", err
	}
	path, _ := f.configFile(options.Home)
	config, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	all, err := json.Marshal([]any{hello.Args, config, options.Home, options.Engine, around})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}

// openRoom makes the gateway of a client, for all with the same key.
func (f *flags) openRoom(ctx context.Context, hello relay.Hello) (relay.Room, error) {
	_, options, err := optionsOf(hello, f.logger(slog.LevelInfo))
	if err != nil {
		return nil, err
	}
	alone, err := options.HasProject()
	if err != nil {
		return nil, err
	}
	options.Several = !alone
	d, err := daemon.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return daemon.Room{Daemon: d}, nil
}
