package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// executeFlags are those of execute.
type executeFlags struct {
	output
	arguments string
	stream    bool
}

func newExecute(f *flags) *cobra.Command {
	var own executeFlags
	cmd := &cobra.Command{
		Use:   "execute SERVER TOOL --args JSON",
		Short: "Call a tool of a server",
		Long: `Call a tool of a server: start the server, have it approved at the terminal if
it is not, call the tool, print the result, and stop the server. The arguments
are an object: as JSON, as @FILE, or as - for standard input. They are checked
against the tool's schema first, and the call is recorded.

--json prints {"success", "result"}, or {"success", "error"}. What the tool says
of its progress goes to standard error; with --stream it is part of the output.

Exit codes: 0 done, 1 used wrongly or the arguments do not fit, 2 there is no
such server or tool, or a configuration has mistakes, 3 the call or the server
failed, 4 the tool rules disable the tool, 5 something is not approved or was
denied.`,
		Example: `  dockgate execute github create_issue --args '{"repo":"a/b","title":"x"}'
  dockgate execute filesystem read_file --args @arguments.json --json
  echo '{"prompt":"a story"}' | dockgate execute ai write --args - --stream`,
		Args:              serverAndTool,
		ValidArgsFunction: f.completeTools(),
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := own.read(cmd)
			if err != nil {
				return &usageError{cmd: cmd, err: err}
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				ref := tool.Ref{Server: args[0], Name: args[1]}
				return d.Beside(cmd.Context(), func(ctx context.Context) error { return own.execute(ctx, cmd, d, ref, arguments) })
			})
		},
	}
	own.flag(cmd)
	cmd.Flags().StringVar(&own.arguments, "args", "", "the arguments: `JSON`, @file or -")
	cmd.Flags().BoolVar(&own.stream, "stream", false, "print progress as it comes on standard output")
	return cmd
}

// serverAndTool wants the two names, and shows how to write what was likely
// meant: the arguments stand after --args, and the names apart.
func serverAndTool(cmd *cobra.Command, args []string) error {
	err := cobra.ExactArgs(2)(cmd, args)
	if err == nil {
		return nil
	}
	wrong := &usageError{cmd: cmd, err: err}
	switch len(args) {
	case 1:
		for _, between := range []string{"__", ".", ":", "/"} {
			server, name, ok := strings.Cut(args[0], between)
			if ok && server != "" && name != "" {
				wrong.hint = fmt.Sprintf("name the server and the tool apart: %s %s %s --args '{}'", cmd.CommandPath(), quote(server), quote(name))
				return wrong
			}
		}
	case 3:
		if strings.HasPrefix(args[2], "{") {
			wrong.hint = fmt.Sprintf("put the arguments after --args: %s %s %s --args %s", cmd.CommandPath(), quote(args[0]), quote(args[1]), quote(args[2]))
		}
	}
	return wrong
}

// maxArguments is how long arguments may be, in bytes.
const maxArguments = 16 << 20

// read returns the arguments, wherever they are.
func (own executeFlags) read(cmd *cobra.Command) (json.RawMessage, error) {
	if !cmd.Flags().Changed("args") {
		return nil, errors.New("--args is missing; a tool without arguments takes '{}'")
	}
	text := []byte(own.arguments)
	var err error
	if path, isFile := strings.CutPrefix(own.arguments, "@"); isFile {
		if path == "" {
			return nil, errors.New("--args: a file's path is missing after @")
		}
		text, err = os.ReadFile(path)
	} else if own.arguments == "-" {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxArguments))
	}
	if err != nil {
		return nil, fmt.Errorf("--args: %w", err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, errors.New("--args is empty; a tool without arguments takes '{}'")
	}
	var decoded json.RawMessage
	if err := json.Unmarshal(text, &decoded); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("--args is not JSON: at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("--args is not JSON: %w", err)
	}
	if text[0] != '{' {
		return nil, errors.New("--args is not an object")
	}
	return text, nil
}

// execute makes the call and prints how it ended.
func (own executeFlags) execute(ctx context.Context, cmd *cobra.Command, d *daemon.Daemon, ref tool.Ref, arguments json.RawMessage) error {
	if !own.json {
		if err := own.say(cmd, "Executing: "+clean(ref.Server+":"+ref.Name), ""); err != nil {
			return err
		}
	}
	client := call.Client{
		Principal: principal.Local, Session: fmt.Sprintf("command-%d", os.Getpid()), Via: "command line",
		Person: personAtTerminal(cmd, d.Logger, ref.Server), ApprovalWait: time.Duration(d.Config.Approval.Wait),
		Waiting:  func(text string) { tell(cmd, "%s", clean(text)) },
		Progress: func(params json.RawMessage) { own.progress(cmd, params) },
	}
	if client.Person.Ask != nil {
		client.ApprovalWait = thinking
	}
	result, err := d.Desk.Execute(ctx, client, ref.Server, ref.Name, arguments)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := failureOf(ref, result, err)
	switch {
	case own.json && failed == nil:
		return writeJSON(cmd.OutOrStdout(), envelope{Success: true, Result: payload(result)})
	case own.json:
		err = writeJSON(cmd.OutOrStdout(), envelope{Error: failed})
	case failed == nil:
		return own.say(cmd, append([]string{paintFor(cmd.OutOrStdout()).green("✓") + " Success", "", "Result:"}, indent(resultLines(result))...)...)
	default:
		err = own.say(cmd, paintFor(cmd.OutOrStdout()).red("✗")+" Error", "", "Code: "+clean(failed.Code), "Message: "+strings.ReplaceAll(cleanLines(failed.Message), "\n", "\n  "),
			"Server: "+clean(failed.Server), "Tool: "+clean(failed.Tool))
	}
	if err != nil {
		return err
	}
	return &exitError{code: failed.exit(), err: failed, shown: true}
}

// An envelope is how a call ended, for programs.
type envelope struct {
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *executionError `json:"error,omitempty"`
}

// thinking is how long a person at the terminal has to answer.
const thinking = 10 * time.Minute

// personAtTerminal is the person who runs the command, if there is a terminal.
// Else it is said, while the call waits, how to answer from another one; that
// nobody did is what the call ends with.
func personAtTerminal(cmd *cobra.Command, logger *slog.Logger, server string) consent.Person {
	c, err := openConsole("execute")
	if err != nil {
		return consent.Person{Tell: func(context.Context, string) {
			tell(cmd, "to answer in another terminal: dockgate approve %s", quote(server))
		}}
	}
	if err := c.Close(); err != nil {
		logger.Debug("close terminal", "err", err)
	}
	return consent.Person{Ask: func(ctx context.Context, question approval.Question) (reply consent.Reply, err error) {
		err = atConsole("execute", func(c *console) error {
			reply, err = approveAt(c, &moment{})(ctx, question)
			return err
		})
		return reply, err
	}}
}

// progress shows a progress notification: as a line of talk, or as output.
func (own executeFlags) progress(cmd *cobra.Command, params json.RawMessage) {
	var p struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	text := clean(p.Message)
	if p.Total > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%3.0f%% %s", 100*p.Progress/p.Total, text))
	}
	switch {
	case own.stream && own.json:
		line, err := json.Marshal(map[string]json.RawMessage{"progress": params})
		if err == nil {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), string(line)) //nolint:errcheck // the result fails on the same output
		}
	case own.stream && text != "":
		_, _ = fmt.Fprintln(cmd.OutOrStdout(), text) //nolint:errcheck // the result fails on the same output
	case text != "":
		tell(cmd, "%s", text)
	}
}

func (own executeFlags) say(cmd *cobra.Command, lines ...string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

// An executionError is a call that failed, as it is printed.
type executionError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Details json.RawMessage `json:"details,omitempty"`

	err error
}

func (e *executionError) Error() string { return e.Code + ": " + e.Message }

func (e *executionError) Unwrap() error { return e.err }

// failureOf returns why a call failed: an error, or the server's own words;
// nil if it did not.
func failureOf(ref tool.Ref, result json.RawMessage, err error) *executionError {
	failed := &executionError{Server: ref.Server, Tool: ref.Name, err: err}
	var answer *jsonrpc.Error
	switch {
	case err == nil && string(jsonrpc.Lookup(result, "isError")) != "true":
		return nil
	case err == nil:
		failed.Code, failed.Message = call.CodeExecution, cmp.Or(strings.Join(resultLines(result), "\n"), "the tool failed and did not say why")
		return failed
	case call.Code(err) == "" && errors.As(err, &answer):
		failed.Code, failed.Message, failed.Details = call.CodeExecution, answer.Message, answer.Data
		return failed
	}
	failed.Code = call.Code(err)
	failed.Message = phrase(strings.TrimPrefix(err.Error(), failed.Code+": "))
	var detailed interface{ Details() any }
	if errors.As(err, &detailed) {
		if encoded, err := json.Marshal(detailed.Details()); err == nil {
			failed.Details = encoded
		}
	}
	return failed
}

// exit returns the exit code of a failed call.
func (e *executionError) exit() int {
	switch e.Code {
	case call.CodeValidation, call.CodeArguments, call.CodeConfiguration:
		return 1
	case call.CodeToolNotFound:
		return 2
	case call.CodeDisabled:
		return 4
	case consent.CodePending, consent.CodeDenied:
		return 5
	}
	return 3
}

// payload is what a program wants of a result: its structured content, or
// else its content.
func payload(result json.RawMessage) json.RawMessage {
	for _, member := range []string{"structuredContent", "content"} {
		if value := jsonrpc.Lookup(result, member); value != nil && string(value) != "null" {
			return value
		}
	}
	return result
}

// resultLines is a result for people: its texts, or else its structure.
func resultLines(result json.RawMessage) []string {
	var lines []string
	for block, err := range jsonrpc.Elements(jsonrpc.Lookup(result, "content")) {
		if err != nil {
			break
		}
		var part struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIMEType string `json:"mimeType"`
			URI      string `json:"uri"`
		}
		if json.Unmarshal(block, &part) != nil {
			continue
		}
		if part.Type == "text" {
			lines = append(lines, strings.Split(strings.TrimRight(part.Text, "\n"), "\n")...)
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("[%s %s %s, %d bytes; see --json]", part.Type, part.MIMEType, part.URI, len(block))))
	}
	if len(lines) > 0 {
		return lines
	}
	var pretty bytes.Buffer
	if structured := jsonrpc.Lookup(result, "structuredContent"); structured != nil && json.Indent(&pretty, structured, "", "  ") == nil {
		return strings.Split(pretty.String(), "\n")
	}
	return nil
}
