package client

import "strings"

// A Command is what a client starts as the gateway.
type Command struct {
	Program string   `json:"command"`
	Args    []string `json:"args"`
	// Env are the variables that the client sets.
	Env map[string]string `json:"env,omitempty"`
}

// A field is one line of an entry. Its value is a string, a bool, an int, a
// []string or a map of strings.
type field struct {
	name  string
	value any
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
func (s shape) fields(c Command) []field {
	fields := s.required(c)
	if len(c.Env) > 0 {
		fields = append(fields, field{s.env(), c.Env})
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

func (s shape) required(c Command) []field {
	args := append([]string{}, c.Args...)
	command := []field{{"command", c.Program}, {"args", args}}
	switch s {
	case typed:
		return append([]field{{"type", "stdio"}}, command...)
	case local:
		return append(append([]field{{"type", "local"}}, command...), field{"tools", []string{"*"}})
	case joined:
		return []field{{"type", "local"}, {"command", append([]string{c.Program}, args...)}, {"enabled", true}}
	case extension:
		return []field{
			{"name", Entry}, {"description", "MCP servers that run as isolated containers"}, {"type", "stdio"},
			{"enabled", true}, {"cmd", c.Program}, {"args", args}, {"timeout", 300},
		}
	case plain:
	}
	return command
}

// has reports whether an entry, as it was read, says what the fields say. What
// the client or the user has added to it does not matter.
func has(entry any, fields []field) bool {
	found, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	for _, f := range fields {
		if !same(found[f.name], f.value) {
			return false
		}
	}
	return true
}

func same(found, want any) bool {
	list, ok := want.([]string)
	if !ok {
		return show(found) == show(want)
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
