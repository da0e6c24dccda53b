package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/pull"
)

// demoServer is the server that the demo plays with.
const demoServer = "demo"

func newDemo(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Play one session of an MCP client in the terminal",
		Long: `Play one session of an MCP client in the terminal: start a gateway with a state
folder of its own, list, approve, call, see the container from inside, stop, and
see that nothing is left. It uses the built-in configuration and the image that
"make images" builds.

The approval is asked for at the terminal, or on standard input where there is
none; DEMO_YES=1 gives it.` + exits,
		Example: `  dockgate demo
  DEMO_YES=1 dockgate demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dir, err := f.demoFolder()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			stage, err := f.setStage(cmd, dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stage.daemon.Close()) }()
			return stage.play(cmd.Context())
		},
	}
}

// demoFolder makes a folder that goes with the demo: in the image, which has no
// other, below the state folder.
func (f *flags) demoFolder() (string, error) {
	options, err := f.around()
	if err != nil || options.Outside == nil {
		return os.MkdirTemp("", "dockgate-demo-*")
	}
	if err := os.MkdirAll(options.State, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(options.State, "demo-*")
}

// A stage is where the demo plays.
type stage struct {
	flags *flags
	dir   string
	out   io.Writer
	paint paint
	// daemon looks at the same state folder as the gateway.
	daemon *daemon.Daemon
	// asked gets the person's answer to each question.
	asked chan approval.Answer
	cmd   *cobra.Command
	// forms is how many questions were shown.
	forms atomic.Int32
}

// setStage makes the state folder, and sees to it that the image is there.
func (f *flags) setStage(cmd *cobra.Command, dir string) (*stage, error) {
	options, err := f.around()
	if err != nil {
		return nil, err
	}
	options.State, options.Logger = filepath.Join(dir, "state"), f.logger(slog.LevelError)
	if err := os.WriteFile(demoConfig(dir), nil, 0o600); err != nil {
		return nil, err
	}
	d, err := daemon.Open(cmd.Context(), options)
	if err != nil {
		return nil, err
	}
	if _, err := prepare(cmd, d, demoServer); err != nil {
		var image *pull.Error
		if errors.As(err, &image) {
			err = &demoImageError{err}
		}
		return nil, errors.Join(err, d.Close())
	}
	return &stage{
		flags: f, dir: dir, out: cmd.OutOrStdout(), paint: paintFor(cmd.OutOrStdout()), daemon: d,
		asked: make(chan approval.Answer, 1), cmd: cmd,
	}, nil
}

// demoConfig is an empty file, so that the user's own configuration is not used.
func demoConfig(dir string) string { return filepath.Join(dir, "config.yaml") }

// A demoImageError is the demo without its image.
type demoImageError struct{ err error }

func (e *demoImageError) Error() string { return e.err.Error() }

func (e *demoImageError) Unwrap() error { return e.err }

// Hint says where the image comes from.
func (e *demoImageError) Hint() string { return "build it in the source folder with: make images" }

// play plays the session. A person who does not approve ends it early.
func (s *stage) play(ctx context.Context) error {
	client, err := s.startGateway(ctx)
	if err != nil {
		return err
	}
	err = s.session(ctx, client)
	if closed := client.Close(); err == nil {
		err = closed
	}
	var refused *refusedError
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), s.say("")) // below a bar or a prompt
	case errors.As(err, &refused):
		if err := s.say("", "   "+refused.Error(), "   Nothing was started, as you wish."); err != nil {
			return err
		}
	case err != nil:
		return client.explain(err)
	}
	return s.farewell(ctx)
}

func (s *stage) session(ctx context.Context, client *visitor) error {
	if err := s.introduce(ctx, client); err != nil {
		return err
	}
	if err := s.title("2", "The client calls a tool. Nobody has approved the server yet, so you are asked."); err != nil {
		return err
	}
	if err := s.approvedCall(ctx, client); err != nil {
		return err
	}
	if err := s.running(ctx); err != nil {
		return err
	}
	if err := s.title("3", "The server is warm now."); err != nil {
		return err
	}
	for _, c := range []struct{ tool, arguments string }{
		{"echo", `{"text":"hello again"}`},
		{"add", `{"a":2,"b":40}`},
		{"sleep", `{"ms":1500}`},
	} {
		if err := s.call(ctx, client, c.tool, c.arguments); err != nil {
			return err
		}
	}
	if err := s.title("4", "What the server sees from inside its container."); err != nil {
		return err
	}
	return s.call(ctx, client, "sandbox", `{}`)
}

func (s *stage) introduce(ctx context.Context, client *visitor) error {
	if err := s.title("1", "An MCP client starts the gateway and lists its tools. No container runs for that."); err != nil {
		return err
	}
	if err := s.say(s.paint.dim("   $ dockgate serve --server " + demoServer)); err != nil {
		return err
	}
	tools, err := client.list(ctx)
	if err != nil {
		return err
	}
	own := 0
	for _, t := range tools {
		if !strings.HasPrefix(t.Name, demoServer) {
			own++
			continue
		}
		if err := s.say(fmt.Sprintf("   %s %s", s.paint.bold(fmt.Sprintf("%-14s", clean(t.Name))), shorten(clean(t.Description), 58))); err != nil {
			return err
		}
	}
	return s.say(fmt.Sprintf("   and %d tools of the gateway itself", own))
}

// approvedCall makes the first call, which has to be approved. A person may
// take longer than a call waits: then the call is made again.
func (s *stage) approvedCall(ctx context.Context, client *visitor) error {
	for {
		err := s.call(ctx, client, "echo", `{"text":"hello"}`)
		var refused *refusedError
		if !errors.As(err, &refused) || refused.code != consent.CodePending {
			return err
		}
		select {
		case answer := <-s.asked:
			if answer != approval.Approve {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// call makes a call and shows it.
func (s *stage) call(ctx context.Context, client *visitor, tool, arguments string) error {
	name, err := client.name(tool)
	if err != nil {
		return err
	}
	shown := fmt.Sprintf("   %s %s", s.paint.bold(clean(name)), arguments)
	if err := s.say(shown); err != nil {
		return err
	}
	begun, forms := time.Now(), s.forms.Load()
	signs := 0
	result, err := client.call(ctx, name, arguments, func(done, total float64) {
		signs++
		s.progress(done, total)
	})
	if err != nil {
		return err
	}
	took := time.Since(begun)
	for line := range strings.SplitSeq(strings.TrimRight(result, "\n"), "\n") {
		if err := s.say("   " + s.paint.green("→ ") + clean(line)); err != nil {
			return err
		}
	}
	if forms != s.forms.Load() {
		return nil // the time was the person's
	}
	note := fmt.Sprintf("     %s", took.Round(10*time.Microsecond))
	if signs > 0 {
		note += fmt.Sprintf(", %d signs of progress on the way", signs)
	}
	return s.say(s.paint.dim(note))
}

// progress draws a bar that the next line overwrites, on a terminal only.
func (s *stage) progress(done, total float64) {
	const width = 30
	if !isTerminal(s.out) || total <= 0 {
		return
	}
	full := min(max(int(done/total*width), 0), width)
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	end := ""
	if done >= total {
		end = "\r\x1b[K"
	}
	_, _ = fmt.Fprintf(s.out, "\r   %s %3.0f%%%s", bar, done/total*100, end)
}

// running shows the container.
func (s *stage) running(ctx context.Context) error {
	containers, err := s.daemon.Running(ctx)
	if err != nil {
		return err
	}
	for _, c := range containers {
		if err := s.say(fmt.Sprintf("   It runs in container %s.", shortDigest(c.ID))); err != nil {
			return err
		}
	}
	return nil
}

// farewell shows what is left: nothing but the record.
func (s *stage) farewell(ctx context.Context) error {
	if err := s.title("5", "The client leaves, and the gateway takes everything with it."); err != nil {
		return err
	}
	containers, err := s.daemon.Running(ctx)
	if err != nil {
		return err
	}
	if len(containers) > 0 {
		return fmt.Errorf("the gateway has left %s", count(len(containers), "container"))
	}
	report, err := audit.Verify(daemon.AuditDir(s.daemon.State))
	if err != nil {
		return err
	}
	if !report.Intact() {
		return errors.New("the audit record is not intact")
	}
	records := 0
	for _, chain := range report.Chains {
		records += chain.Records
	}
	return s.say("   containers left: 0", fmt.Sprintf("   audit record:    %d records, intact", records), "")
}

func (s *stage) say(lines ...string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(s.out, line); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) title(number, text string) error {
	return s.say("", s.paint.bold(number+"  "+text))
}

// ask shows a question as the gateway put it, and gets the answer.
func (s *stage) ask(ctx context.Context, text string) (approval.Answer, error) {
	c, err := openConsole("the approval")
	var nobody *noTerminalError
	if os.Getenv("DEMO_YES") == "1" || errors.As(err, &nobody) {
		c, err = &console{in: bufio.NewReader(s.cmd.InOrStdin()), out: s.out, paint: s.paint}, nil
	}
	if err != nil {
		return approval.Dismiss, err
	}
	answer, err := s.askAt(ctx, c, text)
	return answer, errors.Join(err, c.Close())
}

func (s *stage) askAt(ctx context.Context, c *console, text string) (approval.Answer, error) {
	lines := []string{""}
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, "   "+c.paint.yellow("│ ")+clean(line))
	}
	if err := c.say(append(lines, "")...); err != nil {
		return approval.Dismiss, err
	}
	prompt := fmt.Sprintf("   Type %q to approve it, or nothing to deny it: ", demoServer)
	if os.Getenv("DEMO_YES") == "1" {
		return approval.Approve, c.say(c.paint.bold(prompt)+demoServer, "")
	}
	typed, err := c.ask(ctx, prompt)
	switch {
	case errors.Is(err, io.EOF):
		return approval.Deny, c.say("   (nobody answers; DEMO_YES=1 does)")
	case err != nil:
		return approval.Dismiss, err
	case typed == demoServer:
		return approval.Approve, c.say("")
	}
	return approval.Deny, nil
}

// A refusedError is a call that the gateway refused.
type refusedError struct{ code, text string }

func (e *refusedError) Error() string { return clean(e.text) }

// answerQuestion answers the gateway's requests to the client.
func (s *stage) answerQuestion(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != "elicitation/create" {
		return nil, fmt.Errorf("the demo does not answer %s", method)
	}
	var form struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(params, &form); err != nil {
		return nil, err
	}
	s.forms.Add(1)
	answer, err := s.ask(ctx, form.Message)
	if err != nil {
		return nil, err
	}
	select {
	case s.asked <- answer:
	default: // an earlier answer was not needed
	}
	if answer != approval.Approve {
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	return json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`), nil
}
