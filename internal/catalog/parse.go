package catalog

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads a file in the native format, version 1. The origin says where
// the file came from; each entry gets it with its own line. The error is
// [Problems], and then nothing of the file is returned.
//
// Sizes are read as the Docker CLI reads them, in powers of 1024 whatever the
// unit's spelling: 500MB is 500 MiB.
func Parse(origin Origin, data []byte) (File, error) {
	r := newReader(origin.Catalog)
	file := File{Origin: origin}
	if root := r.document(data); root != nil {
		p := parser{reader: r, origin: origin, file: &file}
		p.top(root)
	}
	if len(r.problems) > 0 {
		r.problems.sort()
		return File{}, r.problems
	}
	return file, nil
}

// A parser reads one file of the native format.
type parser struct {
	*reader
	origin Origin
	file   *File
}

// document returns the root node of the only document; nil if there is none,
// which is then reported.
func (r *reader) document(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		r.problems = append(r.problems, Problem{File: r.file, Text: "is empty; it must begin with: version: 1"})
		return nil
	} else if err != nil {
		r.problems = append(r.problems, r.syntax(err))
		return nil
	}
	if err := decoder.Decode(&more); err == nil {
		r.report(&more, "", "is a second document; a catalog has one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.problems = append(r.problems, r.syntax(err))
		return nil
	}
	return target(root.Content[0])
}

var yamlLine = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)

// syntax turns an error of the YAML library, which has the line in its text
// only, into a problem.
func (r *reader) syntax(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits only; one that is too long is no line
		return Problem{File: r.file, Line: line, Text: "is not YAML: " + m[2]}
	}
	return Problem{File: r.file, Text: "is not YAML: " + text}
}

func (p *parser) top(root *yaml.Node) {
	if version := member(root, "version"); version != nil && version.Value != "1" {
		// The other fields of another format would only be noise.
		p.report(version, "version", "is %s, want 1", describe(version))
		return
	}
	ignore := func(string, *yaml.Node) {}
	p.mapping(map[string]read{
		"version":          ignore,
		"servers":          p.entries(p.server),
		"cli_alternatives": p.entries(p.cli),
		"runtimes":         p.runtimes,
	})("", root)
	if _, ok := p.lines["version"]; !ok && root.Kind == yaml.MappingNode {
		p.report(root, "version", "is missing; it must be 1")
	}
}

// member returns the value of a key of a mapping, or nil.
func member(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if target(n.Content[i]).Value == name {
			return target(n.Content[i+1])
		}
	}
	return nil
}

// entries reads a mapping of named entries; an empty one holds none.
func (p *parser) entries(entry func(r *reader, name string, line int, n *yaml.Node)) read {
	return func(field string, n *yaml.Node) {
		if isNull(n) {
			return
		}
		p.each(field, n, func(key, value *yaml.Node) {
			inner := p.inner(key.Line)
			entry(inner, key.Value, key.Line, value)
			for _, problem := range inner.problems {
				problem.Field = join(join(field, key.Value), problem.Field)
				p.problems = append(p.problems, problem)
			}
		})
	}
}

// at returns the origin of an entry.
func (p *parser) at(line int) Origin {
	origin := p.origin
	origin.Line = line
	return origin
}

func (p *parser) server(r *reader, name string, line int, n *yaml.Node) {
	s := Server{Name: name, Origin: p.at(line), Network: Network{Mode: NetworkNone}, Isolation: Shared}
	r.mapping(map[string]read{
		"title":       r.text(&s.Title),
		"description": r.text(&s.Description),
		"keywords":    r.texts(&s.Keywords),
		"tags":        r.texts(&s.Tags),
		"image":       r.text(&s.Image),
		"remote":      r.remote(&s.Remote),
		"unsupported": r.text(&s.Unsupported),
		"entrypoint":  r.texts(&s.Entrypoint),
		"command":     r.texts(&s.Command),
		"user":        r.text(&s.User),
		"env":         r.variables(&s.Env),
		"secrets":     r.secrets(&s.Secrets),
		"config":      r.object(&s.Config),
		"network":     r.network(&s.Network),
		"mounts":      r.mounts(&s.Mounts),
		"limits": r.mapping(map[string]read{
			"memory": r.size(&s.Limits.Memory),
			"cpus":   r.number(&s.Limits.CPUs),
			"pids":   r.integer(&s.Limits.PIDs),
			"shm":    r.size(&s.Limits.Shm),
			"tmp":    r.size(&s.Limits.Tmp),
		}),
		"timeouts": r.mapping(map[string]read{
			"start":    r.duration(&s.Timeouts.Start),
			"call":     r.duration(&s.Timeouts.Call),
			"call_max": r.duration(&s.Timeouts.CallMax),
			"list":     r.duration(&s.Timeouts.List),
			"idle":     r.duration(&s.Timeouts.Idle),
			"stop":     r.duration(&s.Timeouts.Stop),
		}),
		"isolation":  r.text((*string)(&s.Isolation)),
		"auto_start": r.boolean(&s.AutoStart),
		"tools":      r.tools(&s.Tools),
	})("", n)
	r.validate(s)
	p.file.Servers = append(p.file.Servers, s)
}

// validate adds what is wrong with the entry as a whole, with the lines of the
// fields, and without what was reported when the field was read.
func (r *reader) validate(s Server) {
	known := maps.Clone(r.bad)
	if known[""] {
		return // not even a mapping
	}
	if reported(known, "config") {
		s.Config = openConfig() // what it says is not known, so any setting may be in it
	}
	for _, problem := range s.problems() {
		source := problem.Field == "" && (known["image"] || known["remote"] || known["unsupported"])
		if !source && !reported(known, problem.Field) {
			problem.Line = r.line(problem.Field)
			r.problems = append(r.problems, problem)
		}
	}
}

// reported tells whether a problem of the field, or of one around or inside
// it, is known already.
func reported(known map[string]bool, field string) bool {
	for bad := range known {
		if bad == field || field != "" && (inside(bad, field) || inside(field, bad)) {
			return true
		}
	}
	return false
}

func inside(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && outer != "" && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

func (r *reader) remote(to **Remote) read {
	return func(field string, n *yaml.Node) {
		remote := Remote{Transport: StreamableHTTP}
		r.mapping(map[string]read{
			"url":       r.text(&remote.URL),
			"transport": r.text(&remote.Transport),
			"headers": func(field string, n *yaml.Node) {
				remote.Headers = make(map[string]string)
				r.each(field, n, func(key, value *yaml.Node) {
					var text string
					r.text(&text)(join(field, key.Value), value)
					remote.Headers[key.Value] = text
				})
			},
		})(field, n)
		*to = &remote
	}
}

func (r *reader) variables(to *[]Variable) read {
	return func(field string, n *yaml.Node) {
		r.each(field, n, func(key, value *yaml.Node) {
			v := Variable{Name: key.Value}
			r.text(&v.Value)(join(field, key.Value), value)
			*to = append(*to, v)
		})
	}
}

func (r *reader) secrets(to *[]Secret) read {
	return r.list(func(field string, n *yaml.Node) {
		var s Secret
		r.mapping(map[string]read{
			"name":         r.text(&s.Name),
			"env":          r.text(&s.Env),
			"from":         r.text(&s.From),
			"required":     r.boolean(&s.Required),
			"instructions": r.text(&s.Instructions),
		})(field, n)
		*to = append(*to, s)
	})
}

func (r *reader) network(to *Network) read {
	return func(field string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			to.Mode = NetworkAllow
			r.mapping(map[string]read{"allow": r.texts(&to.Allow)})(field, n)
			return
		}
		modes := []NetworkMode{NetworkNone, NetworkPublic, NetworkFull}
		if n.Kind != yaml.ScalarNode || !slices.Contains(modes, NetworkMode(n.Value)) {
			r.report(n, field, "is %s, want none, public, full, or a mapping with allow", describe(n))
			return
		}
		to.Mode = NetworkMode(n.Value)
	}
}

func (r *reader) mounts(to *[]Mount) read {
	return r.list(func(field string, n *yaml.Node) {
		var m Mount
		r.mapping(map[string]read{
			"source":    r.text(&m.Source),
			"target":    r.text(&m.Target),
			"read_only": r.boolean(&m.ReadOnly),
		})(field, n)
		*to = append(*to, m)
	})
}

func (r *reader) tools(to *[]ToolSnapshot) read {
	return r.list(func(field string, n *yaml.Node) {
		var tool ToolSnapshot
		r.mapping(map[string]read{
			"name":        r.text(&tool.Name),
			"description": r.text(&tool.Description),
			"inputSchema": r.object(&tool.InputSchema),
		})(field, n)
		*to = append(*to, tool)
	})
}

func (p *parser) cli(r *reader, name string, line int, n *yaml.Node) {
	if p.origin.Kind == Project {
		r.report(n, "", "a project's file cannot name commands that run outside a container")
		return
	}
	cli := CLI{Name: name, Origin: p.at(line)}
	r.mapping(map[string]read{
		"description":    r.text(&cli.Description),
		"keywords":       r.texts(&cli.Keywords),
		"check_command":  r.texts(&cli.CheckCommand),
		"help_command":   r.texts(&cli.HelpCommand),
		"prefer_mcp_for": r.texts(&cli.PreferMCPFor),
		"examples":       r.texts(&cli.Examples),
	})("", n)
	if !entryName.MatchString(name) {
		r.report(&yaml.Node{Line: line}, "", "%s", badName)
	}
	if len(cli.CheckCommand) == 0 && !r.bad[""] && !reported(r.bad, "check_command") {
		r.report(&yaml.Node{Line: line}, "check_command", "is missing; it shows whether the program is installed")
	}
	for field, command := range map[string][]string{"check_command": cli.CheckCommand, "help_command": cli.HelpCommand} {
		if len(command) > 0 && command[0] == "" && !reported(r.bad, field) {
			r.report(&yaml.Node{Line: r.line(field)}, field, "names no program")
		}
	}
	p.file.CLIs = append(p.file.CLIs, cli)
}

func (p *parser) runtimes(field string, n *yaml.Node) {
	if isNull(n) {
		return
	}
	if p.origin.Kind == Project {
		p.report(n, field, "a project's file cannot choose the images that packages run in")
		return
	}
	p.file.Runtimes = make(map[string]Runtime)
	runtime := func(field string, n *yaml.Node) {
		_, name, _ := strings.Cut(field, ".")
		runtime := Runtime{Origin: p.at(p.line(field))}
		p.mapping(map[string]read{"image": p.text(&runtime.Image)})(field, n)
		if problem := imageProblem(runtime.Image); problem != "" && !reported(p.bad, field) {
			image := join(field, "image")
			p.report(&yaml.Node{Line: p.line(image)}, image, "%s", problem)
		}
		p.file.Runtimes[name] = runtime
	}
	p.mapping(map[string]read{"npx": runtime, "uvx": runtime})(field, n)
}
