package main

import (
	"fmt"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

func newPlan(f *flags) *cobra.Command {
	var out output
	var pull bool
	cmd := &cobra.Command{
		Use:   "plan SERVER",
		Short: "Show the container of a server, and what it may do",
		Long: `Show the container that a server would run in, the rights that an approval
grants it, the digests of both, and whether it is approved. Nothing is started,
and nothing is pulled without --pull.` + exits,
		Example: `  dockgate plan filesystem
  dockgate plan fetch --pull --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeServers()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				made, err := d.Planner.Plan(cmd.Context(), principal.Local, args[0])
				if pull && (err == nil || plan.Unresolved(err)) {
					made, err = prepare(cmd, d, args[0])
				}
				if err != nil {
					return err
				}
				return printPlan(cmd, d, made, out)
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().BoolVar(&pull, "pull", false, "pull the image if it is not here")
	return cmd
}

// prepare pulls what a server needs, with a sign of progress, and plans it.
func prepare(cmd *cobra.Command, d *daemon.Daemon, server string) (plan.Plan, error) {
	report, done := pullProgress(cmd, server)
	made, err := d.Planner.Prepare(cmd.Context(), principal.Local, server, report)
	if cleared := done(); err == nil {
		err = cleared
	}
	return made, err
}

func printPlan(cmd *cobra.Command, d *daemon.Daemon, made plan.Plan, out output) error {
	verdict := d.Book.Check(approval.Key{Server: made.Entry.Name, GrantDigest: made.GrantDigest})
	return out.print(cmd, struct {
		Spec        sandbox.Spec        `json:"spec"`
		SpecDigest  string              `json:"spec_digest"`
		Confinement sandbox.Confinement `json:"confinement"`
		Grant       sandbox.Grant       `json:"grant"`
		GrantDigest string              `json:"grant_digest"`
		Approved    bool                `json:"approved"`
	}{made.Spec, made.Digest, sandbox.Confined(), made.Grant, made.GrantDigest, verdict.State == approval.Approved}, func() error {
		return describePlan(cmd, made, verdict)
	})
}

func describePlan(cmd *cobra.Command, made plan.Plan, verdict approval.Verdict) error {
	paint := paintFor(cmd.OutOrStdout())
	lines := []string{paint.bold("What it would be, and may do")}
	lines = append(lines, indent(made.Grant.Lines())...)
	if made.Spec.Remote == nil {
		lines = append(lines, "", paint.bold("The container"))
		lines = append(lines, indent(container(made.Spec))...)
	}
	lines = append(lines, "", paint.bold("Digests"))
	what := "container: "
	if made.Spec.Remote != nil {
		what = "server:    "
	}
	lines = append(lines, indent([]string{what + made.Digest, "grant:     " + made.GrantDigest})...)
	lines = append(lines, "")
	lines = append(lines, verdictLines(paint, verdict, made)...)
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "  " + clean(line)
	}
	return out
}

// container says what an approval does not decide.
func container(spec sandbox.Spec) []string {
	if spec.Exec != "" {
		return []string{"none of ours: a process in " + spec.Exec + ", which is never started, stopped or removed"}
	}
	lines := []string{
		"root:      read only; no capabilities, no new privileges, default seccomp, an init process",
		fmt.Sprintf("limits:    no swap, %d open files, %s of shared memory, processor weight %d of 1024",
			spec.Limits.Files, units.BytesSize(float64(spec.Limits.Shm)), spec.Limits.CPUShares),
		fmt.Sprintf("lifetime:  %.0f hours; what it writes is not kept by the engine", sandbox.Lifetime.Hours()),
	}
	for _, r := range spec.Runs {
		for _, t := range r.Tmpfs {
			lines = append(lines, fmt.Sprintf("memory:    %s: %s, at most %s", r.Tool, t.Target, units.BytesSize(float64(t.Size))))
		}
	}
	if spec.WorkingDir != "" {
		lines = append(lines, "folder:    "+spec.WorkingDir)
	}
	for _, t := range spec.Tmpfs {
		lines = append(lines, fmt.Sprintf("memory:    %s, at most %s", t.Target, units.BytesSize(float64(t.Size))))
	}
	return lines
}

func verdictLines(paint paint, verdict approval.Verdict, made plan.Plan) []string {
	ask := phrase("; to approve it: dockgate approve " + made.Entry.Name)
	switch verdict.State {
	case approval.Approved:
		return []string{paint.green("approved")}
	case approval.Expired:
		return []string{paint.yellow("the approval expired") + ask}
	case approval.Denied:
		return []string{paint.red("denied") + ask}
	case approval.Changed:
		lines := []string{paint.yellow("changed since it was approved") + ask}
		if verdict.Previous != nil {
			lines = append(lines, paintDiff(paint, sandbox.DiffGrants(*verdict.Previous, made.Grant))...)
		}
		return lines
	case approval.Missing:
	}
	return []string{paint.yellow("not approved") + ask}
}

// paintDiff colours the lines of a difference.
func paintDiff(paint paint, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range indent(lines) {
		switch {
		case strings.HasPrefix(line, "  - "):
			out[i] = paint.red(line)
		case strings.HasPrefix(line, "  + "):
			out[i] = paint.green(line)
		default:
			out[i] = line
		}
	}
	return out
}
