package official

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// convert chooses what of the server is run.
func (s server) convert(origin catalog.Origin, around catalog.Surroundings) catalog.Server {
	entry := client.Named(strings.ReplaceAll(s.name, "/", "."))
	entry.Origin, entry.Description = origin, s.description
	entry.Title = s.title
	if entry.Title == "" {
		entry.Title = s.name
	}
	if s.status == "deprecated" {
		entry.Remarks = append(entry.Remarks, "the registry calls it deprecated")
	}
	for _, kind := range []string{"oci", "npm", "pypi"} {
		for _, p := range s.packages {
			if p.registryType == kind && p.identifier != "" {
				return s.pack(entry, p, around)
			}
		}
	}
	for _, t := range s.remotes {
		b := builder{inputs: make(map[string]launch.Input)}
		return b.remote(entry, t, around)
	}
	var kinds []string
	for _, p := range s.packages {
		kinds = append(kinds, p.registryType)
	}
	entry.Unsupported = "has no package that can be run, and no remote"
	if len(kinds) > 0 {
		entry.Unsupported = "has only packages of " + strings.Join(kinds, ", ") + ", which are not run in containers"
	}
	entry.Network.Mode, entry.Isolation = catalog.NetworkNone, catalog.Shared
	return entry
}

// A builder makes the command line that a package stands for.
type builder struct {
	inputs  map[string]launch.Input
	remarks []string
}

func (s server) pack(entry catalog.Server, p pack, around catalog.Surroundings) catalog.Server {
	b := builder{inputs: make(map[string]launch.Input)}
	command := launch.Command{Inputs: b.inputs}
	for _, v := range p.environment {
		command.Env = append(command.Env, catalog.Variable{Name: v.name, Value: b.value(v, v.name)})
	}
	arguments := b.arguments(p.arguments)
	switch p.registryType {
	case "oci":
		command.Program = "docker"
		command.Args = append([]string{"run"}, b.arguments(p.runtimeArguments)...)
		for _, v := range p.environment {
			command.Args = append(command.Args, "-e", v.name)
		}
		command.Args = append(append(command.Args, p.image()), arguments...)
	case "npm":
		command.Program = "npx"
		command.Args = append([]string{"-y", versioned(p.identifier, "@", p.version)}, arguments...)
	case "pypi":
		command.Program = "uvx"
		command.Args = append([]string{versioned(p.identifier, "@", p.version)}, arguments...)
	}
	entry = launch.Entry(entry, command, around)
	entry.Remarks = append(entry.Remarks, b.remarks...)
	if entry.Runs() == catalog.KindUnsupported {
		return entry
	}
	for _, name := range []string{p.identifier, p.image()} {
		if allowed, ok := s.allowed[name]; ok {
			entry.Network = allowed.network()
		}
	}
	if p.transport.kind != "" && p.transport.kind != "stdio" {
		entry.HTTP = p.transport.http()
		if entry.HTTP == nil {
			return unsupported(entry, "listens at "+p.transport.url+", whose port is not known")
		}
	}
	if err := entry.Validate(); err != nil { // the permissions came from elsewhere
		return unsupported(entry, "cannot be described: "+err.Error())
	}
	return entry
}

func unsupported(s catalog.Server, reason string) catalog.Server {
	return catalog.Server{
		Name: s.Name, Title: s.Title, Description: s.Description, Origin: s.Origin, Unsupported: reason, Remarks: s.Remarks,
		Network: catalog.Network{Mode: catalog.NetworkNone}, Isolation: catalog.Shared,
	}
}

func versioned(name, separator, version string) string {
	if version == "" {
		return name
	}
	return name + separator + version
}

// image is the reference of an image; older entries have host and version
// apart from it.
func (p pack) image() string {
	image := p.identifier
	host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(p.baseURL, "https://"), "http://"), "/")
	first, _, _ := strings.Cut(image, "/")
	if host != "" && host != "docker.io" && !strings.ContainsAny(first, ".:") {
		image = host + "/" + image
	}
	last := image[strings.LastIndex(image, "/")+1:]
	if p.version != "" && !strings.ContainsAny(last, ":@") {
		image += ":" + p.version
	}
	return image
}

var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// value is the text of an input: what the registry gives, with its variables as
// references; or a reference to what the user gives.
func (b *builder) value(in input, name string) string {
	if in.value == "" {
		if name == "" {
			return in.fallback
		}
		b.inputs[name] = asked(in)
		return "${input:" + name + "}"
	}
	return placeholder.ReplaceAllStringFunc(in.value, func(found string) string {
		variable := found[1 : len(found)-1]
		of, ok := in.variables[variable]
		if !ok {
			return found
		}
		if of.value != "" {
			return of.value
		}
		b.inputs[variable] = asked(of)
		return "${input:" + variable + "}"
	})
}

func asked(in input) launch.Input {
	return launch.Input{
		Description: in.description, Default: in.fallback, Options: in.choices, Secret: in.secret, Optional: !in.required,
	}
}

// arguments writes arguments as they stand on a command line. Optional ones for
// which there is no value are left out.
func (b *builder) arguments(all []argument) []string {
	var words []string
	for _, a := range all {
		name := a.hint
		if name == "" {
			name = strings.TrimLeft(a.name, "-")
		}
		if a.value == "" && a.fallback == "" && !a.required {
			if a.kind == "named" && a.format == "" && a.description == "" {
				words = append(words, a.name) // a flag without a value
				continue
			}
			b.remarks = append(b.remarks, "the optional argument "+strings.TrimSpace(a.name+" "+a.hint)+" is left out")
			continue
		}
		if a.kind == "named" {
			words = append(words, a.name)
		}
		words = append(words, b.value(a.input, name))
	}
	return words
}

// http is how a package listens; nil if its port is not known.
func (t transport) http() *catalog.HTTP {
	text := placeholder.ReplaceAllStringFunc(t.url, func(found string) string {
		of := t.variables[found[1:len(found)-1]]
		if of.value != "" {
			return of.value
		}
		return of.fallback
	})
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil
	}
	h := &catalog.HTTP{Port: port, Path: u.Path, Transport: catalog.StreamableHTTP}
	if h.Path == "" {
		h.Path = "/"
	}
	if t.kind == "sse" {
		h.Transport = catalog.SSE
	}
	return h
}

func (b *builder) remote(entry catalog.Server, t transport, around catalog.Surroundings) catalog.Server {
	remote := catalog.Remote{Transport: catalog.StreamableHTTP, Headers: make(map[string]string)}
	if t.kind == "sse" {
		remote.Transport = catalog.SSE
	}
	for _, h := range t.headers {
		remote.Headers[h.name] = b.value(h, h.name)
	}
	remote.URL = b.value(input{value: t.url, variables: t.variables}, "")
	return launch.Remote(entry, remote, launch.Command{Inputs: b.inputs}, around)
}
