package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/secret"
)

func newLogin(f *flags) *cobra.Command {
	var own loginFlags
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in to a remote server, in the browser",
		Long: `Log in to an approved server that somebody else runs and that wants an OAuth
login. The address to open is printed, and opened in the browser where there is
one, which must be on this machine: it is sent back to it, so in a container the
command needs the host's network. The tokens are kept encrypted in the state
folder, with a key in the system's keychain if it has one and the variable
DOCKGATE_KEYCHAIN is not "off". They go to this server's URL only.

The gateway registers itself with the server's issuer. Where the issuer does not
let it, --client-id names the client that it has made for you, or the https URL
of a document that describes one.` + exits,
		Example: `  dockgate login linear
  dockgate login linear --no-browser
  dockgate login github --client-id Iv1.8a61f9b3 --client-secret ./secret`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeFrom(remotes)),
		RunE: func(cmd *cobra.Command, args []string) error {
			as, err := own.registration(cmd)
			if err != nil {
				return err
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				err := d.Login(cmd.Context(), principal.Local, args[0], as, func(ctx context.Context, url string) error {
					tell(cmd, "open this address to log in to %s:", args[0])
					tell(cmd, "  %s", clean(url))
					if !own.stay && isTerminal(cmd.ErrOrStderr()) {
						browse(ctx, url)
					}
					return nil
				})
				var needless *login.NeedlessError
				if errors.As(err, &needless) {
					tell(cmd, "%s answers without a login", args[0])
					return nil
				}
				if err == nil {
					tell(cmd, "logged in to %s", args[0])
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&own.stay, "no-browser", false, "print the address, and open no browser")
	cmd.Flags().StringVar(&own.id, "client-id", "", "`id` of the client at the issuer, or the URL of its document")
	cmd.Flags().StringVar(&own.secret, "client-secret", "", "`file` with that client's secret, if it has one")
	return cmd
}

// loginFlags are those of login.
type loginFlags struct {
	stay       bool
	id, secret string
}

// registration is how the issuer knows the gateway.
func (own loginFlags) registration(cmd *cobra.Command) (login.Registration, error) {
	if own.secret == "" {
		return login.Registration{ID: own.id}, nil
	}
	if own.id == "" {
		return login.Registration{}, &usageError{cmd: cmd, err: errors.New("--client-secret is of a client that --client-id names")}
	}
	text, err := os.ReadFile(own.secret)
	if err != nil {
		return login.Registration{}, fmt.Errorf("--client-secret: %w", err)
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return login.Registration{}, fmt.Errorf("--client-secret: %s is empty", own.secret)
	}
	return login.Registration{ID: own.id, Secret: secret.NewValue(value)}, nil
}

// browse opens an address in the browser, where there is one: the address has
// been printed, so it does not matter if that fails.
func browse(ctx context.Context, url string) {
	var command *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		command = exec.CommandContext(ctx, "open", url)
	case "windows":
		command = exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url)
	default:
		command = exec.CommandContext(ctx, "xdg-open", url)
	}
	_ = command.Run() // see above
}

func newLogout(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget the login to a remote server",
		Long: `Forget the tokens of a server that dockgate login has logged in to. Its issuer
is not told: the consent is taken back there.` + exits,
		Example:           "  dockgate logout linear",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeFrom(remotes)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				err := d.Logout(cmd.Context(), principal.Local, args[0])
				if errors.Is(err, login.ErrNone) {
					return fmt.Errorf("not logged in to %q", args[0])
				}
				if err == nil {
					tell(cmd, "logged out of %s", args[0])
				}
				return err
			})
		},
	}
}

// remotes are the servers that somebody else runs.
func remotes(_ context.Context, d *daemon.Daemon) ([]string, error) {
	var names []string
	for _, s := range d.Catalog().Servers() {
		if s.Remote != nil {
			names = append(names, s.Name)
		}
	}
	return names, nil
}
