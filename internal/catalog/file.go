package catalog

import (
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/setting"
	"github.com/dockgate/dockgate/internal/catalog/spelling"
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
	// DiscoveryQueue is the path of the file in which requests are kept that no
	// server could answer; empty where the file names none. A project's lies
	// within the project.
	DiscoveryQueue string
	// Enabled are the servers that the source has enabled; nil where it does
	// not say, so that all are.
	Enabled []string
	// Settings are the user's settings of servers that the source holds.
	Settings map[string]map[string]any
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

// A Problem is one mistake in a catalog.
type Problem = document.Problem

// Problems is the error of a catalog with mistakes: all of them, in the order
// of their lines.
type Problems = document.Problems

// A SettingsError says what is wrong with the settings of a server.
type SettingsError = setting.Error

// A SettingProblem is what is wrong with one setting.
type SettingProblem = setting.Problem

// CheckSettings checks a user's settings against the entry's Config, see
// [setting.Check].
func (s Server) CheckSettings(settings map[string]any) error {
	return setting.Check(s.Name, s.Config, settings)
}

// ChangeSettings returns a user's settings with assignments of the form
// "key=value" applied, see [setting.Change].
func (s Server) ChangeSettings(before map[string]any, assignments []string) (map[string]any, error) {
	return setting.Change(s.Name, s.Config, before, assignments)
}

// Nearest returns the candidates that are most like name, see
// [spelling.Nearest].
func Nearest(name string, candidates []string) []string {
	return spelling.Nearest(name, candidates)
}
