package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/template"
)

// The limits of a server whose entry names none. Memory, processor and
// process limits follow what MCP servers in the public catalogs need; an entry
// for a browser asks for more.
const (
	DefaultMemory = 500 << 20
	DefaultCPUs   = 1.0
	DefaultPIDs   = 512
	DefaultShm    = 64 << 20
	DefaultTmp    = 256 << 20

	// cpuShares is half the engine's default: what a person runs beside us goes first.
	cpuShares = 512
	openFiles = 16384
	tmp       = "/tmp"
)

// A Host is what Compile must know of the machine whose paths are mounted.
type Host struct {
	// Home is the user's home folder.
	Home string
	// RemoteEngine reports that the engine does not see this machine's files.
	RemoteEngine bool
	// Stat looks at a path and follows links.
	Stat func(path string) (HostPath, error)
}

// A HostPath is a file or folder of the host.
type HostPath struct {
	// Real is the path with every link followed.
	Real string
	// Owner is "uid:gid", empty where the host has no such owners.
	Owner string
	// Socket reports that it is neither file nor folder but a socket or device.
	Socket bool
	// Folder reports that it is a folder.
	Folder bool
}

// A Problem is one reason why an entry cannot be compiled.
type Problem struct {
	// Field is the entry's field, such as "mounts[0].source".
	Field string
	Text  string
}

// A CompileError lists everything that keeps a server from being compiled.
type CompileError struct {
	Server   string
	Problems []Problem
	// Place is where the entry stands, if it takes no settings: then only the
	// entry itself can be changed.
	Place string
}

// Error returns one line for each problem.
func (e *CompileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("server %q: %s: %s", e.Server, p.Field, p.Text)
	}
	return strings.Join(lines, "\n")
}

// Hint says what the user can do.
func (e *CompileError) Hint() string {
	if e.Place != "" {
		return "change its entry in " + e.Place
	}
	return fmt.Sprintf("change the settings with: dockgate add %s --set key=value", e.Server)
}

// Compile turns an entry, the user's settings and the image's configuration
// into the Spec of one container. It looks at the host only through host. The
// error is a [*CompileError], or the settings' own.
func Compile(entry catalog.Server, settings map[string]any, image Image, host Host) (Spec, error) {
	if err := entry.CheckSettings(settings); err != nil {
		return Spec{}, err
	}
	c := compiler{entry: entry, values: map[string]any{"config": settings}, host: host}
	if entry.Exec != nil {
		return c.exec(image)
	}
	spec := Spec{
		Server:     entry.Name,
		Image:      image,
		Entrypoint: image.Config.Entrypoint,
		Command:    image.Config.Cmd,
		WorkingDir: image.Config.WorkingDir,
		User:       image.Config.User,
		Network:    effectiveNetwork(entry.Network.Mode),
		ExtraHosts: entry.ExtraHosts,
		Limits:     effectiveLimits(entry.Limits),
		Stop:       entry.Timeouts.Stop,
	}
	if h := entry.HTTP; h != nil {
		spec.HTTP = &HTTP{Port: h.Port, Path: h.Path, Transport: h.Transport}
	}
	if len(entry.Entrypoint) > 0 { // as with docker run: another entrypoint drops the image's command
		spec.Entrypoint, spec.Command = c.expandAll("entrypoint", entry.Entrypoint), nil
	}
	if entry.Program != nil {
		c.program(&spec)
	}
	if len(entry.Command) > 0 {
		spec.Command = c.expandAll("command", entry.Command)
	}
	if entry.WorkingDir != "" {
		spec.WorkingDir = entry.WorkingDir
	}
	spec.Env = c.variables()
	spec.Secrets = requiredSecrets(entry.Secrets)
	spec.Mounts = append(spec.Mounts, c.mounts("", entry.Mounts, spec.Mounts)...)
	spec.Tmpfs = tmpfs(slices.Concat(image.Config.Volumes, entry.Tmpfs), spec.Mounts, cmp.Or(entry.Limits.Tmp, DefaultTmp))
	if c.ownFiles(); c.owner != "" {
		spec.User = c.owner
	}
	if user := strings.Join(c.expand("user", entry.User), ""); user != "" {
		spec.User = user
		if problem := catalog.CheckUser(user); problem != "" {
			c.refuse("user", "%s", problem)
		}
	}
	if len(spec.Entrypoint)+len(spec.Command) == 0 {
		c.refuse("command", "neither the entry nor the image has a command")
	}
	if len(c.problems) > 0 {
		return Spec{}, refusal(entry, c.problems)
	}
	return spec, nil
}

// refusal is the error of an entry with problems.
func refusal(entry catalog.Server, problems []Problem) *CompileError {
	e := &CompileError{Server: entry.Name, Problems: problems}
	if len(entry.Config) == 0 && entry.Origin.Kind != catalog.BuiltIn {
		e.Place = entry.Origin.String()
	}
	return e
}

// A compiler carries one compilation; it gathers problems instead of stopping.
type compiler struct {
	entry    catalog.Server
	values   map[string]any
	host     Host
	owner    string // of the first writable mount's source, or of the files of secrets
	problems []Problem
}

func (c *compiler) refuse(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (c *compiler) expand(field, text string) []string {
	expanded, err := template.Expand(text, c.values)
	if err != nil {
		c.refuse(field, "%v", err)
	}
	return expanded
}

func (c *compiler) expandAll(field string, templates []string) []string {
	var all []string
	for i, template := range templates {
		all = append(all, c.expand(fmt.Sprintf("%s[%d]", field, i), template)...)
	}
	return all
}

// writableHome sends everything that programs write below their home to /tmp:
// the root file system is read-only.
func writableHome() []Variable {
	return []Variable{
		{Name: "HOME", Value: tmp},
		{Name: "TMPDIR", Value: tmp},
		{Name: "XDG_CACHE_HOME", Value: tmp + "/.cache"},
		{Name: "XDG_CONFIG_HOME", Value: tmp + "/.config"},
		{Name: "XDG_DATA_HOME", Value: tmp + "/.local/share"},
		{Name: "XDG_STATE_HOME", Value: tmp + "/.local/state"},
		{Name: "npm_config_cache", Value: tmp + "/.npm"},
		{Name: "UV_CACHE_DIR", Value: tmp + "/.cache/uv"},
	}
}

func (c *compiler) variables() []Variable {
	env := writableHome()
	for _, v := range c.entry.Env {
		// Where a secret stands in a value no setting does, see
		// [catalog.Server.Validate]; so no setting can bring one in.
		secrets := catalog.SecretsIn(v.Value, c.entry.Secrets)
		value := v.Value
		if len(secrets) == 0 {
			value = strings.Join(c.expand("env."+v.Name, v.Value), ",")
		}
		if value == "" {
			continue
		}
		env = slices.DeleteFunc(env, func(other Variable) bool { return other.Name == v.Name })
		env = append(env, Variable{Name: v.Name, Value: value, Secrets: secrets})
	}
	return env
}

func requiredSecrets(wanted []catalog.Secret) []Secret {
	var secrets []Secret
	for _, s := range wanted {
		secrets = append(secrets, Secret{
			Name: s.Name, From: s.Variable(), Env: s.Env,
			Required: s.Required, File: s.File, Instructions: s.Instructions,
		})
	}
	return secrets
}

func effectiveNetwork(requested catalog.NetworkMode) catalog.NetworkMode {
	if requested == "" || requested == catalog.NetworkNone {
		return catalog.NetworkNone
	}
	return catalog.NetworkFull
}

func effectiveLimits(l catalog.Limits) Limits {
	return Limits{
		Memory:    cmp.Or(l.Memory, DefaultMemory),
		NanoCPUs:  int64(cmp.Or(l.CPUs, DefaultCPUs) * 1e9),
		CPUShares: cpuShares,
		PIDs:      cmp.Or(l.PIDs, DefaultPIDs),
		Shm:       cmp.Or(l.Shm, DefaultShm),
		Files:     openFiles,
	}
}

// tmpfs bounds every writable place: /tmp, and the volumes that the image
// declares and nobody mounted, which would else grow on the engine's disk.
func tmpfs(volumes []string, mounts []Mount, size int64) []Tmpfs {
	places := []Tmpfs{{Target: tmp, Size: size}}
	for _, volume := range volumes {
		mounted := slices.ContainsFunc(mounts, func(m Mount) bool { return m.Target == volume })
		known := slices.ContainsFunc(places, func(t Tmpfs) bool { return t.Target == volume })
		if !mounted && !known {
			places = append(places, Tmpfs{Target: volume, Size: size})
		}
	}
	return places
}
