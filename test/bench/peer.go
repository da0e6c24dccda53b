package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/dockgate/dockgate/test/bench/raw"
)

// A peer is another gateway on stdio. What it lists is up to its command; to
// be called it must list the demo's echo, or another tool whose name ends so
// and that takes one text.
type peer struct {
	name    string
	command string
}

var peerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`) //nolint:gochecknoglobals // it is a constant

func parsePeer(text string) (peer, error) {
	name, command, ok := strings.Cut(text, "=")
	if !ok || !peerName.MatchString(name) || strings.TrimSpace(command) == "" {
		return peer{}, fmt.Errorf("%q: want NAME=COMMAND, with a name of letters, digits, - and _", text)
	}
	return peer{name: name, command: command}, nil
}

// key is the key of a figure of the peer.
func (p peer) key(figure string) string { return "peer." + p.name + "." + figure }

// serve starts the peer.
func (p peer) serve(ctx context.Context) (*process, error) {
	// The command is one, so that its process is the one that is looked at.
	return spawn(ctx, os.Environ(), "sh", "-c", "exec "+p.command)
}

// connect starts the peer, opens the conversation, and returns it with the
// params of a call of its echo.
func (p peer) connect(ctx context.Context) (*process, []byte, error) {
	process, err := p.serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	params, err := p.prepare(process.Conversation)
	if err != nil {
		return nil, nil, errors.Join(process.explain(err), process.close())
	}
	return process, params, nil
}

func (p peer) prepare(c *raw.Conversation) ([]byte, error) {
	if err := c.Initialize(); err != nil {
		return nil, err
	}
	list, err := c.Request("tools/list", nil)
	if err != nil {
		return nil, err
	}
	return echoParams(list)
}

// echoParams returns the params of a call of the echo in a list of tools.
func echoParams(list json.RawMessage) ([]byte, error) {
	var listed struct {
		Tools []struct {
			Name        string `json:"name"`
			InputSchema struct {
				Required   []string                   `json:"required"`
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(list, &listed); err != nil {
		return nil, err
	}
	for _, t := range listed.Tools {
		if !strings.HasSuffix(strings.ToLower(t.Name), "echo") {
			continue
		}
		required := t.InputSchema.Required
		if len(required) == 0 && len(t.InputSchema.Properties) == 1 {
			for name := range t.InputSchema.Properties {
				required = []string{name}
			}
		}
		if len(required) == 1 {
			return json.Marshal(map[string]any{"name": t.Name, "arguments": map[string]string{required[0]: said}})
		}
	}
	return nil, errors.New("it lists no tool whose name ends with echo and that takes one text")
}
