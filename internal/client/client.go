// Package client knows the MCP clients: where each keeps its configuration on
// each system, in which format, and what an entry for a server looks like in
// it. It puts one entry in and takes it out.
//
// It changes the text, not a parsed copy of it, so comments, order and
// formatting stay, and it looks at every change before it is written: an edit
// that would alter anything but the one entry is refused, and so is a file
// that cannot be read, with the line.
//
// It guarantees that a file is replaced as a whole or not at all, that its
// mode, owner and symbolic link stay, that what it was before is kept beside
// it, and that putting the same entry in twice changes nothing.
package client

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/client/section"
)

// Entry is the name under which a client knows the gateway.
const Entry = "dockgate"

// A Client is a program that starts MCP servers from a configuration file.
type Client struct {
	// Name is what people type, such as "claude-desktop".
	Name string
	// Title is what the program calls itself.
	Title  string
	Format section.Format
	// Section is the key of the top level that holds the servers.
	Section string
	// Next is what the user does so that the client sees a change.
	Next string

	shape shape
	// variable is the environment variable that moves the folder of the file,
	// and moved the file's name in it.
	variable, moved string
	places          places
	// signs are what only the program makes; the folder of the file if empty.
	signs []string
}

// places are the paths of the file on each system, as templates. The first is
// the usual one; others are used where they are and the first is not.
type places struct{ linux, darwin, windows []string }

// A Machine is what has to be known to find a client's file.
type Machine struct {
	// OS is the operating system, in Go's words.
	OS string
	// Home is the user's home folder.
	Home string
	// Env looks a variable up.
	Env func(name string) (string, bool)
	// Exists reports whether there is a file or folder.
	Exists func(path string) bool
}

// File returns the path of the client's configuration on a machine, which
// need not exist.
func (c Client) File(m Machine) string {
	if c.variable != "" {
		if dir, ok := m.Env(c.variable); ok && dir != "" {
			return m.native(strings.TrimRight(dir, `/\`) + "/" + c.moved)
		}
	}
	paths := c.paths(m)
	if at := slices.IndexFunc(paths, m.Exists); at >= 0 {
		return paths[at]
	}
	return paths[0]
}

func (c Client) paths(m Machine) []string {
	var templates []string
	switch m.OS {
	case "windows":
		templates = c.places.windows
	case "darwin":
		templates = c.places.darwin
	default:
		templates = c.places.linux
	}
	paths := make([]string, len(templates))
	for i, template := range templates {
		paths[i] = m.expand(template)
	}
	return paths
}

// Installed reports whether the client seems to be on the machine: its
// configuration, or a folder of its own, is there.
func (c Client) Installed(m Machine) bool {
	file := c.File(m)
	if m.Exists(file) {
		return true
	}
	if len(c.signs) == 0 {
		return m.Exists(file[:strings.LastIndexAny(file, `/\`)])
	}
	return slices.ContainsFunc(c.signs, func(sign string) bool { return m.Exists(m.expand(sign)) })
}

// expand fills a template: "~" is the home folder, "$CONFIG" the one of
// configurations on Linux, "$SUPPORT" that of applications on macOS and
// "$APPDATA" that of Windows.
func (m Machine) expand(template string) string {
	root, rest, _ := strings.Cut(template, "/")
	dir := m.Home
	switch root {
	case "$CONFIG":
		dir = m.variable("XDG_CONFIG_HOME", m.Home+"/.config")
	case "$SUPPORT":
		dir = m.Home + "/Library/Application Support"
	case "$APPDATA":
		dir = m.variable("APPDATA", m.Home+"/AppData/Roaming")
	}
	return m.native(dir + "/" + rest)
}

func (m Machine) variable(name, otherwise string) string {
	if value, ok := m.Env(name); ok && value != "" {
		return value
	}
	return otherwise
}

// native writes a path with the separators of the machine.
func (m Machine) native(path string) string {
	if m.OS == "windows" {
		return strings.ReplaceAll(path, "/", `\`)
	}
	return path
}

// Find returns the client of a name, or an [*UnknownError].
func Find(name string) (Client, error) {
	all := Known()
	names := make([]string, len(all))
	for i, c := range all {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
		names[i] = c.Name
	}
	return Client{}, &UnknownError{Name: name, Known: names}
}

// An UnknownError is the name of no client.
type UnknownError struct {
	Name  string
	Known []string
}

// Error names what was asked for.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown client %q", e.Name) }

// Hint says what there is, and what to do with another client.
func (e *UnknownError) Hint() string {
	return "known are " + strings.Join(e.Known, ", ") + "; for another client, put in what this prints: dockgate connect --print"
}
