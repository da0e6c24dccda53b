package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/policy"
)

// serveFlags are those of serve.
type serveFlags struct {
	servers, expose         []string
	prefix, approve, listen string
	open, share             bool
}

func newServe(f *flags) *cobra.Command {
	var s serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output, or over HTTP",
		Long: `Serve MCP on standard input and output, for an MCP client to start, or with
--http over HTTP, for clients that connect to URL http://ADDRESS/mcp.

The tools of all active servers are listed; each server starts as a container
on its first call and stops when idle. When as many run as may (five, unless the
configuration says otherwise) the one that was idle for longest makes room. What
says auto_start in its entry is started in the background. A server that nobody
has approved yet is asked for: in the client, if it can show a form, else with
"dockgate approve".

With --share clients use one gateway: the first starts it in the background, the
others join it, and it ends five minutes after the last has left. Clients that
differ in these flags, their configuration, project files or secrets are kept
apart in it. In the image it runs in a container of its own, one for all clients
with the same mounts.

Over HTTP the address is printed once clients can connect. Each client needs a
token, which "dockgate token new" makes. On a unix socket, which its owner alone
can open, and on a loopback address it can be left out with
--allow-unauthenticated: whoever gets there is then the local user. SIGTERM ends
the gateway when the calls under way have ended, after ten seconds at the
latest.` + exits,
		Example: `  dockgate serve
  dockgate serve --server filesystem --prefix none
  dockgate serve --approve pinned --expose direct
  dockgate serve --share
  dockgate serve --http 127.0.0.1:8811
  dockgate serve --http unix:/run/user/1000/dg --allow-unauthenticated`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			settle()
			options, err := s.options(f)
			if err != nil {
				return s.misused(cmd, err)
			}
			if s.share {
				shared, err := s.serveShared(cmd, f, options)
				if shared || err != nil {
					return err
				}
			}
			d, err := daemon.Open(cmd.Context(), options)
			if err != nil {
				return err
			}
			defer func() {
				if closed := d.Close(); closed != nil {
					err = errors.Join(err, fmt.Errorf("stop: %w", closed))
				}
			}()
			for _, note := range d.Now().Notes {
				d.Logger.Info("catalog entry replaced", "server", note.Name, "by", note.Winner.String(), "was", note.Loser.String())
			}
			if options.Config.HTTP.Listen != "" {
				return d.ServeHTTP(cmd.Context(), func(address string) error {
					if err := tellLocked(cmd, d); err != nil {
						return err
					}
					_, err := fmt.Fprintln(cmd.OutOrStdout(), address)
					return err
				})
			}
			in, out := stdio()
			if isTerminal(in) {
				how := "after: dockgate connect CLIENT"
				if options.Outside != nil {
					how = "with what this prints in its configuration: dockgate connect --print"
				}
				tell(cmd, "serving MCP on this terminal; an MCP client starts it by itself %s", how)
			}
			return d.Serve(cmd.Context(), in, out)
		},
	}
	s.register(cmd, f)
	return cmd
}

// tellLocked says so if nobody can use the gateway over HTTP yet.
func tellLocked(cmd *cobra.Command, d *daemon.Daemon) error {
	if d.Config.HTTP.AllowUnauthenticated || len(d.Config.Admission.Issuers) > 0 {
		return nil
	}
	tokens, err := d.Store.Tokens(cmd.Context())
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		tell(cmd, "there is no token yet, and no client is let in without one; make one with: dockgate token new NAME")
	}
	return nil
}

func (s *serveFlags) register(cmd *cobra.Command, f *flags) {
	set := cmd.Flags()
	set.StringArrayVar(&s.servers, "server", nil, "`name` of a server that is active in this gateway; repeatable")
	// It fails for flags that do not exist only.
	_ = cmd.RegisterFlagCompletionFunc("server", f.completeServers())
	set.StringSliceVar(&s.expose, "expose", nil, "`groups` to list: meta, dynamic, active, direct (default meta,dynamic,active)")
	set.StringVar(&s.prefix, "prefix", "", "name tools with the server's name (`server`) or without (none)")
	set.StringVar(&s.approve, "approve", "", "`mode` for servers nobody approved: ask, all or pinned (default ask)")
	set.StringVar(&s.listen, "http", "", "serve HTTP on `address`: 127.0.0.1:8811, or unix:PATH")
	set.BoolVar(&s.open, "allow-unauthenticated", false, "over HTTP, ask for no token (unix sockets and loopback only)")
	set.BoolVar(&s.share, "share", false, "share one gateway with the other clients that say so")
	for name, values := range map[string][]string{
		"expose":  {string(meta.Meta), string(meta.Dynamic), string(gateway.Active), string(gateway.Direct)},
		"prefix":  {string(menu.PrefixServer), string(menu.PrefixNone)},
		"approve": {string(approval.ModeAsk), string(approval.ModeAll), string(approval.ModePinned)},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.MarkFlagsMutuallyExclusive("share", "http")
}

// options joins the flags with the options of every command.
func (s *serveFlags) options(f *flags) (daemon.Options, error) {
	options, err := f.options()
	if err != nil {
		return options, err
	}
	options.Servers = s.servers
	s.over(&options.Config)
	load := options.Load
	options.Load = func() (policy.Config, error) {
		config, err := load()
		s.over(&config)
		return config, err
	}
	return options, options.Config.Check(inFlags)
}

// over writes what the flags say over a configuration.
func (s *serveFlags) over(config *policy.Config) {
	if len(s.expose) > 0 {
		config.Expose = nil
		for _, group := range s.expose {
			config.Expose = append(config.Expose, meta.Group(group))
		}
	}
	if s.prefix != "" {
		config.Prefix = menu.Prefix(s.prefix)
	}
	if s.approve != "" {
		config.Approval.Mode = approval.Mode(s.approve)
	}
	config.HTTP.Listen = s.listen
	config.HTTP.AllowUnauthenticated = s.open
}

// inFlags is the place of what flags say.
const inFlags = "flags"

// misused makes an error about the flags one about the command line.
func (s *serveFlags) misused(cmd *cobra.Command, err error) error {
	var wrong *policy.ConfigError
	if errors.As(err, &wrong) && wrong.Place == inFlags {
		return &usageError{cmd: cmd, err: err}
	}
	return err
}
