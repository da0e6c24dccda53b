package catalog

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/setting"
)

// Parse reads a file in the native format, version 1. The origin says where
// the file came from; each entry gets it with its own line. The error is
// [Problems], and then nothing of the file is returned.
//
// Sizes are read as the Docker CLI reads them, in powers of 1024 whatever the
// unit's spelling: 500MB is 500 MiB.
func Parse(origin Origin, data []byte) (File, error) {
	return ParseWith(origin, data, Read)
}

// ParseWith reads a file whose format the function knows. The error is
// [Problems], and then nothing of the file is returned.
func ParseWith(origin Origin, data []byte, read func(*document.Reader, *yaml.Node, Origin) File) (File, error) {
	r := document.New(origin.Catalog)
	var file File
	if root := r.Open(data, "it must begin with: version: 1"); root != nil {
		file = read(r, root, origin)
	}
	if err := r.Err(); err != nil {
		return File{}, err
	}
	return file, nil
}

// Read reads a file in the native format that has been opened already; what is
// wrong with it is in the reader then.
func Read(r *document.Reader, root *yaml.Node, origin Origin) File {
	file := File{Origin: origin}
	p := parser{Reader: r, origin: origin, file: &file}
	p.top(root)
	return file
}

// A parser reads one file of the native format.
type parser struct {
	*document.Reader
	origin Origin
	file   *File
}

func (p *parser) top(root *yaml.Node) {
	if version := document.Member(root, "version"); version != nil && version.Value != "1" {
		// The other fields of another format would only be noise.
		p.Report(version, "version", "is %s, want 1", document.Describe(version))
		return
	}
	p.Mapping(fields{
		"version":          document.Ignore,
		"servers":          p.Entries(p.server),
		"cli_alternatives": p.Entries(p.cli),
		"runtimes":         p.runtimes,
	})("", root)
	if document.Member(root, "version") == nil && root.Kind == yaml.MappingNode {
		p.Report(root, "version", "is missing; it must be 1")
	}
}

// at returns the origin of an entry.
func (p *parser) at(line int) Origin {
	origin := p.origin
	origin.Line = line
	return origin
}

func (p *parser) server(r *document.Reader, name string, line int, n *yaml.Node) {
	s := Server{Name: name, Origin: p.at(line), Network: Network{Mode: NetworkNone}, Isolation: Shared}
	e := entryReader{r}
	r.Mapping(fields{
		"title":       r.Text(&s.Title),
		"description": r.Text(&s.Description),
		"keywords":    r.Texts(&s.Keywords),
		"tags":        r.Texts(&s.Tags),
		"image":       r.Text(&s.Image),
		"program":     e.program(&s.Program),
		"exec":        e.exec(&s.Exec),
		"remote":      e.remote(&s.Remote),
		"unsupported": r.Text(&s.Unsupported),
		"entrypoint":  r.Texts(&s.Entrypoint),
		"command":     r.Texts(&s.Command),
		"working_dir": r.Text(&s.WorkingDir),
		"user":        r.Text(&s.User),
		"env":         e.variables(&s.Env),
		"secrets":     e.secrets(&s.Secrets),
		"config":      r.Object(&s.Config),
		"network":     e.network(&s.Network),
		"extra_hosts": r.Texts(&s.ExtraHosts),
		"mounts":      e.mounts(&s.Mounts),
		"tmpfs":       r.Texts(&s.Tmpfs),
		"limits":      e.limits(&s.Limits),
		"timeouts":    e.timeouts(&s.Timeouts),
		"isolation":   r.Text((*string)(&s.Isolation)),
		"auto_start":  r.Boolean(&s.AutoStart),
		"http":        e.http(&s.HTTP),
		"helpers":     e.helpers(&s.Helpers),
		"oauth":       e.oauth(&s.OAuth),
		"tools":       e.tools(&s.Tools),
		"enabled_tools": func(field string, n *yaml.Node) {
			s.EnabledTools = []string{} // none is not the same as nothing said
			r.Texts(&s.EnabledTools)(field, n)
			s.EnabledAt = p.at(n.Line).String()
		},
		"remarks": r.Texts(&s.Remarks),
	})("", n)
	ReportProblems(r, s, nil)
	p.file.Servers = append(p.file.Servers, s)
}

// ReportProblems adds what is wrong with an entry as a whole, with the lines
// of the fields, and without what was reported when a field was read. Rename
// maps the fields of an entry to those of the file's own format; nil keeps
// them.
func ReportProblems(r *document.Reader, s Server, rename func(field string) string) {
	if r.BadAsWhole() {
		return
	}
	if r.Bad("config") {
		s.Config = setting.Open() // what it says is not known, so any setting may be in it
	}
	known := make(map[string]bool)
	for field := range r.Fields() {
		known[field] = true
	}
	for _, problem := range s.problems() {
		field := problem.Field
		if rename != nil {
			field = rename(field)
		}
		source := field == "" && (known["image"] || known["remote"] || known["unsupported"] || known["program"] || known["exec"])
		if !source && !document.Reported(known, field) {
			r.ReportAt(field, "%s", problem.Text)
		}
	}
}

func (p *parser) cli(r *document.Reader, name string, line int, n *yaml.Node) {
	if cli, ok := ReadCLI(r, name, p.at(line), n); ok {
		p.file.CLIs = append(p.file.CLIs, cli)
	}
}

// ReadCLI reads a command-line program as the native format has it; other
// formats have the same. It is not one from a project's file.
func ReadCLI(r *document.Reader, name string, origin Origin, n *yaml.Node) (CLI, bool) {
	if origin.Kind == Project {
		r.Report(n, "", "a project's file cannot name commands that run outside a container")
		return CLI{}, false
	}
	line := origin.Line
	cli := CLI{Name: name, Origin: origin}
	r.Mapping(fields{
		"description":    r.Text(&cli.Description),
		"keywords":       r.Texts(&cli.Keywords),
		"check_command":  r.Texts(&cli.CheckCommand),
		"help_command":   r.Texts(&cli.HelpCommand),
		"prefer_mcp_for": r.Texts(&cli.PreferMCPFor),
		"examples":       r.Texts(&cli.Examples),
	})("", n)
	if !entryName.MatchString(name) {
		r.Report(&yaml.Node{Line: line}, "", "%s", badName)
	}
	if len(cli.CheckCommand) == 0 && !r.BadAsWhole() && !r.Bad("check_command") {
		r.Report(&yaml.Node{Line: line}, "check_command", "is missing; it shows whether the program is installed")
	}
	for field, command := range map[string][]string{"check_command": cli.CheckCommand, "help_command": cli.HelpCommand} {
		if len(command) > 0 && command[0] == "" && !r.Bad(field) {
			r.Report(&yaml.Node{Line: r.Line(field)}, field, "names no program")
		}
	}
	return cli, true
}

func (p *parser) runtimes(field string, n *yaml.Node) {
	if document.IsNull(n) {
		return
	}
	if p.origin.Kind == Project {
		p.Report(n, field, "a project's file cannot choose the images that packages run in")
		return
	}
	p.file.Runtimes = make(map[string]Runtime)
	runtime := func(field string, n *yaml.Node) {
		_, name, _ := strings.Cut(field, ".")
		runtime := Runtime{Origin: p.at(p.Line(field))}
		p.Mapping(fields{"image": p.Text(&runtime.Image)})(field, n)
		if problem := imageProblem(runtime.Image); problem != "" && !p.Bad(field) {
			image := document.Join(field, "image")
			p.Report(&yaml.Node{Line: p.Line(image)}, image, "%s", problem)
		}
		p.file.Runtimes[name] = runtime
	}
	p.Mapping(fields{"npx": runtime, "uvx": runtime})(field, n)
}
