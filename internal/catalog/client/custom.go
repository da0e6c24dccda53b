package client

import (
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// MatchesCustom reports whether a document is a custom list of servers, each
// with a connection.
func MatchesCustom(root *yaml.Node) bool {
	holder := root
	if discovery := document.Member(root, "discovery"); discovery != nil {
		holder = discovery
	}
	servers := document.Member(holder, "servers")
	if servers == nil {
		return holder != root
	}
	for _, entry := range servers.Content {
		if document.Member(document.Target(entry), "connection") != nil {
			return true
		}
	}
	return false
}

// ParseCustom reads a custom list of servers. The error is [catalog.Problems],
// and then nothing of the file is returned.
func ParseCustom(origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return ReadCustom(r, root, origin, around)
	})
}

// ReadCustom reads a custom list of servers that has been opened already: a
// mapping of servers by their names, or the list of a discovery configuration.
// Of the latter only the servers are read here. Unknown fields are mistakes.
func ReadCustom(r *document.Reader, root *yaml.Node, origin catalog.Origin, around catalog.Surroundings) catalog.File {
	p := parser{Reader: r, around: around, file: &catalog.File{Origin: origin}, dir: projectOf(origin.Catalog, around.Home)}
	if discovery := document.Member(root, "discovery"); discovery != nil {
		r.Mapping(map[string]document.Read{"discovery": r.Mapping(map[string]document.Read{
			"enabled": document.Ignore, "cache": document.Ignore, "sources": document.Ignore, "toolRules": document.Ignore, "servers": p.customServers,
		})})("", root)
		return *p.file
	}
	r.Mapping(map[string]document.Read{"servers": p.customServers})("", root)
	return *p.file
}

func (p *parser) customServers(field string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.Entries(func(r *document.Reader, name string, line int, n *yaml.Node) { p.custom(r, name, line, n) })(field, n)
		return
	}
	p.List(func(field string, n *yaml.Node) {
		inner := p.Inner(n.Line)
		name := ""
		if member := document.Member(n, "name"); member != nil {
			name = member.Value
		}
		p.custom(inner, name, n.Line, n)
		p.Adopt(field, inner)
	})(field, n)
}

// custom reads one server. The name is that of the mapping; a list has it in
// the entry itself.
func (p *parser) custom(r *document.Reader, name string, line int, n *yaml.Node) {
	var title, kind, command, url string
	var args []string
	var env []catalog.Variable
	entry := Named(name)
	r.Mapping(map[string]document.Read{
		"name": r.Text(&title), "description": r.Text(&entry.Description),
		"connection": r.Mapping(map[string]document.Read{
			"type": r.Text(&kind), "command": r.Text(&command), "args": r.Texts(&args), "env": variables(r, &env), "url": r.Text(&url),
		}),
		"tools": catalog.ReadTools(r, &entry.Tools),
	})("", n)
	if r.BadAsWhole() {
		return
	}
	if title != "" && title != name {
		entry.Title = title
	}
	entry.Origin = p.file.Origin
	entry.Origin.Line = line
	launched := launch.Command{Program: command, Args: args, Env: env, Dir: p.dir}
	switch {
	case name == "":
		r.ReportAt("name", "is missing")
		return
	case kind != "" && kind != "stdio" && kind != "http" && kind != "sse" && kind != catalog.StreamableHTTP:
		r.ReportAt("connection.type", "is %q, want stdio, http or sse", kind)
		return
	case url != "":
		entry = launch.Remote(entry, remote(server{url: url, kind: kind}), launched, p.around)
	case command != "":
		entry = launch.Entry(entry, launched, p.around)
	default:
		r.ReportAt("connection", "needs a command or a url")
		return
	}
	catalog.ReportProblems(r, entry, nil)
	p.file.Servers = append(p.file.Servers, entry)
}
