package client

import (
	"strings"

	"github.com/dockgate/dockgate/internal/client/section"
)

// A Command is what a client starts as the gateway.
type Command struct {
	Program string   `json:"command"`
	Args    []string `json:"args"`
	// Env are the variables that the client sets.
	Env map[string]string `json:"env,omitempty"`
}

// A shape is how a client writes a command down.
type shape int

const (
	plain     shape = iota // command, args
	typed                  // with type: stdio
	local                  // with type: local, and which tools are wanted
	joined                 // program and arguments in one list
	extension              // with a name of its own, and cmd for command
)

// fields returns the entry that stands for a command.
func (s shape) fields(c Command) []section.Field {
	fields := s.required(c)
	if len(c.Env) > 0 {
		fields = append(fields, section.Field{Name: s.env(), Value: c.Env})
	}
	return fields
}

// env is the key of the variables.
func (s shape) env() string {
	switch s {
	case joined:
		return "environment"
	case extension:
		return "envs"
	case plain, typed, local:
	}
	return "env"
}

func (s shape) required(c Command) []section.Field {
	args := append([]string{}, c.Args...)
	command := []section.Field{{Name: "command", Value: c.Program}, {Name: "args", Value: args}}
	switch s {
	case typed:
		return append([]section.Field{{Name: "type", Value: "stdio"}}, command...)
	case local:
		return append(append([]section.Field{{Name: "type", Value: "local"}}, command...), section.Field{Name: "tools", Value: []string{"*"}})
	case joined:
		return []section.Field{{Name: "type", Value: "local"}, {Name: "command", Value: append([]string{c.Program}, args...)}, {Name: "enabled", Value: true}}
	case extension:
		return []section.Field{
			{Name: "name", Value: Entry},
			{Name: "description", Value: "MCP servers that run as isolated containers"},
			{Name: "type", Value: "stdio"},
			{Name: "enabled", Value: true},
			{Name: "cmd", Value: c.Program},
			{Name: "args", Value: args},
			{Name: "timeout", Value: 300},
		}
	case plain:
	}
	return command
}

// has reports whether an entry, as it was read, says what the fields say. What
// the client or the user has added to it does not matter.
func has(entry any, fields []section.Field) bool {
	found, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	for _, f := range fields {
		if chosen := found[f.Name]; chosen != nil && ownChoice(f.Name) {
			continue
		}
		if !same(found[f.Name], f.Value) {
			return false
		}
	}
	return true
}

func same(found, want any) bool {
	list, ok := want.([]string)
	if !ok {
		return section.Show(found) == section.Show(want)
	}
	items, ok := found.([]any)
	if !ok || len(items) != len(list) {
		return false
	}
	for i, item := range items {
		if text, ok := item.(string); !ok || text != list[i] {
			return false
		}
	}
	return true
}

// Print returns a whole configuration with nothing but the entry, for the
// user to put in.
func (c Client) Print(command Command) (string, error) {
	text, err := c.put(nil, command)
	return strings.TrimRight(string(text), "\n") + "\n", err
}
