// Package launch decides what becomes of a command line by which an MCP client
// would start a server on the host: a container of an image, a package or a
// file in the image of a runtime, a process in a container that the user runs,
// or a server somewhere else.
//
// It refuses to run anything on the host: what has no place in a container is
// unsupported, with the reason. Flags that would weaken the sandbox are kept
// out, and said in the entry's remarks. Values that look like secrets, by their
// names or their forms, are not copied: the entry asks for them by name. In an
// argument no secret can stand; there it is a setting that it asks for.
package launch

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A Command is what a client would start.
type Command struct {
	Program string
	Args    []string
	// Env are the variables that the client would set, as they are written.
	Env []catalog.Variable
	// Dir is the folder that relative paths start from; empty if it is not known.
	Dir string
	// Inputs are what the client would ask the user for, by their ids.
	Inputs map[string]Input
}

// An Input is a value that a client asks the user for.
type Input struct {
	Description string
	Default     string
	Options     []string
	// Secret says that the value is not to be seen.
	Secret bool
	// Optional says that there may be no value.
	Optional bool
}

// Entry fills in what the command is run as. The server brings its name, its
// origin and what describes it.
func Entry(server catalog.Server, command Command, around catalog.Surroundings) catalog.Server {
	l := newLauncher(server, command, around)
	l.start(command.Program, command.Args)
	return l.finish()
}

// Remote fills in a server that is elsewhere. In the URL's query and in the
// headers, references to the environment become secrets.
func Remote(server catalog.Server, remote catalog.Remote, command Command, around catalog.Surroundings) catalog.Server {
	l := newLauncher(server, command, around)
	l.remote(remote)
	return l.finish()
}

// A launcher carries the conversion of one command.
type launcher struct {
	catalog.Server
	command  Command
	around   catalog.Surroundings
	settings map[string]property
}

// A property is the schema of a setting.
type property struct {
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	required    bool
}

func newLauncher(server catalog.Server, command Command, around catalog.Surroundings) *launcher {
	if server.Isolation == "" {
		server.Isolation = catalog.Shared
	}
	if server.Network.Mode == "" {
		server.Network.Mode = catalog.NetworkNone
	}
	return &launcher{Server: server, command: command, around: around, settings: make(map[string]property)}
}

// unsupported gives the reason why nothing can be run; the first one counts.
func (l *launcher) unsupported(format string, args ...any) {
	if l.Unsupported == "" {
		l.Unsupported = masked(fmt.Sprintf(format, args...))
	}
}

func (l *launcher) remark(format string, args ...any) {
	text := masked(fmt.Sprintf(format, args...))
	if !slices.Contains(l.Remarks, text) {
		l.Remarks = append(l.Remarks, text)
	}
}

// finish returns the entry. One that cannot be run keeps what describes it.
func (l *launcher) finish() catalog.Server {
	s := l.Server
	if s.Unsupported == "" {
		s.Config = l.schema()
		if err := s.Validate(); err != nil {
			s.Unsupported = masked("cannot be described: " + reason(err))
		}
	}
	if s.Unsupported == "" {
		return s
	}
	return catalog.Server{
		Name: s.Name, Title: s.Title, Description: s.Description, Keywords: s.Keywords, Tags: s.Tags, Origin: s.Origin,
		Unsupported: s.Unsupported, Isolation: catalog.Shared, Network: catalog.Network{Mode: catalog.NetworkNone},
		AutoStart: s.AutoStart, Tools: s.Tools, EnabledTools: s.EnabledTools, EnabledAt: s.EnabledAt, Remarks: s.Remarks,
	}
}

// reason is what is wrong with an entry, without its place.
func reason(err error) string {
	problems, ok := err.(catalog.Problems) //nolint:errorlint // Validate returns it bare
	if !ok {
		return err.Error()
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, strings.TrimPrefix(p.Field+" "+p.Text, " "))
	}
	return strings.Join(texts, "; ")
}

func (l *launcher) schema() json.RawMessage {
	if len(l.settings) == 0 {
		return nil
	}
	var required []string
	for name, p := range l.settings {
		if p.required {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	encoded, err := json.Marshal(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required,omitempty"`
	}{"object", l.settings, required})
	if err != nil {
		return nil // texts only
	}
	return encoded
}

// start tells by the program's name what the command is.
func (l *launcher) start(program string, args []string) {
	switch name := programName(program); {
	case name == "":
		l.unsupported("names no command")
	case name == "docker" || name == "podman":
		l.docker(args)
	case name == "npx" || name == "bunx" || name == "pnpx":
		l.npx(args)
	case (name == "npm" || name == "pnpm" || name == "yarn" || name == "bun") && len(args) > 0 && slices.Contains([]string{"exec", "x", "dlx"}, args[0]):
		l.npx(args[1:])
	case name == "uvx":
		l.uvx(args)
	case name == "uv":
		l.uv(args)
	case name == "pipx" && len(args) > 0 && args[0] == "run":
		l.uvx(args[1:])
	case name == "python" || name == "py" || strings.HasPrefix(name, "python3") || name == "python2":
		l.python(args)
	case name == "node" || name == "nodejs":
		l.node(args)
	case name == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c"):
		l.start(args[1], args[2:])
	case name == "env":
		l.env(args)
	case slices.Contains([]string{"sh", "bash", "zsh", "cmd", "powershell", "pwsh", "wsl"}, name):
		l.unsupported("runs a line of the shell %s on the host; name the server's own command", name)
	default:
		l.unsupported("runs the program %s on the host; only docker, npx, uvx, python and node have a place in a container", program)
	}
}

// programName is the name of a program without its folder and ending.
func programName(program string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	if name == "." || name == "/" {
		return ""
	}
	return name
}

// env unwraps "env NAME=value program args".
func (l *launcher) env(args []string) {
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case assigned && !strings.HasPrefix(arg, "-"):
			l.command.Env = append(l.command.Env, catalog.Variable{Name: name, Value: value})
		case strings.HasPrefix(arg, "-"):
			l.unsupported("uses the flag %s of env", arg)
			return
		default:
			l.start(arg, args[i+1:])
			return
		}
	}
	l.unsupported("names no command")
}
