// Package official reads what the official MCP registry says of servers: its
// server.json, alone or in the lists of its API, and it asks the registry
// itself.
//
// Of the packages of a server the first counts that can run in a container, an
// image before a package of npm or PyPI; else a remote. It is converted as the
// command line that it stands for, by package launch. The network permissions
// that ToolHive keeps beside an image are honoured. Unknown keys are ignored,
// as the registry's schema allows more of them.
package official

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// Parse reads a server.json, or a list of servers as the API returns it. The
// error is [catalog.Problems], and then nothing of the file is returned.
func Parse(origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, around)
	})
}

// Matches reports whether a document is a server.json, or a list of servers.
func Matches(root *yaml.Node) bool {
	if servers := document.Member(root, "servers"); servers != nil {
		return servers.Kind == yaml.SequenceNode && document.Member(root, "discovery") == nil
	}
	packages, remotes := document.Member(root, "packages"), document.Member(root, "remotes")
	return document.Member(root, "name") != nil && (sequence(packages) || sequence(remotes))
}

func sequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }

// Read reads a document that has been opened already; what is wrong with it is
// in the reader then.
func Read(r *document.Reader, root *yaml.Node, origin catalog.Origin, around catalog.Surroundings) catalog.File {
	file := catalog.File{Origin: origin}
	add := func(r *document.Reader, n, meta *yaml.Node) {
		at := origin
		at.Line = n.Line
		if s, ok := read(r, n, meta, at, around); ok {
			file.Servers = append(file.Servers, s)
		}
	}
	if !sequence(document.Member(root, "servers")) {
		inner := r.Inner(root.Line)
		add(inner, root, nil)
		r.Adopt("", inner)
		return file
	}
	r.Loose(map[string]document.Read{"servers": r.List(func(field string, n *yaml.Node) {
		inner := r.Inner(n.Line)
		if server := document.Member(n, "server"); server != nil {
			add(inner, server, document.Member(n, "_meta"))
		} else {
			add(inner, n, nil)
		}
		r.Adopt(field, inner)
	})})("", root)
	return file
}

// A server is what server.json says.
type server struct {
	name, title, description, version, status string

	packages []pack
	remotes  []transport
	allowed  map[string]permission // by the image
}

type pack struct {
	registryType, baseURL, identifier, version string

	transport        transport
	runtimeArguments []argument
	arguments        []argument
	environment      []input
}

type transport struct {
	kind, url string
	headers   []input
	variables map[string]input
}

// An input is a value that the registry gives, or that the user does.
type input struct {
	name, description, value, fallback, format string

	choices          []string
	required, secret bool
	variables        map[string]input
}

type argument struct {
	input
	kind, hint string
}

// A permission is what ToolHive lets an image reach.
type permission struct {
	hosts, ports []string
	all          bool
}

func read(r *document.Reader, n, meta *yaml.Node, origin catalog.Origin, around catalog.Surroundings) (catalog.Server, bool) {
	s := server{allowed: make(map[string]permission)}
	f := fields{r}
	published := f.published(s.allowed)
	official := f.Loose(map[string]document.Read{"status": f.text(&s.status)})
	about := f.Optional(f.Loose(map[string]document.Read{
		"io.modelcontextprotocol.registry/publisher-provided": published, "io.modelcontextprotocol.registry/official": f.Optional(official),
	}))
	r.Loose(map[string]document.Read{
		"name": r.Text(&s.name), "title": f.text(&s.title), "description": f.text(&s.description), "version": f.text(&s.version),
		"packages": f.Optional(r.List(func(field string, n *yaml.Node) { s.packages = append(s.packages, f.pack(field, n)) })),
		"remotes":  f.Optional(r.List(func(field string, n *yaml.Node) { s.remotes = append(s.remotes, f.transport(field, n)) })),
		"_meta":    about,
	})("", n)
	if meta != nil {
		about("_meta", meta)
	}
	if r.BadAsWhole() {
		return catalog.Server{}, false
	}
	if s.name == "" && !r.Bad("name") {
		r.ReportAt("name", "is missing")
	}
	if len(r.Problems) > 0 || s.status == "deleted" {
		return catalog.Server{}, false
	}
	entry := s.convert(origin, around)
	catalog.ReportProblems(r, entry, nil)
	return entry, true
}

// fields reads the fields of a server.json.
type fields struct{ *document.Reader }

func (f fields) text(to *string) document.Read { return f.Optional(f.Text(to)) }

func (f fields) pack(field string, n *yaml.Node) pack {
	p := pack{transport: transport{kind: "stdio"}}
	f.Loose(map[string]document.Read{
		"registryType": f.text(&p.registryType), "registry_type": f.text(&p.registryType), "registryBaseUrl": f.text(&p.baseURL),
		"identifier": f.text(&p.identifier), "version": f.text(&p.version),
		"transport":            f.Optional(func(field string, n *yaml.Node) { p.transport = f.transport(field, n) }),
		"runtimeArguments":     f.arguments(&p.runtimeArguments),
		"packageArguments":     f.arguments(&p.arguments),
		"environmentVariables": f.inputs(&p.environment),
	})(field, n)
	return p
}

func (f fields) transport(field string, n *yaml.Node) transport {
	t := transport{variables: make(map[string]input)}
	f.Loose(map[string]document.Read{
		"type": f.text(&t.kind), "url": f.text(&t.url), "headers": f.inputs(&t.headers), "variables": f.variables(&t.variables),
	})(field, n)
	return t
}

func (f fields) input(to *input) map[string]document.Read {
	return map[string]document.Read{
		"name": f.text(&to.name), "description": f.text(&to.description), "value": f.text(&to.value), "default": f.text(&to.fallback),
		"format": f.text(&to.format), "choices": f.Optional(f.Texts(&to.choices)), "isRequired": f.Optional(f.Boolean(&to.required)),
		"isSecret": f.Optional(f.Boolean(&to.secret)), "variables": f.variables(&to.variables),
	}
}

func (f fields) inputs(to *[]input) document.Read {
	return f.Optional(f.List(func(field string, n *yaml.Node) {
		var in input
		f.Loose(f.input(&in))(field, n)
		*to = append(*to, in)
	}))
}

func (f fields) variables(to *map[string]input) document.Read {
	return f.Optional(func(field string, n *yaml.Node) {
		*to = make(map[string]input)
		f.Each(field, n, func(key, value *yaml.Node) {
			var in input
			known := f.input(&in)
			delete(known, "variables") // one level, so that nothing nests without end
			f.Loose(known)(document.Join(field, key.Value), value)
			(*to)[key.Value] = in
		})
	})
}

func (f fields) arguments(to *[]argument) document.Read {
	return f.Optional(f.List(func(field string, n *yaml.Node) {
		var a argument
		known := f.input(&a.input)
		known["type"], known["valueHint"] = f.text(&a.kind), f.text(&a.hint)
		f.Loose(known)(field, n)
		*to = append(*to, a)
	}))
}

// published reads the permissions that ToolHive publishes for its images.
func (f fields) published(to map[string]permission) document.Read {
	return f.Optional(f.Loose(map[string]document.Read{"io.github.stacklok": f.Optional(func(field string, n *yaml.Node) {
		f.Each(field, n, func(key, value *yaml.Node) {
			outbound := document.Member(document.Member(document.Member(value, "permissions"), "network"), "outbound")
			if outbound == nil || outbound.Kind != yaml.MappingNode {
				return
			}
			var p permission
			f.Loose(map[string]document.Read{
				"allow_host": f.Optional(f.Texts(&p.hosts)), "allow_port": f.Optional(f.Texts(&p.ports)),
				"insecure_allow_all": f.Optional(f.Boolean(&p.all)),
			})(fmt.Sprintf("%s.%s.permissions.network.outbound", field, key.Value), outbound)
			to[key.Value] = p
		})
	})}))
}

// network is the right that a permission is in our words.
func (p permission) network() catalog.Network {
	switch {
	case p.all:
		return catalog.Network{Mode: catalog.NetworkFull}
	case len(p.hosts) == 0:
		return catalog.Network{Mode: catalog.NetworkNone}
	}
	ports := p.ports
	if len(ports) == 0 {
		ports = []string{"443"}
	}
	n := catalog.Network{Mode: catalog.NetworkAllow}
	for _, host := range p.hosts {
		if strings.HasPrefix(host, ".") {
			host = "*" + host
		}
		for _, port := range ports {
			if allowed := host + ":" + port; !slices.Contains(n.Allow, allowed) {
				n.Allow = append(n.Allow, allowed)
			}
		}
	}
	return n
}
