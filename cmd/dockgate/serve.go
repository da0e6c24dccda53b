package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/meta"
)

func newServe(f *flags) *cobra.Command {
	var servers, expose []string
	var prefix, approve, listen string
	var open bool
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

Over HTTP the address is printed once clients can connect. Each client needs a
token, which "dockgate token new" makes. On a unix socket, which its owner alone
can open, and on a loopback address it can be left out with
--allow-unauthenticated: whoever gets there is then the local user. SIGTERM ends
the gateway when the calls under way have ended, after ten seconds at the
latest.` + exits,
		Example: `  dockgate serve
  dockgate serve --server filesystem --prefix none
  dockgate serve --approve pinned --expose direct
  dockgate serve --http 127.0.0.1:8811
  dockgate serve --http unix:/run/user/1000/dg --allow-unauthenticated`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			settle()
			options, err := f.options()
			if err != nil {
				return err
			}
			options.Servers = servers
			if len(expose) > 0 {
				options.Config.Expose = nil
				for _, group := range expose {
					options.Config.Expose = append(options.Config.Expose, meta.Group(group))
				}
			}
			if prefix != "" {
				options.Config.Prefix = gateway.Prefix(prefix)
			}
			if approve != "" {
				options.Config.Approval.Mode = approval.Mode(approve)
			}
			options.Config.HTTP.Listen = first(listen, options.Config.HTTP.Listen)
			options.Config.HTTP.AllowUnauthenticated = open
			if err := options.Config.Check("flags"); err != nil {
				return &usageError{cmd: cmd, err: err}
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
			for _, note := range d.Notes {
				d.Logger.Info("catalog entry replaced", "server", note.Name, "by", note.Winner.String(), "was", note.Loser.String())
			}
			if options.Config.HTTP.Listen != "" {
				return d.ServeHTTP(cmd.Context(), func(address string) error {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), address)
					return err
				})
			}
			in, out := stdio()
			return d.Serve(cmd.Context(), in, out)
		},
	}
	set := cmd.Flags()
	set.StringArrayVar(&servers, "server", nil, "`name` of a server that is active in this gateway; repeatable")
	_ = cmd.RegisterFlagCompletionFunc("server", f.completeServers()) // fails for flags that do not exist only
	set.StringSliceVar(&expose, "expose", nil, "`groups` to list: meta, dynamic, active, direct (default meta,dynamic,active)")
	set.StringVar(&prefix, "prefix", "", "name tools with the server's name (`server`) or without (none)")
	set.StringVar(&approve, "approve", "", "`mode` for servers nobody approved: ask, all or pinned (default ask)")
	set.StringVar(&listen, "http", "", "serve HTTP on `address`: 127.0.0.1:8811, or unix:PATH")
	set.BoolVar(&open, "allow-unauthenticated", false, "over HTTP, ask for no token (unix sockets and loopback only)")
	return cmd
}
