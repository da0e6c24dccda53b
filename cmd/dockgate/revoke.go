package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newRevoke(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME...",
		Short: "Take approvals back",
		Long: `Take every approval of servers back. Gateways that run refuse their tools from
then on; a container that runs is not stopped by it, see "dockgate stop".` + exits,
		Example:           `  dockgate revoke fetch`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeFrom(approved),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return revoke(cmd, d, args) })
		},
	}
}

func revoke(cmd *cobra.Command, d *daemon.Daemon, names []string) error {
	decision := approval.Decision{Channel: channelScripted, By: principal.Local}
	if isTerminal(cmd.InOrStdin()) {
		decision.Channel = channelTerminal
	}
	for _, name := range names {
		revoked, err := d.Book.Revoke(cmd.Context(), name, decision)
		if err != nil {
			return err
		}
		if len(revoked) == 0 {
			return notApproved(cmd, d, name)
		}
		tell(cmd, "revoked: %s of %s; if it runs, end it with: dockgate stop %s", count(len(revoked), "approval"), name, name)
	}
	return nil
}

// notApproved names the approved servers that are most like the name.
func notApproved(cmd *cobra.Command, d *daemon.Daemon, name string) error {
	names, err := approved(cmd.Context(), d)
	if err != nil {
		return err
	}
	failure := &notApprovedError{name: name}
	if len(names) > 0 {
		failure.nearest = catalog.Nearest(name, names)
	}
	return failure
}

// A notApprovedError is a server without an approval.
type notApprovedError struct {
	name    string
	nearest []string
}

func (e *notApprovedError) Error() string {
	if len(e.nearest) == 0 {
		return fmt.Sprintf("server %q is not approved; none is", e.name)
	}
	return fmt.Sprintf("server %q is not approved; nearest of those that are: %s", e.name, join(e.nearest))
}

// Hint says where approvals are listed.
func (e *notApprovedError) Hint() string { return "list what is approved with: dockgate approvals" }
