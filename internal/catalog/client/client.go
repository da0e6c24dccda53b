// Package client reads the servers that MCP clients are configured with, and
// knows where each client keeps them.
//
// What a client would start on the host becomes what package launch makes of
// it. Keys that a client has for itself are ignored, as the clients do with
// each other's. A name that a catalog cannot have is made one; the title keeps
// it.
package client

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// Parse reads the configuration of a client. The error is [catalog.Problems],
// and then nothing of the file is returned.
func Parse(origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, around)
	})
}

// Matches reports whether a document is the configuration of a client.
func Matches(root *yaml.Node) bool {
	if member := document.Member(root, "mcpServers"); member != nil && member.Kind == yaml.MappingNode {
		return true
	}
	for _, holder := range []*yaml.Node{root, document.Member(root, "mcp")} {
		if holder == nil {
			continue
		}
		servers := document.Member(holder, "servers")
		if servers == nil || servers.Kind != yaml.MappingNode {
			continue
		}
		if holder != root {
			return true
		}
		for i := 1; i < len(servers.Content); i += 2 {
			entry := document.Target(servers.Content[i])
			command := document.Member(entry, "command")
			url := document.Member(entry, "url")
			stands := document.Member(entry, "image") != nil || document.Member(entry, "install") != nil
			if !stands && (command != nil && command.Kind == yaml.ScalarNode || url != nil) {
				return true
			}
		}
	}
	return false
}

// Read reads a configuration that has been opened already; what is wrong with
// it is in the reader then.
func Read(r *document.Reader, root *yaml.Node, origin catalog.Origin, around catalog.Surroundings) catalog.File {
	p := parser{Reader: r, around: around, file: &catalog.File{Origin: origin}, dir: projectOf(origin.Catalog, around.Home)}
	// The inputs first: the servers refer to them.
	if inputs := document.Member(root, "inputs"); inputs != nil {
		p.readInputs("inputs", inputs)
	} else if mcp := document.Member(root, "mcp"); mcp != nil && document.Member(mcp, "inputs") != nil {
		p.readInputs("mcp.inputs", document.Member(mcp, "inputs"))
	}
	servers := r.Entries(p.server)
	r.Loose(map[string]document.Read{
		"mcpServers": r.Optional(servers), "servers": r.Optional(servers),
		"mcp":      r.Optional(r.Loose(map[string]document.Read{"servers": servers})),
		"projects": r.Optional(p.projects(servers)),
	})("", root)
	if p.disabled {
		p.file.Enabled = append([]string{}, p.enabled...) // none is not the same as nothing said
	}
	return *p.file
}

// projectOf is the folder of the project that a configuration belongs to;
// empty for one that belongs to the user.
func projectOf(path, home string) string {
	folder := filepath.Dir(path)
	if base := filepath.Base(folder); base == ".vscode" || base == ".cursor" || base == ".windsurf" {
		folder = filepath.Dir(folder)
	} else if filepath.Base(path) != ".mcp.json" {
		return ""
	}
	if folder == home || !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.ToSlash(folder)
}

// A parser reads one configuration.
type parser struct {
	*document.Reader
	around   catalog.Surroundings
	file     *catalog.File
	dir      string
	inputs   map[string]launch.Input
	enabled  []string
	disabled bool
}

// projects reads the servers that a client keeps for the project in the
// working directory; those of other projects are not wanted here.
func (p *parser) projects(servers document.Read) document.Read {
	return func(field string, n *yaml.Node) {
		p.Each(field, n, func(key, value *yaml.Node) {
			if p.around.Dir != "" && filepath.Clean(key.Value) == filepath.Clean(p.around.Dir) {
				p.dir = filepath.ToSlash(p.around.Dir)
				p.Loose(map[string]document.Read{"mcpServers": servers})(document.Join(field, key.Value), value)
				p.dir = ""
			}
		})
	}
}

func (p *parser) readInputs(field string, n *yaml.Node) {
	p.inputs = make(map[string]launch.Input)
	p.Optional(p.List(func(field string, n *yaml.Node) {
		var id string
		var in launch.Input
		p.Loose(map[string]document.Read{
			"id": p.Text(&id), "description": p.Text(&in.Description), "default": p.Optional(p.Text(&in.Default)), "password": p.Boolean(&in.Secret),
			"options": p.Optional(p.List(func(field string, n *yaml.Node) {
				var option string
				if n.Kind == yaml.MappingNode {
					p.Loose(map[string]document.Read{"value": p.Text(&option)})(field, n)
				} else {
					p.Text(&option)(field, n)
				}
				in.Options = append(in.Options, option)
			})),
		})(field, n)
		p.inputs[id] = in
	}))(field, n)
}

// gateway is the name of the entry that starts this gateway. It is no server
// that could be behind it.
const gateway = "dockgate"

// A server is an entry of a configuration.
type server struct {
	kind, command, cwd, url, serverURL, httpURL, description string

	args     []string
	env      []catalog.Variable
	headers  []catalog.Variable
	disabled bool
}

func (p *parser) server(r *document.Reader, name string, line int, n *yaml.Node) {
	var s server
	r.Loose(map[string]document.Read{
		"type": r.Optional(r.Text(&s.kind)), "command": r.Optional(r.Text(&s.command)), "args": r.Optional(r.Texts(&s.args)),
		"env": variables(r, &s.env), "cwd": r.Optional(r.Text(&s.cwd)), "url": r.Optional(r.Text(&s.url)),
		"serverUrl": r.Optional(r.Text(&s.serverURL)), "httpUrl": r.Optional(r.Text(&s.httpURL)), "headers": variables(r, &s.headers), "disabled": r.Optional(r.Boolean(&s.disabled)),
		"description": r.Optional(r.Text(&s.description)),
	})("", n)
	if r.BadAsWhole() || name == gateway && slices.Contains(s.args, "serve") {
		return
	}
	if s.url == "" {
		s.url = s.serverURL
	}
	if s.httpURL != "" { // the Gemini CLI's, where url is the older transport
		s.url, s.kind = s.httpURL, "http"
	}
	entry := Named(name)
	entry.Description, entry.Origin = s.description, p.file.Origin
	entry.Origin.Line = line
	command := launch.Command{Program: s.command, Args: s.args, Env: s.env, Dir: p.dir, Inputs: p.inputs}
	if s.cwd != "" {
		command.Dir = s.cwd
	}
	switch {
	case s.url != "":
		entry = launch.Remote(entry, remote(s), command, p.around)
	case s.command != "":
		entry = launch.Entry(entry, command, p.around)
	case len(r.Problems) == 0:
		// Clients pass over such an entry, and the others are no worse for it.
		entry.Unsupported = "names neither a command nor a url"
		entry.Network, entry.Isolation = catalog.Network{Mode: catalog.NetworkNone}, catalog.Shared
	default:
		return
	}
	if s.disabled {
		p.disabled = true
	} else {
		p.enabled = append(p.enabled, entry.Name)
	}
	catalog.ReportProblems(r, entry, nil)
	p.file.Servers = append(p.file.Servers, entry)
}

func remote(s server) catalog.Remote {
	made := catalog.Remote{URL: s.url, Transport: catalog.StreamableHTTP, Headers: make(map[string]string)}
	path, _, _ := strings.Cut(s.url, "?")
	if s.kind == "sse" || s.kind == "" && strings.HasSuffix(strings.TrimRight(path, "/"), "/sse") {
		made.Transport = catalog.SSE
	}
	for _, header := range s.headers {
		made.Headers[header.Name] = header.Value
	}
	return made
}

// variables reads a mapping of texts; an empty value is one that is not set.
func variables(r *document.Reader, to *[]catalog.Variable) document.Read {
	return r.Optional(func(field string, n *yaml.Node) {
		r.Each(field, n, func(key, value *yaml.Node) {
			v := catalog.Variable{Name: key.Value}
			r.Optional(r.Text(&v.Value))(document.Join(field, key.Value), value)
			*to = append(*to, v)
		})
	})
}

var notName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Named returns an entry whose name is that of a client's entry, or as near to
// it as a catalog's names are; then the title has it whole.
func Named(name string) catalog.Server {
	made := strings.Trim(notName.ReplaceAllString(name, "-"), "-._")
	if len(made) > 64 {
		made = strings.TrimRight(made[:64], "-._")
	}
	if made == "mcp" || made == "" {
		made = "mcp-server"
	}
	if made == name {
		return catalog.Server{Name: name}
	}
	return catalog.Server{Name: made, Title: name}
}
