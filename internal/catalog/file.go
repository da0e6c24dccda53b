package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A File is what one catalog file holds.
type File struct {
	Origin Origin
	// Servers are in the order of the file.
	Servers []Server
	// CLIs are in the order of the file.
	CLIs []CLI
	// Runtimes are keyed "npx" and "uvx".
	Runtimes map[string]Runtime
}

// A CLI is a command-line program that may do what a server is asked for. It
// runs in the user's shell, never in the gateway; the gateway only runs its
// CheckCommand and HelpCommand, and therefore takes no CLI from a project.
type CLI struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Origin      Origin   `json:"origin"`
	// CheckCommand succeeds if the program is installed.
	CheckCommand []string `json:"check_command"`
	// HelpCommand prints how to use it.
	HelpCommand []string `json:"help_command,omitempty"`
	// PreferMCPFor are requests that a server serves better.
	PreferMCPFor []string `json:"prefer_mcp_for,omitempty"`
	Examples     []string `json:"examples,omitempty"`
}

// A Runtime is the image in which packages of one ecosystem run.
type Runtime struct {
	Image  string `json:"image"`
	Origin Origin `json:"origin"`
}

// Load reads and parses the catalog file at path. The error is [Problems], or
// names the file and says why it cannot be read.
func Load(kind OriginKind, path string) (File, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("catalog %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return File{}, fmt.Errorf("catalog: %w", err)
	}
	return Parse(Origin{Catalog: path, Kind: kind}, data)
}
