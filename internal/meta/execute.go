package meta

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/dockgate/dockgate/internal/call"
)

// execute passes a call on to any approved tool and returns its result as it is.
func (d *Desk) execute(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := parse("execute_tool", arguments, &input); err != nil {
		return nil, err
	}
	switch {
	case input.Server == "":
		return nil, &ArgumentError{Tool: "execute_tool", Problem: "server is missing"}
	case input.Tool == "":
		return nil, &ArgumentError{Tool: "execute_tool", Problem: "tool is missing"}
	case len(input.Arguments) > 0 && !bytes.HasPrefix(input.Arguments, []byte("{")):
		return nil, &ArgumentError{Tool: "execute_tool", Problem: "arguments is not an object"}
	}
	client.Via = "execute_tool"
	client.Rounds = false // the answers would come to execute_tool
	return d.Caller.CallTool(ctx, client, input.Server, input.Tool, input.Arguments)
}
