package meta

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// execute passes a call on to any approved tool and returns its result as it
// is. Arguments that do not fit the tool's schema are answered with it.
func (d *Desk) execute(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Server    *string         `json:"server"`
		Tool      *string         `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := parse(executeTool, arguments, &input); err != nil {
		return nil, err
	}
	// As they were sent: decoding takes a member of another case for ours.
	sent := jsonrpc.Lookup(arguments, "arguments")
	switch {
	case input.Server == nil:
		return nil, missing(executeTool, "server")
	case input.Tool == nil:
		return nil, missing(executeTool, "tool")
	case sent != nil && !bytes.HasPrefix(sent, []byte("{")):
		return nil, &ArgumentError{Tool: executeTool, Problem: "arguments is not an object"}
	}
	client.Via = executeTool
	client.Rounds = false // the answers would come to execute_tool
	result, err := d.Execute(ctx, client, *input.Server, *input.Tool, sent)
	if err != nil {
		return call.Failure(err, tool.Ref{Server: *input.Server, Name: *input.Tool})
	}
	return result, nil
}

// Execute checks the arguments of a call of any approved tool, makes it, and
// returns the server's raw result. An unknown tool is a
// [*call.UnknownItemError], arguments that do not fit an [*InvalidError];
// other errors are those of [call.Caller.Do].
func (d *Desk) Execute(ctx context.Context, client call.Client, server, name string, arguments json.RawMessage) (json.RawMessage, error) {
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	if d.Caller.MayUse(client.Principal, server) != nil {
		return d.Caller.CallTool(ctx, client, server, name, arguments) // refused there, and recorded
	}
	stock, err := d.Stock(ctx, client.Principal, server)
	if err != nil {
		return nil, err
	}
	if item, ok := stock.Item(name); ok && stock.Listed && item.Enabled() {
		if err := d.checks.check(server, item, arguments); err != nil {
			return nil, err
		}
	}
	return d.Caller.CallTool(ctx, client, server, name, arguments)
}
