package meta

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

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
		return call.Failure(call.Phrased(err, d.Phrase), tool.Ref{Server: *input.Server, Name: *input.Tool})
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
		input := jsonrpc.Lookup(item.JSON, "inputSchema")
		if err := d.checker.Check(input, arguments); err != nil {
			return nil, &InvalidError{Server: server, Tool: name, Problem: err.Error(), Schema: input}
		}
	}
	return d.Caller.CallTool(ctx, client, server, name, arguments)
}

// An InvalidError is arguments that do not fit the schema of the tool. The
// call was not made.
type InvalidError struct {
	Server, Tool string
	Problem      string
	Schema       json.RawMessage
}

// Error says what does not fit, and gives the schema.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("the arguments of %q of %q do not fit its schema: %s; schema: %s", e.Tool, e.Server, e.Problem, shortSchema(e.Schema))
}

// Code says what kind of failure it is.
func (e *InvalidError) Code() string { return call.CodeArguments }

// Details are the problem and the whole schema.
func (e *InvalidError) Details() any {
	return map[string]any{"problem": e.Problem, "inputSchema": e.Schema}
}

// maxSchema is how much of a schema stands in a text, in bytes.
const maxSchema = 2000

func shortSchema(schema json.RawMessage) string {
	var short bytes.Buffer
	if json.Compact(&short, schema) != nil || short.Len() > maxSchema {
		return fmt.Sprintf("%s… (cut; details.inputSchema has all)", strings.ToValidUTF8(string(schema[:min(len(schema), maxSchema)]), ""))
	}
	return short.String()
}
