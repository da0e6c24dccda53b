package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// RunsAtOnce is how many calls of a server whose tools have containers of their
// own run at a time; others wait for their turn.
const RunsAtOnce = 2

// A Run is a tool that has a container of its own for each call.
type Run struct {
	Tool string `json:"tool"`
	// Definition is the tool as it is listed.
	Definition json.RawMessage `json:"definition"`
	Image      Image           `json:"image"`
	// Entrypoint and Command are templates over the arguments of the call and
	// the settings. Nil is the image's own.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user,omitempty"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	Tmpfs      []Tmpfs  `json:"tmpfs"`
}

// A LeftOut is a tool that is not offered, and why.
type LeftOut struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// String returns "tool: reason".
func (l LeftOut) String() string { return l.Tool + ": " + l.Reason }

// CompileTools turns the entry of a server whose tools have containers of their
// own into a Spec. Images has the image of every tool that can be run, by its
// reference. The error is as of [Compile].
func CompileTools(entry catalog.Server, settings map[string]any, images map[string]Image, host Host) (Spec, error) {
	if err := entry.CheckSettings(settings); err != nil {
		return Spec{}, err
	}
	c := compiler{entry: entry, values: map[string]any{"config": settings}, host: host}
	spec := Spec{
		Server: entry.Name, Network: effectiveNetwork(entry.Network.Mode), ExtraHosts: entry.ExtraHosts,
		Env: c.variables(), Secrets: requiredSecrets(entry.Secrets), Settings: settings,
		Limits: effectiveLimits(entry.Limits), Stop: entry.Timeouts.Stop,
	}
	shared := c.mounts("", entry.Mounts, nil)
	c.ownFiles()
	owner := c.owner
	for i, t := range entry.Tools {
		if t.Run == nil {
			continue // no format lets one of several tools have none
		}
		if reason := t.Run.Refusal(); reason != "" {
			spec.LeftOut = append(spec.LeftOut, LeftOut{t.Name, reason})
			continue
		}
		c.owner = owner
		spec.Runs = append(spec.Runs, c.run(fmt.Sprintf("tools[%d].run.", i), t, images[t.Run.Image], shared))
	}
	if len(c.problems) > 0 {
		return Spec{}, refusal(entry, c.problems)
	}
	return spec, nil
}

// run compiles what all calls of a tool have in common.
func (c *compiler) run(field string, t catalog.ToolSnapshot, image Image, shared []Mount) Run {
	r := Run{
		Tool: t.Name, Definition: definition(t), Image: image,
		Entrypoint: t.Run.Entrypoint, Command: t.Run.Command,
		WorkingDir: cmp.Or(c.entry.WorkingDir, image.Config.WorkingDir), User: image.Config.User,
	}
	r.Mounts = append(slices.Clone(shared), c.mounts(field, t.Run.Mounts, shared)...)
	r.Tmpfs = tmpfs(slices.Concat(image.Config.Volumes, c.entry.Tmpfs), r.Mounts, cmp.Or(c.entry.Limits.Tmp, DefaultTmp))
	if c.owner != "" {
		r.User = c.owner
	}
	if user := strings.Join(c.expand(field+"user", cmp.Or(t.Run.User, c.entry.User)), ""); user != "" {
		r.User = user
		if problem := catalog.CheckUser(user); problem != "" {
			c.refuse(field+"user", "%s", problem)
		}
	}
	if len(r.words()) == 0 {
		c.refuse(field+"command", "neither the tool nor its image has a command")
	}
	return r
}

// definition is a snapshot as an entry of a list of tools, with its schemas as
// the catalog has them.
func definition(t catalog.ToolSnapshot) json.RawMessage {
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}{t.Name, t.Description, schema, t.Annotations})
	if err != nil {
		panic("sandbox: a schema that was JSON when it was read: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}

// words are the command line with what is not filled in yet.
func (r Run) words() []string {
	entrypoint, command := r.Image.Config.Entrypoint, r.Image.Config.Cmd
	if len(r.Entrypoint) > 0 {
		entrypoint, command = r.Entrypoint, nil
	}
	if len(r.Command) > 0 {
		command = r.Command
	}
	return slices.Concat(entrypoint, command)
}

// Call returns the Spec of the container of one call. The secrets are those of
// s, with their values. The error is a [*CompileError].
func (s Spec) Call(r Run, arguments map[string]any) (Spec, error) {
	c := compiler{entry: catalog.Server{Name: s.Server}, values: map[string]any{"arguments": arguments, "config": s.Settings}}
	call := Spec{
		Server: s.Server, Image: r.Image, Entrypoint: r.Image.Config.Entrypoint, Command: r.Image.Config.Cmd,
		WorkingDir: r.WorkingDir, User: r.User, Env: s.Env, Secrets: s.Secrets, Network: s.Network, ExtraHosts: s.ExtraHosts,
		Mounts: r.Mounts, Tmpfs: r.Tmpfs, Limits: s.Limits, Stop: s.Stop, NoInput: true,
	}
	if len(r.Entrypoint) > 0 {
		call.Entrypoint, call.Command = c.expandAll("entrypoint", r.Entrypoint), nil
	}
	if len(r.Command) > 0 {
		call.Command = c.expandAll("command", r.Command)
	}
	words := slices.Concat(call.Entrypoint, call.Command)
	switch {
	case len(words) == 0:
		c.refuse("command", "is empty with these arguments")
	case slices.ContainsFunc(words, func(word string) bool { return strings.ContainsRune(word, 0) }):
		c.refuse("command", "would hold a NUL character")
	}
	if len(c.problems) > 0 {
		return Spec{}, &CompileError{Server: s.Server, Problems: c.problems}
	}
	return call, nil
}

// Reserved is the memory in bytes that the server may use at most, its helpers
// included.
func (s Spec) Reserved() int64 {
	memory := s.Limits.Memory
	if len(s.Runs) > 0 {
		memory *= RunsAtOnce
	}
	for _, h := range s.Helpers {
		memory += h.Spec.Limits.Memory
	}
	return memory
}

// A RunGrant is what a person approves of a tool that has a container of its
// own for each call.
type RunGrant struct {
	Tool  string `json:"tool"`
	Image string `json:"image"`
	Pin   Pin    `json:"pin"`
	// Command is the whole command line, with {{arguments.…}} where the model's
	// arguments stand and {{config.…}} for settings.
	Command    []string `json:"command"`
	WorkingDir string   `json:"working_dir,omitempty"`
	User       string   `json:"user"`
	Mounts     []Mount  `json:"mounts,omitempty"`
}

// describeRuns puts the tools into a grant.
func (g *Grant) describeRuns(entry catalog.Server, spec Spec) {
	g.LeftOut = spec.LeftOut
	for _, r := range spec.Runs {
		run := RunGrant{
			Tool: r.Tool, Image: r.Image.Ref, Pin: r.Image.Pin, Command: r.words(), User: r.User, Mounts: r.Mounts,
		}
		if entry.WorkingDir != "" {
			run.WorkingDir = r.WorkingDir
		}
		g.Runs = append(g.Runs, run)
	}
	g.WorkingDir = ""
	for name, value := range spec.Settings {
		if encoded, err := json.Marshal(value); err == nil { // a setting was JSON
			g.Settings = append(g.Settings, name+" = "+string(encoded))
		}
	}
	slices.Sort(g.Settings)
}

// runLines describe the grant of a server whose tools have containers of their
// own.
func (g Grant) runLines() []string {
	lines := []string{
		"source:    " + string(g.Source) + ", a container for each call of a tool",
		g.limits() + fmt.Sprintf(", for each call; %d calls at once", RunsAtOnce),
		"network:   " + g.network(),
	}
	for _, r := range g.Runs {
		of := r.Tool + ": "
		lines = append(lines,
			"image:     "+of+r.Image,
			"pinned:    "+of+pinned(r.Pin),
			"command:   "+of+quoted(r.Command),
			"user:      "+of+userName(r.User),
		)
		if r.WorkingDir != "" {
			lines = append(lines, "folder:    "+of+r.WorkingDir)
		}
		for _, m := range r.Mounts {
			lines = append(lines, m.line(of))
		}
	}
	for _, l := range g.LeftOut {
		lines = append(lines, "left out:  "+l.String())
	}
	for _, line := range g.ExtraHosts {
		lines = append(lines, "host:      "+line)
	}
	for _, s := range g.Settings {
		lines = append(lines, "setting:   "+s)
	}
	return append(lines, g.inside()...)
}

// Local reports that something of the grant is an image that no registry has,
// so that it means nothing on another engine.
func (g Grant) Local() bool {
	return g.Pin.Kind == LocalID || slices.ContainsFunc(g.Helpers, func(h HelperGrant) bool { return h.Grant.Pin.Kind == LocalID }) ||
		slices.ContainsFunc(g.Runs, func(r RunGrant) bool { return r.Pin.Kind == LocalID })
}
