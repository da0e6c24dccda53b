package client

import (
	"maps"
	"slices"

	"github.com/dockgate/dockgate/internal/client/section"
)

// notKept are the keys of entries that say what is started, or that it is not:
// beside the command of the gateway they would contradict it.
func notKept() []string {
	return []string{
		"type", "transport", "command", "cmd", "args", "url", "uri", "serverUrl", "httpUrl", "headers", "http_headers",
		"disabled", "enabled", "name", "source",
	}
}

// ownChoice reports that a field is only proposed here: what the user has made
// of it stays.
func ownChoice(name string) bool {
	return name == "timeout" || name == "description" || name == "tools"
}

// renew returns a text whose entry is that for a command. What the user, or the
// client, has added to the entry that is there stays: a time limit, tools that
// need no question, variables. What cannot be written again is left out.
func (c Client) renew(text []byte, entry any, command Command) ([]byte, error) {
	before, ok := entry.(map[string]any)
	if !ok {
		return c.put(text, command)
	}
	if variables, ok := texts(before[c.shape.env()]); ok {
		env := maps.Clone(variables)
		maps.Copy(env, command.Env)
		command.Env = env
	}
	fields := c.shape.fields(command)
	for i, f := range fields {
		if chosen := before[f.Name]; ownChoice(f.Name) && chosen != nil {
			fields[i].Value = simple(chosen)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if slices.Contains(notKept(), name) || slices.ContainsFunc(fields, func(f section.Field) bool { return f.Name == name }) {
			continue
		}
		more := append(slices.Clone(fields), section.Field{Name: name, Value: simple(before[name])})
		if _, err := c.putFields(text, more); err == nil {
			fields = more
		}
	}
	return c.putFields(text, fields)
}

// simple is a decoded value in the form in which a field has it, where there is
// one.
func simple(value any) any {
	if variables, ok := texts(value); ok {
		return variables
	}
	items, ok := value.([]any)
	if !ok {
		return value
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i], ok = item.(string); !ok {
			return value
		}
	}
	return list
}

// texts returns a mapping whose values are all text.
func texts(value any) (map[string]string, bool) {
	members, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	all := make(map[string]string, len(members))
	for name, member := range members {
		if all[name], ok = member.(string); !ok {
			return nil, false
		}
	}
	return all, true
}
