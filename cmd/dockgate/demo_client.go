package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/upstream"
)

// A visitor is an MCP client of a gateway that runs as a process of its own.
type visitor struct {
	*upstream.Session
	// log is what the gateway says.
	log   *os.File
	tools []listedTool
}

type listedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// startGateway starts this program as a gateway and connects to it.
func (s *stage) startGateway(ctx context.Context) (*visitor, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{"serve", "--server", demoServer, "--state", s.daemon.State, "--config", demoConfig(s.dir)}
	if s.flags.host != "" {
		arguments = append(arguments, "--host", s.flags.host)
	}
	if s.flags.context != "" {
		arguments = append(arguments, "--context", s.flags.context)
	}
	log, err := os.Create(filepath.Join(s.dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	// It ends with its standard input, not with ctx: it cleans up by itself.
	command := exec.Command(program, arguments...)
	command.Stderr = log
	gateway, err := startPiped(command)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	session, err := upstream.Connect(ctx, gateway, upstream.Options{
		Client:       upstream.Implementation{Name: "dockgate-demo", Version: version},
		Capabilities: json.RawMessage(`{"elicitation":{"form":{}}}`),
		Era:          upstream.Legacy,
		Serve:        s.answerQuestion,
	})
	c := &visitor{Session: session, log: log}
	if err != nil {
		return nil, errors.Join(c.explain(err), log.Close())
	}
	return c, nil
}

// Close ends the session and waits for the gateway.
func (c *visitor) Close() error { return errors.Join(c.Session.Close(), c.log.Close()) }

// explain adds what the gateway said to an error.
func (c *visitor) explain(err error) error {
	said, failure := os.ReadFile(c.log.Name())
	if failure != nil || len(bytes.TrimSpace(said)) == 0 {
		return err
	}
	return fmt.Errorf("%w\nthe gateway said:\n%s", err, bytes.TrimSpace(said))
}

// list asks for the tools, once.
func (c *visitor) list(ctx context.Context) ([]listedTool, error) {
	result, err := c.Call(ctx, "tools/list", nil, nil)
	if err != nil {
		return nil, err
	}
	var listed struct {
		Tools []listedTool `json:"tools"`
	}
	if err := json.Unmarshal(result, &listed); err != nil {
		return nil, err
	}
	c.tools = listed.Tools
	return c.tools, nil
}

// name returns the name under which the gateway lists a tool of the demo server.
func (c *visitor) name(tool string) (string, error) {
	for _, t := range c.tools {
		if strings.HasPrefix(t.Name, demoServer) && strings.HasSuffix(t.Name, tool) {
			return t.Name, nil
		}
	}
	return "", fmt.Errorf("the gateway does not list the tool %q of the server %q", tool, demoServer)
}

// call calls a tool and returns its text. A refusal of the gateway is a
// [*refusedError].
func (c *visitor) call(ctx context.Context, name, arguments string, progress func(done, total float64)) (string, error) {
	params, err := json.Marshal(map[string]any{"name": name, "arguments": json.RawMessage(arguments)})
	if err != nil {
		return "", err
	}
	raw, err := c.Call(ctx, "tools/call", params, func(params json.RawMessage) {
		var p struct {
			Progress, Total float64
		}
		if json.Unmarshal(params, &p) == nil && p.Total > 0 {
			progress(p.Progress, p.Total)
		}
	})
	if err != nil {
		return "", err
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError    bool `json:"isError"`
		Structured struct {
			Error struct {
				Code string `json:"code"`
			} `json:"error"`
		} `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range result.Content {
		text.WriteString(content.Text)
	}
	if !result.IsError {
		return text.String(), nil
	}
	if code := result.Structured.Error.Code; strings.HasPrefix(code, "APPROVAL_") {
		return "", &refusedError{code: code, text: text.String()}
	}
	return "", errors.New(text.String())
}

// stopTime is how long a gateway may take to clean up. It is more than the
// steps by which it ends a server that ignores it.
const stopTime = 20 * time.Second

// A piped is a process joined to its standard input and output.
type piped struct {
	io.ReadCloser
	io.Writer
	stdin   io.Closer
	command *exec.Cmd
}

func startPiped(command *exec.Cmd) (*piped, error) {
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return &piped{ReadCloser: stdout, Writer: stdin, stdin: stdin, command: command}, nil
}

// Close ends the process's input, and waits until it is gone.
func (p *piped) Close() error {
	failure := p.stdin.Close()
	timer := time.AfterFunc(stopTime, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	return errors.Join(failure, p.command.Wait())
}
