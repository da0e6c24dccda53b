package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/meta"
)

// A Config is the content of a configuration file.
type Config struct {
	// Catalogs are files in the native format, on top of the built-in one.
	Catalogs []string `yaml:"catalogs"`
	// Expose are the groups that are listed; empty is [DefaultExpose].
	Expose []meta.Group `yaml:"expose"`
	// Prefix names tools "server__tool" (server) or as they are (none).
	Prefix   gateway.Prefix `yaml:"prefix"`
	Approval Approval       `yaml:"approval"`
}

// Approval says how people are asked.
type Approval struct {
	// Mode is ask (the default), all or pinned.
	Mode approval.Mode `yaml:"mode"`
	// Wait is how long a call waits for a person; zero is 25 s.
	Wait Duration `yaml:"wait"`
	// Scripted allows "dockgate approve" without a terminal. It is for people
	// who know that a model with a shell could then approve for them.
	Scripted bool `yaml:"scripted"`
}

// A Duration is written as "25s" or "10m".
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err == nil && parsed < 0 {
		err = errors.New("a negative duration")
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*d = Duration(parsed)
	return nil
}

// DefaultExpose are the groups that are listed if nothing else is said.
func DefaultExpose() []meta.Group { return []meta.Group{meta.Meta, meta.Dynamic, gateway.Active} }

// A ConfigError is a mistake in a configuration file or in a flag that
// replaces a part of it.
type ConfigError struct {
	// Place is the file, or the flag.
	Place   string
	Problem string
}

// Error names the place and the problem.
func (e *ConfigError) Error() string { return e.Place + ": " + e.Problem }

// LoadConfig reads a configuration file. An unknown field is an error.
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	var config Config
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&config); err != nil && !errors.Is(err, io.EOF) {
		problem := strings.TrimPrefix(err.Error(), "yaml: ")
		return Config{}, &ConfigError{Place: path, Problem: strings.ReplaceAll(problem, "unmarshal errors:\n  ", "")}
	}
	return config, config.Check(path)
}

// Check reports a value that a Config cannot have; place is where it was written.
func (c Config) Check(place string) error {
	groups := []meta.Group{meta.Meta, meta.Dynamic, gateway.Active, gateway.Direct}
	for _, group := range c.Expose {
		if !slices.Contains(groups, group) {
			return &ConfigError{Place: place, Problem: fmt.Sprintf("expose: unknown group %q; known: %s", group, join(groups))}
		}
	}
	prefixes := []gateway.Prefix{gateway.PrefixServer, gateway.PrefixNone}
	if c.Prefix != "" && !slices.Contains(prefixes, c.Prefix) {
		return &ConfigError{Place: place, Problem: fmt.Sprintf("prefix: unknown value %q; known: %s", c.Prefix, join(prefixes))}
	}
	modes := []approval.Mode{approval.ModeAsk, approval.ModeAll, approval.ModePinned}
	if c.Approval.Mode != "" && !slices.Contains(modes, c.Approval.Mode) {
		return &ConfigError{Place: place, Problem: fmt.Sprintf("approval.mode: unknown value %q; known: %s", c.Approval.Mode, join(modes))}
	}
	return nil
}

func join[S ~string](words []S) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}
