// Package meta is the gateway's own tools: what an agent calls to find
// servers, to activate them, and to call a tool that is not listed.
//
// It decides what an agent finds, and how much of that stands in the text of an
// answer; nothing about rights: a server that an agent activates still waits for
// a person, and execute_tool goes the way of every call. It refuses arguments
// that do not fit the schema of a tool, where that is known. It guarantees that
// nothing is shown of a server that the caller may not use, and no definition
// that a server gave a tool before somebody has approved it.
package meta

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/schema"
	"github.com/dockgate/dockgate/internal/tool"
)

//go:embed definitions.json
var definitions []byte //nolint:gochecknoglobals // embedded data

// A Group is a set of listed tools that can be switched off together.
type Group string

// The groups of the gateway's own tools.
const (
	// Meta finds and calls tools.
	Meta Group = "meta"
	// Dynamic finds and activates servers.
	Dynamic Group = "dynamic"
)

// The names of the tools.
const (
	listServers = "list_mcp_servers"
	searchTools = "search_tools"
	listTools   = "list_tools"
	toolDetails = "get_tool_details"
	executeTool = "execute_tool"

	findServers  = "mcp_find"
	addServer    = "mcp_add"
	removeServer = "mcp_remove"
	activeServer = "mcp_active"
)

// A Tool is one of the gateway's own.
type Tool struct {
	tool.Definition
	Group Group
	call  func(d *Desk, ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error)
}

// Tools returns the gateway's own tools, in the order they are listed.
func Tools() ([]Tool, error) {
	calls := map[string]Tool{
		findServers:  {Group: Dynamic, call: (*Desk).find},
		addServer:    {Group: Dynamic, call: (*Desk).add},
		removeServer: {Group: Dynamic, call: (*Desk).remove},
		activeServer: {Group: Dynamic, call: (*Desk).active},
		listServers:  {Group: Meta, call: (*Desk).listServers},
		searchTools:  {Group: Meta, call: (*Desk).searchTools},
		listTools:    {Group: Meta, call: (*Desk).listTools},
		toolDetails:  {Group: Meta, call: (*Desk).toolDetails},
		executeTool:  {Group: Meta, call: (*Desk).execute},
	}
	var tools []Tool
	for raw, err := range jsonrpc.Elements(definitions) {
		if err != nil {
			return nil, fmt.Errorf("own tools: %w", err)
		}
		definition, err := tool.ParseDefinition(raw)
		if err != nil {
			return nil, fmt.Errorf("own tools: %w", err)
		}
		own, ok := calls[definition.Name]
		if !ok {
			return nil, fmt.Errorf("own tools: nobody answers %q", definition.Name)
		}
		own.Definition = definition
		tools = append(tools, own)
	}
	return tools, nil
}

// Activations are the servers that callers have chosen. They are remembered
// until they are removed.
type Activations interface {
	// Active returns the names of the active servers, in a stable order.
	Active(ctx context.Context, who principal.Principal) ([]string, error)
	// Activate makes a server active with settings, or replaces its settings.
	Activate(ctx context.Context, who principal.Principal, server string, settings map[string]any) error
	// Deactivate reports whether the server was active.
	Deactivate(ctx context.Context, who principal.Principal, server string) (bool, error)
}

// A Desk answers the gateway's own tools. All fields but Anticipate and
// Configured are required.
type Desk struct {
	Catalog     func() *catalog.Catalog
	Activations Activations
	Planner     *plan.Planner
	Caller      *call.Caller
	Fleet       *fleet.Fleet
	// Configured returns the servers that the configuration names for use, on
	// top of those that are active or approved; nil is none.
	Configured func() []string
	// Find ranks the catalog's servers for a query.
	Find func(query string, limit int) []string
	// Anticipate starts a server when the details of one of its tools are
	// asked for.
	Anticipate bool
	// Changed is called when the set of active servers has changed.
	Changed func(ctx context.Context)
	// Phrase returns the text of a failure of ours with the commands in it as
	// they are typed where the gateway runs; nil is as they are.
	Phrase func(text string) string
	// Names returns the name under which a client sees a tool.
	Names  func(ref tool.Ref) string
	Logger *slog.Logger

	shelves shelves
	checker schema.Checker
}

// Call answers one of the own tools with a raw tools/call result. A failure of a
// server's tool is such a result, too. Any other failure is an error, which
// [call.Failure] turns into one.
func (d *Desk) Call(ctx context.Context, own Tool, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	return own.call(d, ctx, client, arguments)
}

// An ArgumentError is a mistake in the arguments of one of our own tools.
type ArgumentError struct{ Tool, Problem string }

// Error names the tool and the problem.
func (e *ArgumentError) Error() string { return fmt.Sprintf("%s: %s", e.Tool, e.Problem) }

// Code says what kind of failure it is.
func (e *ArgumentError) Code() string { return call.CodeValidation }

// parse reads the arguments of one of our own tools.
func parse(name string, arguments json.RawMessage, into any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return &ArgumentError{Tool: name, Problem: fmt.Sprintf("%s is a JSON %s, want %s", mismatch.Field, mismatch.Value, kindOf(mismatch.Type))}
	case errors.As(err, &mismatch):
		return &ArgumentError{Tool: name, Problem: "the arguments are not an object"}
	}
	return &ArgumentError{Tool: name, Problem: strings.TrimPrefix(err.Error(), "json: ")}
}

// kindOf says what a parameter of one of our own tools takes.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	default:
		return "an object"
	}
}

// missing refuses a call without a parameter that it needs.
func missing(name, parameter string) error {
	return &ArgumentError{Tool: name, Problem: parameter + " is missing"}
}

// reply returns a tools/call result: a text for the model, and the same as data.
func reply(text string, structured any) (json.RawMessage, error) {
	return json.Marshal(map[string]any{
		"content":           []any{map[string]string{"type": "text", "text": text}},
		"structuredContent": structured,
	})
}
