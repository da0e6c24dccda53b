package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/test/bench/raw"
)

// A peer is another gateway on stdio. What it lists is up to its command; to
// be called it must list the demo's echo, or another tool whose name ends so
// and that takes one text. Its results are measured if it lists "bytes" of the
// benchmark's own image, too.
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
	params, err := echoOf(process.Conversation)
	if err != nil {
		return nil, nil, errors.Join(process.explain(err), process.close())
	}
	return process, params, nil
}

func echoOf(c *raw.Conversation) ([]byte, error) {
	tools, err := greetedTools(c)
	if err != nil {
		return nil, err
	}
	name, argument, ok := find(tools, "echo")
	if !ok {
		return nil, errors.New("it lists no tool whose name ends with echo and that takes one text")
	}
	return json.Marshal(map[string]any{"name": name, "arguments": map[string]string{argument: said}})
}

// connectSized is connect for a tool that returns results of a size. It
// returns nil if the peer lists none.
func (p peer) connectSized(ctx context.Context) (*process, func(size int) []byte, error) {
	process, err := p.serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	tools, err := greetedTools(process.Conversation)
	if err != nil {
		return nil, nil, errors.Join(process.explain(err), process.close())
	}
	name, argument, ok := find(tools, "bytes")
	if !ok {
		return nil, nil, process.close()
	}
	return process, func(size int) []byte {
		return fmt.Appendf(nil, `{"name":%q,"arguments":{%q:%d}}`, name, argument, size)
	}, nil
}

// A listedTool is what is looked at of a tool.
type listedTool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"inputSchema"`
}

// greetedTools opens a conversation and lists the tools.
func greetedTools(c *raw.Conversation) ([]listedTool, error) {
	if err := c.Initialize(); err != nil {
		return nil, err
	}
	list, err := c.Request("tools/list", nil)
	if err != nil {
		return nil, err
	}
	var listed struct {
		Tools []listedTool `json:"tools"`
	}
	err = json.Unmarshal(list, &listed)
	return listed.Tools, err
}

// find returns the first tool whose name ends with one and that takes one
// argument.
func find(tools []listedTool, ending string) (name, argument string, ok bool) {
	for _, t := range tools {
		if !strings.HasSuffix(strings.ToLower(t.Name), ending) {
			continue
		}
		required := t.InputSchema.Required
		if len(required) == 0 {
			required = slices.Collect(maps.Keys(t.InputSchema.Properties))
		}
		if len(required) == 1 {
			return t.Name, required[0], true
		}
	}
	return "", "", false
}
