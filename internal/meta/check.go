package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An InvalidError is arguments that do not fit the schema of the tool. The
// call was not made.
type InvalidError struct {
	Server, Tool string
	Problem      string
	Schema       json.RawMessage
}

// Error says what does not fit, and gives the schema.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("the arguments of %q of %q do not fit its schema: %s; schema: %s", e.Tool, e.Server, e.Problem, cutSchema(e.Schema))
}

// Code says what kind of failure it is.
func (e *InvalidError) Code() string { return call.CodeArguments }

// Details are the problem and the whole schema.
func (e *InvalidError) Details() any {
	return map[string]any{"problem": e.Problem, "inputSchema": e.Schema}
}

// maxSchema is how much of a schema stands in a text, in bytes.
const maxSchema = 2000

func cutSchema(schema json.RawMessage) string {
	var short bytes.Buffer
	if json.Compact(&short, schema) != nil || short.Len() > maxSchema {
		return fmt.Sprintf("%s… (cut; details.inputSchema has all)", strings.ToValidUTF8(string(schema[:min(len(schema), maxSchema)]), ""))
	}
	return short.String()
}

// checks are compiled schemas, by the digest of their definition.
type checks struct {
	mu   sync.Mutex
	each map[string]*jsonschema.Resolved
}

// maxChecks bounds how many are kept.
const maxChecks = 1000

// check returns nil if arguments fit the schema of a tool. A schema that
// cannot be read or speaks of what is elsewhere checks nothing: the server
// checks for itself.
func (c *checks) check(server string, item Item, arguments json.RawMessage) error {
	schema := jsonrpc.Lookup(item.JSON, "inputSchema")
	resolved := c.compiled(schema)
	if resolved == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return &InvalidError{Server: server, Tool: item.Name, Problem: err.Error(), Schema: schema}
	}
	if err := resolved.Validate(value); err != nil {
		return &InvalidError{Server: server, Tool: item.Name, Problem: said(err), Schema: schema}
	}
	return nil
}

// compiled returns a schema ready to be tried, or nil if it cannot be.
func (c *checks) compiled(schema json.RawMessage) *jsonschema.Resolved {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.each[string(schema)]; ok {
		return found
	}
	if c.each == nil || len(c.each) >= maxChecks {
		c.each = make(map[string]*jsonschema.Resolved)
	}
	resolved := compile(schema)
	c.each[string(schema)] = resolved
	return resolved
}

func compile(schema json.RawMessage) *jsonschema.Resolved {
	var root jsonschema.Schema
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// said is a validator's error without the places of schemas in it.
func said(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ">: "); i >= 0 {
		text = text[i+len(">: "):]
	}
	return text
}
