package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

func newUpdate(f *flags) *cobra.Command {
	expires := moment{direction: ahead}
	cmd := &cobra.Command{
		Use:   "update [NAME...]",
		Short: "Pull what the images of servers stand for now",
		Long: `Pull what the images of the named servers, or of all active ones, stand for
now, and show what changes. What changed is asked for at the terminal, as
"dockgate approve" does; without a terminal it is left for that. Until it is
approved, the server does not start. One server that fails keeps no other from
being updated; the command fails at the end.` + exitsApproval,
		Example: `  dockgate update
  dockgate update fetch`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeServers(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return update(cmd, d, args, &expires) })
		},
	}
	cmd.Flags().Var(&expires, "expires", "when the approval ends: 30d, 12h, or a date such as 2030-12-31")
	return cmd
}

func update(cmd *cobra.Command, d *daemon.Daemon, names []string, expires *moment) error {
	if len(names) == 0 {
		var err error
		if names, err = updatable(cmd, d); err != nil {
			return err
		}
	}
	var questions []approval.Question
	var failures []error
	for _, name := range names {
		question, err := renew(cmd, d, name)
		if cmd.Context().Err() != nil {
			return err
		}
		if err != nil {
			failures = append(failures, err)
		}
		if question != nil {
			questions = append(questions, *question)
		}
	}
	return errors.Join(errors.Join(failures...), answer(cmd, d, questions, expires))
}

// renew updates one server, and returns what is to be asked about it; nil if
// nothing is.
func renew(cmd *cobra.Command, d *daemon.Daemon, name string) (*approval.Question, error) {
	report, done := pullProgress(cmd, name)
	found, err := d.Update(cmd.Context(), principal.Local, name, report)
	if cleared := done(); err == nil {
		err = cleared
	}
	if err != nil {
		return nil, err
	}
	if err := printUpdate(cmd, name, found); err != nil {
		return nil, err
	}
	return d.Ask(cmd.Context(), principal.Local, found.Plan)
}

// answer has questions answered at the terminal, or left if there is none.
func answer(cmd *cobra.Command, d *daemon.Daemon, questions []approval.Question, expires *moment) error {
	if len(questions) == 0 {
		return nil
	}
	c, err := openConsole("update")
	var nobody *noTerminalError
	if errors.As(err, &nobody) {
		left := &leftError{}
		for _, question := range questions {
			left.servers = append(left.servers, question.Server)
		}
		return left
	}
	if err != nil {
		return err
	}
	return errors.Join(decide(cmd, d, questions, approveAt(c, expires)), c.Close())
}

// updatable returns the active servers that have an image and what they need.
func updatable(cmd *cobra.Command, d *daemon.Daemon) ([]string, error) {
	names, err := active(cmd.Context(), d)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		_, err := d.Planner.Plan(cmd.Context(), principal.Local, name)
		if err != nil && !plan.Unresolved(err) {
			tell(cmd, "left out: %v", err)
			continue
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		tell(cmd, "no server is active; name one, or make one active with: dockgate add NAME")
	}
	return found, nil
}

func printUpdate(cmd *cobra.Command, name string, found daemon.Update) error {
	out := cmd.OutOrStdout()
	paint := paintFor(out)
	texts := make([]string, 0, len(found.Images))
	for _, image := range found.Images {
		texts = append(texts, renewed(image))
	}
	if len(texts) == 0 {
		texts = append(texts, "is not run here, and has no image")
	}
	for _, text := range texts {
		if _, err := fmt.Fprintf(out, "%s: %s\n", paint.bold(name), clean(text)); err != nil {
			return err
		}
	}
	for _, line := range paintDiff(paint, found.Changes) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

func renewed(image daemon.Renewed) string {
	switch {
	case image.Before.Pin.Digest == "":
		return image.After.Ref + " is " + pin(image.After)
	case image.Before.Pin != image.After.Pin:
		return fmt.Sprintf("%s was %s, is %s", image.After.Ref, pin(image.Before), pin(image.After))
	}
	return image.After.Ref + " is still " + pin(image.After)
}

func pin(image sandbox.Image) string {
	if image.Pin.Kind == sandbox.LocalID {
		return image.Pin.Digest + " (local)"
	}
	return image.Pin.Digest
}
