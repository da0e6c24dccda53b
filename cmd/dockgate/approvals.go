package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func join(names []string) string { return strings.Join(names, ", ") }

func newApprovals(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List what is approved, and what is asked",
		Long:  `List what is approved, and what waits for an answer.` + exits,
		Example: `  dockgate approvals
  dockgate approvals --json
  dockgate approvals export > approvals.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return listApprovals(cmd, d, out) })
		},
	}
	out.flag(cmd)
	cmd.AddCommand(newApprovalsExport(f), newApprovalsImport(f))
	return cmd
}

func listApprovals(cmd *cobra.Command, d *daemon.Daemon, out output) error {
	approvals, questions := d.Book.Approvals(), d.Book.Questions(approval.ProgressPending)
	return out.print(cmd, struct {
		Approvals []approval.Approval `json:"approvals"`
		Questions []approval.Question `json:"questions"`
	}{append([]approval.Approval{}, approvals...), append([]approval.Question{}, questions...)}, func() error {
		return tabulateApprovals(cmd, approvals, questions)
	})
}

func tabulateApprovals(cmd *cobra.Command, approvals []approval.Approval, questions []approval.Question) error {
	var rows [][]string
	for _, a := range approvals {
		rows = append(rows, []string{
			a.Server, state(a), countTools(a), a.Channel, a.Decided.Local().Format(time.DateTime), ends(a.Expires), shortDigest(a.Grant.Pin.Digest),
		})
	}
	for _, q := range questions {
		rows = append(rows, []string{q.Server, "asked (" + q.ID + ")", "", "", q.Asked.Local().Format(time.DateTime), "", shortDigest(q.Grant.Pin.Digest)})
	}
	if len(rows) == 0 {
		tell(cmd, "nothing is approved, and nothing is asked")
		return nil
	}
	return writeTable(cmd.OutOrStdout(), []string{"SERVER", "STATE", "TOOLS", "CHANNEL", "SINCE", "EXPIRES", "IMAGE"}, rows)
}

func state(a approval.Approval) string {
	if !a.Expires.IsZero() && time.Now().After(a.Expires) {
		return "expired"
	}
	return "approved"
}

// countTools is empty as long as the server was not listed.
func countTools(a approval.Approval) string {
	if a.Tools == nil {
		return "not seen yet"
	}
	return fmt.Sprint(len(a.Tools))
}

func ends(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func newApprovalsExport(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Print approvals as JSON, for another machine",
		Long: `Print the approvals of the named servers, or of all, as JSON for "dockgate
approvals import". Approvals of images that are in no registry cannot be
exported.` + exits,
		Example:           `  dockgate approvals export fetch time > approvals.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeFrom(approved),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				known, err := approved(cmd.Context(), d)
				if err != nil {
					return err
				}
				for _, name := range args {
					if !slices.Contains(known, name) {
						return notApproved(cmd, d, name)
					}
				}
				exported, err := d.Book.Export(args...)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(exported)
				return err
			})
		},
	}
}

func newApprovalsImport(f *flags) *cobra.Command {
	expires := moment{direction: ahead}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Approve what was exported elsewhere",
		Long: `Approve what was exported elsewhere, tools included: all of it or nothing. It
shows each approval and needs a terminal and the server's name typed; scripts
use "dockgate approve --from".` + exitsApproval,
		Example: `  dockgate approvals import approvals.json
  dockgate approvals import approvals.json --expires 90d`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			shown, err := approval.ParseExport(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				err := atConsole("approvals import", func(c *console) error { return c.confirm(cmd, shown) })
				if err != nil {
					return err
				}
				return importApprovals(cmd, d, data, approval.Decision{
					Channel: channelTerminal, By: principal.Local, Expires: expires.Time,
				})
			})
		},
	}
	cmd.Flags().Var(&expires, "expires", "when it ends at the latest: 30d, 12h, or a date such as 2030-12-31")
	return cmd
}

// confirm shows approvals and has each server's name typed.
func (c *console) confirm(cmd *cobra.Command, approvals []approval.Approval) error {
	for _, a := range approvals {
		question := approval.Question{Server: a.Server, Grant: a.Grant, GrantDigest: a.GrantDigest, Kind: approval.KindFirst}
		if err := c.show(question); err != nil {
			return err
		}
		if len(a.Tools) > 0 {
			if err := c.say("  tools:     "+clean(join(toolNames(a))), ""); err != nil {
				return err
			}
		}
		confirmed, err := c.typed(cmd.Context(), question)
		if err != nil {
			return err
		}
		if confirmed == "" {
			return &leftError{servers: []string{a.Server}}
		}
	}
	return nil
}

func toolNames(a approval.Approval) []string {
	names := make([]string, 0, len(a.Tools))
	for name := range a.Tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func importApprovals(cmd *cobra.Command, d *daemon.Daemon, data []byte, decision approval.Decision) error {
	imported, err := d.Book.Import(cmd.Context(), data, decision)
	if err != nil {
		return err
	}
	names := make([]string, len(imported))
	for i, a := range imported {
		names[i] = a.Server
	}
	if len(names) == 0 {
		return errors.New("the file holds no approvals")
	}
	tell(cmd, "approved: %s", join(names))
	return nil
}
