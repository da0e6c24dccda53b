package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

// The channels of decisions that are made here.
const (
	channelTerminal = "terminal"
	channelScripted = "scripted"
)

// A person answers questions, at the terminal or by a flag.
type person func(ctx context.Context, question approval.Question) (consent.Reply, error)

// A leftError says that questions were left open.
type leftError struct{ servers []string }

func (e *leftError) Error() string {
	return "not approved: " + strings.Join(e.servers, ", ")
}

// Hint says how they are answered.
func (e *leftError) Hint() string {
	return "answer later with: dockgate approve " + strings.Join(e.servers, " ")
}

// Unwrap gives the error its exit code.
func (e *leftError) Unwrap() error {
	return &consent.PendingError{Server: strings.Join(e.servers, ", ")}
}

// decide lets a person answer questions, one after the other, and keeps each
// answer at once. Those that are dismissed are left open, which is the error.
func decide(cmd *cobra.Command, d *daemon.Daemon, questions []approval.Question, answer person) error {
	var left []string
	for _, question := range questions {
		reply, err := answer(cmd.Context(), question)
		if err != nil {
			return err
		}
		if reply.Answer == approval.Dismiss {
			left = append(left, question.Server)
			continue
		}
		err = d.Book.Decide(cmd.Context(), question, approval.Decision{
			Answer: reply.Answer, Channel: reply.Channel, By: principal.Local, Expires: reply.Expires, ForSession: reply.ForSession,
		})
		if err != nil {
			return err
		}
		if reply.Answer == approval.Deny {
			tell(cmd, "denied: %s", question.Summary())
			continue
		}
		tell(cmd, "approved: %s", question.Summary())
	}
	if len(left) > 0 {
		return &leftError{servers: left}
	}
	return nil
}

// tries is how often a name may be mistyped.
const tries = 3

// approveAt asks at a console: the server's name approves, nothing leaves the
// question open.
func approveAt(c *console, expires *moment) person {
	return func(ctx context.Context, question approval.Question) (consent.Reply, error) {
		if err := c.show(question); err != nil {
			return consent.Reply{}, err
		}
		reply := consent.Reply{Answer: approval.Approve, Channel: channelTerminal, Expires: expires.Time}
		if question.Kind == approval.KindCall {
			hint := fmt.Sprintf("%q for all calls of %q in this session", question.Server+" session", clean(question.Call.Tool))
			if err := c.say("  " + hint); err != nil {
				return consent.Reply{}, err
			}
		}
		answer, err := c.typed(ctx, question)
		if err != nil || answer == "" {
			return consent.Reply{}, err
		}
		reply.ForSession = answer != question.Server
		return reply, nil
	}
}

// denyAt asks at a console whether a question is to be denied.
func denyAt(c *console) person {
	return func(ctx context.Context, question approval.Question) (consent.Reply, error) {
		if err := c.show(question); err != nil {
			return consent.Reply{}, err
		}
		answer, err := c.ask(ctx, "Deny it? [y/N] ")
		if err != nil && !errors.Is(err, io.EOF) {
			return consent.Reply{}, err
		}
		if lower := strings.ToLower(answer); lower != "y" && lower != "yes" {
			return consent.Reply{}, nil
		}
		return consent.Reply{Answer: approval.Deny, Channel: channelTerminal}, nil
	}
}

// scripted gives the same answer to every question.
func scripted(cmd *cobra.Command, answer approval.Answer, expires *moment) person {
	return func(_ context.Context, question approval.Question) (consent.Reply, error) {
		for _, line := range question.Lines() {
			tell(cmd, "%s", line)
		}
		return consent.Reply{Answer: answer, Channel: channelScripted, Expires: expires.Time}, nil
	}
}

// show puts a question in front of the person.
func (c *console) show(question approval.Question) error {
	lines := question.Lines()
	shown := []string{"", c.paint.bold(lines[0])}
	for _, line := range lines[1:] {
		switch {
		case strings.HasPrefix(line, "- "):
			line = c.paint.red(line)
		case strings.HasPrefix(line, "+ "):
			line = c.paint.green(line)
		case strings.HasPrefix(line, "warning:"):
			line = c.paint.yellow(line)
		}
		shown = append(shown, "  "+line)
	}
	return c.say(append(shown, "")...)
}

// typed asks for the name of a question's server until it is typed, or nothing
// is, and returns it. For a call the name with "session" after it will do too.
func (c *console) typed(ctx context.Context, question approval.Question) (string, error) {
	server := question.Server
	for range tries {
		answer, err := c.ask(ctx, fmt.Sprintf("Type %q to approve it, or nothing to leave it open: ", server))
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", err
		case answer == server, answer == "", answer == server+" session" && question.Kind == approval.KindCall:
			return answer, nil
		}
		if err := c.say(fmt.Sprintf("That is not %q.", server)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// tick lets the person choose among questions.
func (c *console) tick(ctx context.Context, questions []approval.Question) ([]approval.Question, error) {
	for i, question := range questions {
		line := fmt.Sprintf("%3d  %s  (question %s, asked %s)", i+1, question.Summary(), question.ID, ago(question.Asked))
		if err := c.say(line); err != nil {
			return nil, err
		}
	}
	for range tries {
		answer, err := c.ask(ctx, `Which ones? (numbers such as "1 3", "all", or nothing) `)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		chosen, err := chosen(answer, questions)
		if err == nil {
			return chosen, nil
		}
		if err := c.say(err.Error()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// chosen reads which questions the numbers mean.
func chosen(answer string, questions []approval.Question) ([]approval.Question, error) {
	if strings.EqualFold(answer, "all") {
		return questions, nil
	}
	var ticked []approval.Question
	seen := make(map[int]bool)
	for _, word := range strings.Fields(strings.ReplaceAll(answer, ",", " ")) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(questions) {
			return nil, fmt.Errorf("%q is not a number from 1 to %d", word, len(questions))
		}
		if !seen[n] {
			ticked = append(ticked, questions[n-1])
		}
		seen[n] = true
	}
	return ticked, nil
}

// A scriptedError is a request to approve without a person, which the
// configuration does not allow.
type scriptedError struct{ flag, file string }

func (e *scriptedError) Error() string {
	return e.flag + " is refused: the configuration does not have approval.scripted: true"
}

// Hint says where it is set, and why it is not set by itself.
func (e *scriptedError) Hint() string {
	return "whoever sets it in " + e.file + " lets every program of this user approve, a model with a shell included"
}

// mayScript refuses decisions without a person, unless the user's
// configuration allows them.
func (f *flags) mayScript(d *daemon.Daemon, flag string) error {
	if d.Config.Approval.Scripted {
		return nil
	}
	file, _ := f.configFile(d.Home)
	return &scriptedError{flag: flag, file: file}
}
