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
	var prefix, approve string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output",
		Long: `Serve MCP on standard input and output, for an MCP client to start.

The tools of all active servers are listed; each server starts as a container
on its first call and stops when idle. When as many run as may (five, unless the
configuration says otherwise) the one that was idle for longest makes room. What
says auto_start in its entry is started in the background. A server that nobody
has approved yet is asked for: in the client, if it can show a form, else with
"dockgate approve".` + exits,
		Example: `  dockgate serve
  dockgate serve --server filesystem --prefix none
  dockgate serve --approve pinned --expose direct`,
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
	return cmd
}
