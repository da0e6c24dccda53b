package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/endpoint/relay"
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/policy"
)

// newGateway is the process that relays share. People do not start it.
func newGateway(f *flags) *cobra.Command {
	var idle time.Duration
	var socket, owner string
	cmd := &cobra.Command{
		Use:    "gateway",
		Short:  "Serve the clients that share a gateway",
		Hidden: true,
		Long: `Serve the clients that share the gateway of a state folder, until none has been
there for a while. "dockgate serve --share" starts it when it is needed; with
--owner it is in a container of its own, and what it says is in a file.

Exit codes: 0 done, 1 failed or used wrongly, 2 a configuration has mistakes,
3 another serves them already.`,
		Example: `  dockgate gateway --idle 1m`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			settle()
			options, err := f.around()
			if err != nil {
				return err
			}
			if owner != "" {
				release, err := alone(options.State, owner)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, release()) }()
				options.Logger = f.logger(slog.LevelInfo)
			}
			listener, err := endpoint.Listen(cmd.Context(), "unix:"+first(socket, socketIn(options.State, "")))
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
	cmd.Flags().StringVar(&socket, "socket", "", "where clients come in (default gateway.sock in the state folder)")
	cmd.Flags().StringVar(&owner, "owner", "", "whose the container is that it runs in")
	return cmd
}

// alone makes this process the gateway of its container: the owner lives, and
// what would be lost with the container is kept in the log.
func alone(state, id string) (release func() error, err error) {
	said, err := openLog(state)
	if err != nil {
		return nil, err
	}
	os.Stderr = said // closed when the process ends
	if err := debug.SetCrashOutput(said, debug.CrashOptions{}); err != nil {
		return nil, err
	}
	return owner.Hold(state, id)
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
	// In a container they also see the same of the host.
	here, _ := outside.Read(f.lookup)
	all, err := json.Marshal([]any{hello.Args, config, options.Home, options.Engine, around, here.Common()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}

// openRoom makes the gateway of a client, for all with the same key.
func (f *flags) openRoom(ctx context.Context, hello relay.Hello) (relay.Room, error) {
	client, options, err := optionsOf(hello, f.logger(slog.LevelInfo))
	if err != nil {
		return nil, err
	}
	alone, err := options.HasProject()
	if err != nil {
		return nil, err
	}
	options.Several = !alone
	if here, inside := outside.Read(client.lookup); inside && options.Several {
		options.Phrase = here.Common().Phrase
	}
	d, err := daemon.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	return daemon.Room{Daemon: d}, nil
}
