package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newRemove(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME...",
		Short: "Make servers inactive and forget their settings",
		Long: `Make servers inactive and forget their settings. Gateways that run take their
tools off the list at once. What was approved stays approved; what is asked
about them, and not answered yet, is not asked any more.` + exits,
		Example:           `  dockgate rm filesystem`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeFrom(active),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				for _, server := range args {
					if err := d.Deactivate(cmd.Context(), principal.Local, server); err != nil {
						return err
					}
					names, err := approved(cmd.Context(), d)
					if err != nil {
						return err
					}
					if slices.Contains(names, server) {
						tell(cmd, "%s is not active any more; to take its approval back: dockgate revoke %s", server, server)
					} else {
						tell(cmd, "%s is not active any more", server)
					}
				}
				return nil
			})
		},
	}
}
