package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// movedSuffix is what the name of a file ends with that has what was moved out
// of a configuration.
const movedSuffix = ".dockgate-moved"

// A Server is an entry of a client's configuration.
type Server struct {
	Name string
	// Entry is it in the form that most clients have: command, args and env,
	// or url and headers.
	Entry map[string]any
	// Inputs are what VS Code asks for, as its configuration has them; nil
	// elsewhere.
	Inputs any
	// Moved reports that the entry is not in the configuration any more.
	Moved bool
}

// A moved entry is one that was taken out, and can be put back.
type moved struct {
	Name string `json:"name"`
	// Raw is its text.
	Raw   string         `json:"raw"`
	Entry map[string]any `json:"entry"`
	// Inputs are as in [Server].
	Inputs any `json:"inputs,omitempty"`
}

// Servers returns the servers that a client's file has beside the gateway, and
// those that were moved out of it, sorted by their names. Extensions that are
// no MCP servers are none.
func (c Client) Servers(path string) ([]Server, error) {
	f, err := read(path)
	if err != nil {
		return nil, err
	}
	gone, err := f.moved()
	if err != nil {
		return nil, err
	}
	whole, err := c.Format.Syntax().Decode(f.text)
	if err != nil {
		return nil, c.wrong(path, err)
	}
	found, err := c.servers(whole)
	if err != nil {
		return nil, c.wrong(path, err)
	}
	var servers []Server
	for _, m := range gone {
		if found[m.Name] == nil {
			servers = append(servers, Server{Name: m.Name, Entry: m.Entry, Inputs: m.Inputs, Moved: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		entry, ok := found[name].(map[string]any)
		if ok && name != Entry {
			if entry = c.shape.common(entry); entry["command"] != nil || entry["url"] != nil {
				servers = append(servers, Server{Name: name, Entry: entry, Inputs: whole["inputs"]})
			}
		}
	}
	return servers, nil
}

// common returns an entry in the form that most clients have.
func (s shape) common(entry map[string]any) map[string]any {
	made := maps.Clone(entry)
	for theirs, ours := range map[string]string{"cmd": "command", "envs": "env", "environment": "env", "uri": "url", "http_headers": "headers"} {
		if value, ok := made[theirs]; ok && (s == extension || s == joined || theirs == "http_headers") {
			made[ours] = value
		}
	}
	for _, theirs := range []string{"serverUrl", "httpUrl"} { // Windsurf's, and the Gemini CLI's
		if made["url"] == nil && made[theirs] != nil {
			made["url"] = made[theirs]
		}
	}
	if headers := fromVariables(entry); len(headers) > 0 {
		if written, ok := made["headers"].(map[string]any); ok {
			maps.Copy(headers, written)
		}
		made["headers"] = headers
	}
	switch command := made["command"].(type) {
	case []any: // with its arguments
		if len(command) > 0 {
			made["command"], made["args"] = command[0], command[1:]
		}
	case map[string]any: // with everything
		made["command"] = command["path"]
		for _, name := range []string{"args", "env"} {
			if command[name] != nil {
				made[name] = command[name]
			}
		}
	}
	if enabled, ok := made["enabled"].(bool); ok && !enabled {
		made["disabled"] = true
	}
	return made
}

// fromVariables are the headers whose values Codex takes from variables, as
// references to these.
func fromVariables(entry map[string]any) map[string]any {
	headers := make(map[string]any)
	if name, ok := entry["bearer_token_env_var"].(string); ok && name != "" {
		headers["Authorization"] = "Bearer ${" + name + "}"
	}
	named, _ := entry["env_http_headers"].(map[string]any) //nolint:errcheck // none are as good as none that can be read
	for header, name := range named {
		if name, ok := name.(string); ok && name != "" {
			headers[header] = "${" + name + "}"
		}
	}
	return headers
}

// moved returns what was taken out of the file.
func (f file) moved() ([]moved, error) {
	text, err := os.ReadFile(f.path + movedSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []moved
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path+movedSuffix, err)
	}
	return all, nil
}

// keepMoved writes down what is taken out of the file.
func (f file) keepMoved(all []moved) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := f.write(f.path+movedSuffix, append(text, '\n'), func() error { return nil }); err != nil {
		return fmt.Errorf("write what is moved: %w", err)
	}
	return nil
}

// forgetMoved removes what was written down.
func (f file) forgetMoved() error {
	if err := os.Remove(f.path + movedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// move takes the entries of some names out of a text, and adds them to those
// that are gone.
func (c Client) move(text []byte, names []string, gone []moved) ([]byte, []moved, error) {
	for _, name := range names {
		found, err := c.look(text, name)
		if err != nil {
			return nil, nil, err
		}
		entry, ok := found.(map[string]any)
		if !ok || name == Entry {
			continue
		}
		raw, err := c.Format.Syntax().Raw(text, c.Section, name)
		if err != nil {
			return nil, nil, err
		}
		whole, err := c.Format.Syntax().Decode(text)
		if err != nil {
			return nil, nil, err
		}
		if text, err = c.take(text, name); err != nil {
			return nil, nil, err
		}
		gone = slices.DeleteFunc(gone, func(m moved) bool { return m.Name == name })
		gone = append(gone, moved{Name: name, Raw: raw, Entry: c.shape.common(entry), Inputs: whole["inputs"]})
	}
	return text, gone, nil
}
