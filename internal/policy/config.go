// Package policy reads what people say of a gateway in files: the user's
// configuration ([Config]), and beside it a project's file ([Project]), whose
// writer is not the user.
//
// It decides what a file says and where in it each value stands; what both
// come to together is for others. It refuses an unknown field, a value that
// nothing can run with, and in a project's file whatever could give more than
// the user gives. Every mistake is named with its file and line, and all of
// them at once. It reads the file that it is told, and nothing else.
package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/meta"
)

// A Config is the content of a configuration file.
type Config struct {
	// Catalogs are files and folders in any format that can be read, on top of
	// the built-in catalog.
	Catalogs []string `yaml:"catalogs"`
	// Expose are the groups that are listed; empty is [DefaultExpose].
	Expose []meta.Group `yaml:"expose"`
	// Prefix names tools "server__tool" (server) or as they are (none).
	Prefix   menu.Prefix `yaml:"prefix"`
	Approval Approval    `yaml:"approval"`
	// Limits and Timeouts are those of entries that name none.
	Limits   Limits   `yaml:"limits"`
	Timeouts Timeouts `yaml:"timeouts"`
	Quotas   Quotas   `yaml:"quotas"`
	// Patience is how long a call without a progress token takes at most; zero
	// is [call.DefaultPatience].
	Patience Duration `yaml:"patience"`
	// Relay is the image of the relay to servers that listen on a port; empty
	// is [DefaultRelay].
	Relay string `yaml:"relay"`
	// Lists bound what clients see.
	Lists Lists `yaml:"lists"`
	// Install is what the installation of packages needs on this machine.
	Install Install `yaml:"install"`
	// HTTP is how clients reach the gateway over HTTP.
	HTTP HTTP `yaml:"http"`
	// Anticipate starts a server when the details of one of its tools are asked
	// for; nil is true.
	Anticipate *bool `yaml:"anticipate"`
	// Share is about the gateway that clients share (serve --share).
	Share Share `yaml:"share"`
	// Discovery says how tools are found, and which may be called.
	Discovery Discovery `yaml:"discovery"`
	// Access and Roles are as they are written, and Admission is what they say.
	Access    yaml.Node `yaml:"access"`
	Roles     yaml.Node `yaml:"roles"`
	Admission Admission `yaml:"-"`
	// File is where it was read; empty if it was not. Written is what stands
	// there, with the lines.
	File    string  `yaml:"-"`
	Written Written `yaml:"-"`
}

// DefaultRelay is the image of the relay to servers that listen on a port.
const DefaultRelay = "dockgate/relay"

// Install is how packages are installed into images.
type Install struct {
	// Env are variables of the installation, such as those that name a proxy or
	// another registry.
	Env map[string]string `yaml:"env"`
	// Certificates is a file with certificate authorities that it trusts.
	Certificates string `yaml:"certificates"`
}

// Limits bound a container. Zero is the default of [sandbox.Compile].
type Limits struct {
	Memory Size    `yaml:"memory"`
	CPUs   float64 `yaml:"cpus"`
	PIDs   int64   `yaml:"pids"`
	Shm    Size    `yaml:"shm"`
	Tmp    Size    `yaml:"tmp"`
}

// Entry returns the limits as a catalog's entry has them.
func (l Limits) Entry() catalog.Limits {
	return catalog.Limits{Memory: int64(l.Memory), CPUs: l.CPUs, PIDs: l.PIDs, Shm: int64(l.Shm), Tmp: int64(l.Tmp)}
}

// Timeouts bound waiting, as in a catalog. Zero is the fleet's default.
type Timeouts struct {
	Start   Duration `yaml:"start"`
	List    Duration `yaml:"list"`
	Call    Duration `yaml:"call"`
	CallMax Duration `yaml:"call_max"`
	Idle    Duration `yaml:"idle"`
	Stop    Duration `yaml:"stop"`
}

// Entry returns the timeouts as a catalog's entry has them.
func (t Timeouts) Entry() catalog.Timeouts {
	return catalog.Timeouts{
		Start: time.Duration(t.Start), List: time.Duration(t.List), Call: time.Duration(t.Call),
		CallMax: time.Duration(t.CallMax), Idle: time.Duration(t.Idle), Stop: time.Duration(t.Stop),
	}
}

// A Size is a number of bytes, written as "500MB".
type Size int64

// String returns the size as it is written.
func (s Size) String() string {
	return units.CustomSize("%.4g%s", float64(s), 1024, []string{"B", "KB", "MB", "GB"})
}

// UnmarshalYAML reads a size as the Docker command line does, in powers of 1024.
func (s *Size) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := units.RAMInBytes(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || parsed <= 0 {
		return typeError(node, "is %s, want a size above 0, such as 500MB or 2GB", document.Describe(node))
	}
	*s = Size(parsed)
	return nil
}

// Lists are how much is listed. What is beyond is left out, with a warning.
type Lists struct {
	// Servers is how many servers' tools are listed; zero is 1,000.
	Servers int `yaml:"servers"`
	// ToolsPerServer is how many tools one server may have, and how many
	// prompts and resources; zero is 1,000.
	ToolsPerServer int `yaml:"tools_per_server"`
	// Tools is how many tools are listed in all; zero is 10,000.
	Tools int `yaml:"tools"`
	// TTL is how long a client without a session may use a list without asking
	// again; zero is not at all.
	TTL Duration `yaml:"ttl"`
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

// DefaultShareIdle is how long a shared gateway stays without a client.
const DefaultShareIdle = 5 * time.Minute

// Share says how clients share a gateway.
type Share struct {
	// Idle is how long the gateway stays when the last client has left; zero is
	// [DefaultShareIdle]. The first client's counts.
	Idle Duration `yaml:"idle"`
}

// A Duration is written as "25s" or "10m".
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return typeError(node, "is %s, want a duration such as 30s or 5m", document.Describe(node))
	}
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed < 0 {
		return typeError(node, "is %s, want a duration such as 30s or 5m", document.Describe(node))
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
	// Err is why the file could not be read at all, else nil.
	Err error
}

// Error names the place and the problem.
func (e *ConfigError) Error() string { return e.Place + ": " + e.Problem }

// Unwrap returns why the file could not be read, or nil.
func (e *ConfigError) Unwrap() error { return e.Err }

// LoadConfig reads a configuration file. An unknown field is an error. The
// error joins all mistakes that can be told from the file alone: each is a
// [*ConfigError], or among [rules.Problems].
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		var failed *fs.PathError
		if errors.As(err, &failed) {
			err = failed.Err // the path is named already
		}
		return Config{}, &ConfigError{Place: path, Problem: err.Error(), Err: err}
	}
	return ParseConfig(path, data)
}

// ParseConfig is [LoadConfig] of a content that was read already.
func ParseConfig(path string, data []byte) (Config, error) {
	config := Config{File: path}
	root, err := decode(path, data, &config)
	mistakes := []error{err}
	config.Written = readWritten(path, root)
	config.Quotas = config.Quotas.from(path)
	mistakes = append(mistakes, config.Discovery.compile(path))
	config.Admission, err = readAdmission(path, config.Access, config.Roles)
	mistakes = append(mistakes, err)
	for _, m := range config.mistakes() {
		mistakes = append(mistakes, &ConfigError{Place: config.Written.Place(m.key, path), Problem: m.key + ": " + m.text})
	}
	return config, errors.Join(mistakes...)
}

// Check reports the values that a Config cannot have; place is where they were
// written.
func (c Config) Check(place string) error {
	var mistakes []error
	for _, m := range c.mistakes() {
		mistakes = append(mistakes, &ConfigError{Place: place, Problem: m.key + ": " + m.text})
	}
	return errors.Join(mistakes...)
}

func (c Config) mistakes() (all []mistake) {
	report := func(key, format string, args ...any) { all = append(all, mistake{key, fmt.Sprintf(format, args...)}) }
	for _, group := range c.Expose {
		if !slices.Contains(knownGroups(), group) {
			report("expose", "unknown group %q; known: %s", group, join(knownGroups()))
		}
	}
	atLeastZero := func(key string, value float64) {
		if value < 0 {
			report(key, "is %v, want 0 or more; 0 is the default", value)
		}
	}
	atLeastZero("lists.servers", float64(c.Lists.Servers))
	atLeastZero("lists.tools_per_server", float64(c.Lists.ToolsPerServer))
	atLeastZero("lists.tools", float64(c.Lists.Tools))
	atLeastZero("limits.pids", float64(c.Limits.PIDs))
	atLeastZero("http.rate", c.HTTP.Rate)
	atLeastZero("http.burst", float64(c.HTTP.Burst))
	atLeastZero("http.max_in_flight", float64(c.HTTP.MaxInFlight))
	atLeastZero("http.max_sessions", float64(c.HTTP.MaxSessions))
	atLeastZero("http.max_listens", float64(c.HTTP.MaxListens))
	prefixes := []menu.Prefix{menu.PrefixServer, menu.PrefixNone}
	if c.Prefix != "" && !slices.Contains(prefixes, c.Prefix) {
		report("prefix", "unknown value %q; known: %s", c.Prefix, join(prefixes))
	}
	modes := []approval.Mode{approval.ModeAsk, approval.ModeAll, approval.ModePinned}
	if c.Approval.Mode != "" && !slices.Contains(modes, c.Approval.Mode) {
		report("approval.mode", "unknown value %q; known: %s", c.Approval.Mode, join(modes))
	}
	if err := access.CheckURL(c.HTTP.URL); err != nil && len(c.Admission.Issuers) > 0 {
		report("http.url", "%v; the tokens of issuers are for this address", err)
	}
	c.checkBounds(report)
	return all
}

// checkBounds reports limits that nothing can run with, or that contradict
// each other.
func (c Config) checkBounds(report func(key, format string, args ...any)) {
	l, t := c.Limits, c.Timeouts
	perServer := Size(c.Quotas.MaxMemoryPerServer.Max)
	if l.Memory > 0 && l.Memory < leastMemory {
		report("limits.memory", "is %s, want 6MB or more, the least that an engine takes", l.Memory)
	}
	if perServer > 0 && l.Memory > perServer {
		report("limits.memory", "is %s, want quotas.max_memory_per_server (%s) or less", l.Memory, perServer)
	}
	if l.CPUs != 0 && !(l.CPUs >= 0.01 && l.CPUs <= 1<<16) {
		report("limits.cpus", "is %v, want 0.01 or more", l.CPUs)
	}
	if time.Duration(t.Stop) > catalog.MaxStop {
		report("timeouts.stop", "is %s, want %s at most", Brief(time.Duration(t.Stop)), Brief(catalog.MaxStop))
	}
	if t.CallMax > 0 && t.CallMax < t.Call {
		report("timeouts.call_max", "is %s, want timeouts.call (%s) or more", Brief(time.Duration(t.CallMax)), Brief(time.Duration(t.Call)))
	}
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
