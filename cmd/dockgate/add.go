package main

import (
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newAdd(f *flags) *cobra.Command {
	var assignments []string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a server active for you, or change its settings",
		Long: `Make a server of the catalog active for you, or change its settings. Gateways
that run list its tools at once; it starts on its first call, once you have
approved it.

Settings that are not named stay. Lists are written with commas, or by naming
the setting again; dots lead into objects; a setting without a value is unset.
"dockgate catalog show NAME" says which settings there are.` + exits,
		Example: `  dockgate add fetch
  dockgate add filesystem --set paths=$HOME/notes,$HOME/drafts
  dockgate add memory --set dir=`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeServers()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				if _, err := d.Configure(cmd.Context(), principal.Local, args[0], assignments); err != nil {
					return err
				}
				return tellNext(cmd, d, args[0])
			})
		},
	}
	cmd.Flags().StringArrayVar(&assignments, "set", nil, "`key=value` of a setting; repeatable")
	return cmd
}

// tellNext says what comes after a server was made active.
func tellNext(cmd *cobra.Command, d *daemon.Daemon, server string) error {
	standing, err := d.Standing(cmd.Context(), principal.Local, server)
	if err != nil {
		return err
	}
	if standing.State == daemon.StateApproved {
		tell(cmd, "%s is active and approved; it starts on its first call", server)
		return nil
	}
	tell(cmd, "%s is active; it asks for your approval on its first call, or now:", server)
	tell(cmd, "  dockgate plan %s --pull   what it would be and may do", server)
	tell(cmd, "  dockgate approve %s", server)
	if entry, err := d.Catalog().Server(server); err == nil && entry.LogsIn() {
		tell(cmd, "  dockgate login %s   then, in the browser", server)
	}
	return nil
}
