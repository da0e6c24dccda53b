package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

// approveFlags are those of approve and deny.
type approveFlags struct {
	yes     bool
	from    string
	expires moment
}

func newApprove(f *flags) *cobra.Command {
	own := approveFlags{expires: moment{direction: ahead}}
	cmd := &cobra.Command{
		Use:   "approve [NAME...]",
		Short: "Approve what servers are and may do",
		Long: `Approve what servers are and may do, or tools that are new or have changed.

With names (of servers, or ids of questions) it answers what is asked about
them; if nothing is, it pulls the server's image and asks. Without names it
lists what is asked, to choose from. A gateway that waits for an answer sees it
at once.

An approval pins the image, the rights and the tools: what changes later is
asked for again. A call that a tool rule has confirmed is approved once, or for
the session. It needs a terminal and the server's name typed, so that a program
does not approve by accident. --yes and --from work only if the
configuration has "approval: {scripted: true}".` + exitsApproval,
		Example: `  dockgate approve
  dockgate approve filesystem --expires 30d
  dockgate approve --from approvals.json`,
		ValidArgsFunction: f.completeFrom(askedOrSupported),
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return f.approve(cmd, d, own, args) })
		},
	}
	cmd.Flags().BoolVar(&own.yes, "yes", false, "approve what is named without asking")
	cmd.Flags().StringVar(&own.from, "from", "", "approve what is in a `file` of \"dockgate approvals export\"")
	cmd.Flags().Var(&own.expires, "expires", "when it ends: 30d, 12h, or a date such as 2030-12-31")
	return cmd
}

func (f *flags) approve(cmd *cobra.Command, d *daemon.Daemon, own approveFlags, names []string) error {
	switch {
	case own.from != "" && (own.yes || len(names) > 0):
		return &usageError{cmd: cmd, err: errors.New("--from approves all servers of the file, and takes neither names nor --yes")}
	case own.from != "":
		return f.approveFrom(cmd, d, own)
	case own.yes && len(names) == 0:
		return &usageError{cmd: cmd, err: errors.New("--yes needs the names of servers")}
	case own.yes:
		if err := f.mayScript(d, "--yes"); err != nil {
			return err
		}
		questions, err := questionsOf(cmd, d, names)
		if err != nil {
			return err
		}
		return decide(cmd, d, questions, scripted(cmd, approval.Approve, &own.expires))
	}
	return atConsole("approve", func(c *console) error {
		questions, err := toAnswer(cmd, d, c, names)
		if err != nil {
			return err
		}
		return decide(cmd, d, questions, approveAt(c, &own.expires))
	})
}

func (f *flags) approveFrom(cmd *cobra.Command, d *daemon.Daemon, own approveFlags) error {
	if err := f.mayScript(d, "--from"); err != nil {
		return err
	}
	data, err := os.ReadFile(own.from)
	if err != nil {
		return err
	}
	return importApprovals(cmd, d, data, approval.Decision{
		Channel: channelScripted, By: principal.Local, Expires: own.expires.Time,
	})
}

// atConsole opens the console for do.
func atConsole(what string, do func(*console) error) error {
	c, err := openConsole(what)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// toAnswer returns the questions to answer: those about the names, or else
// those that the person ticks.
func toAnswer(cmd *cobra.Command, d *daemon.Daemon, c *console, names []string) ([]approval.Question, error) {
	if len(names) > 0 {
		return questionsOf(cmd, d, names)
	}
	questions := d.Book.Questions(approval.ProgressPending)
	switch len(questions) {
	case 0:
		tell(cmd, "nothing waits for approval")
		return nil, nil
	case 1:
		return questions, nil
	}
	return c.tick(cmd.Context(), questions)
}

// questionsOf returns what is asked about each name; where nothing is, it asks
// whether the server may start as it would now.
func questionsOf(cmd *cobra.Command, d *daemon.Daemon, names []string) ([]approval.Question, error) {
	var questions []approval.Question
	for _, name := range names {
		pending := d.Pending(name)
		if len(pending) > 0 {
			questions = append(questions, pending...)
			continue
		}
		made, err := prepare(cmd, d, name)
		if err != nil {
			return nil, err
		}
		question, err := d.Ask(cmd.Context(), principal.Local, made)
		if err != nil {
			return nil, err
		}
		if question == nil {
			tell(cmd, "%s is approved already", name)
			continue
		}
		questions = append(questions, *question)
	}
	return questions, nil
}

func newDeny(f *flags) *cobra.Command {
	own := approveFlags{}
	cmd := &cobra.Command{
		Use:   "deny [NAME...]",
		Short: "Deny what servers ask for",
		Long: `Deny what servers ask for. With names (of servers, or ids of questions) it
answers what is asked about them, without names it lists what is asked. Gateways
that run refuse the server until it is approved or they are started anew.

It needs a terminal. --yes works only if the configuration has
"approval: {scripted: true}".` + exitsApproval,
		Example: `  dockgate deny
  dockgate deny fetch`,
		ValidArgsFunction: f.completeFrom(asked),
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return f.deny(cmd, d, own, args) })
		},
	}
	cmd.Flags().BoolVar(&own.yes, "yes", false, "deny what is named without asking")
	return cmd
}

func (f *flags) deny(cmd *cobra.Command, d *daemon.Daemon, own approveFlags, names []string) error {
	for _, name := range names {
		if len(d.Pending(name)) == 0 {
			return &nothingAskedError{name: name}
		}
	}
	if own.yes {
		if len(names) == 0 {
			return &usageError{cmd: cmd, err: errors.New("--yes needs the names of servers")}
		}
		if err := f.mayScript(d, "--yes"); err != nil {
			return err
		}
		questions, err := questionsOf(cmd, d, names)
		if err != nil {
			return err
		}
		return decide(cmd, d, questions, scripted(cmd, approval.Deny, &moment{}))
	}
	return atConsole("deny", func(c *console) error {
		questions, err := toAnswer(cmd, d, c, names)
		if err != nil {
			return err
		}
		return decide(cmd, d, questions, denyAt(c))
	})
}

// A nothingAskedError is an answer to no question.
type nothingAskedError struct{ name string }

func (e *nothingAskedError) Error() string {
	return fmt.Sprintf("nothing about %q waits for an answer", e.name)
}

// Hint says how an approval is taken back.
func (e *nothingAskedError) Hint() string {
	return "to take an approval back: dockgate revoke " + e.name
}
