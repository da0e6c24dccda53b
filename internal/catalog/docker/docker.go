// Package docker reads the catalogs of Docker's MCP toolkit: the compiled
// form, versions 2 and 3; the folders of server.yaml sources from which it is
// compiled; and what the toolkit keeps for a user in ~/.docker/mcp.
//
// An entry comes out with what it asks for there: full network unless it says
// disableNetwork or allowHosts, the volumes as mounts, the settings below
// "config". Unknown keys are ignored, as that format's own reader does. What
// is only for show (icon, readme) is left out, and a prefix of tools' names,
// which is remarked on: our names carry the server's. It refuses nothing that can be described; what may run is decided when
// the entry is compiled.
package docker

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// Parse reads a compiled catalog. The error is [catalog.Problems], and then
// nothing of the file is returned.
func Parse(origin catalog.Origin, data []byte) (catalog.File, error) {
	return catalog.ParseWith(origin, data, Read)
}

// Read reads a compiled catalog that has been opened already; what is wrong
// with it is in the reader then.
func Read(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
	file := catalog.File{Origin: origin}
	p := parser{Reader: r, file: &file}
	if version := document.Member(root, "version"); version != nil && !slices.Contains([]string{"2", "3"}, version.Value) {
		r.Report(version, "version", "is %s, want 2 or 3", document.Describe(version))
		return file
	}
	r.Loose(map[string]document.Read{"registry": r.Entries(p.compiled)})("", root)
	if document.Member(root, "registry") == nil && root.Kind == yaml.MappingNode {
		r.Report(root, "registry", "is missing")
	}
	return file
}

// A parser reads one file.
type parser struct {
	*document.Reader
	file *catalog.File
}

// compiled reads an entry of a compiled catalog.
func (p *parser) compiled(r *document.Reader, name string, line int, n *yaml.Node) {
	e := entry{name: name}
	f := fields{r}
	r.Loose(map[string]document.Read{
		"title":          f.text(&e.title),
		"description":    f.text(&e.description),
		"type":           f.text(&e.kind),
		"image":          f.text(&e.image),
		"command":        f.texts(&e.command),
		"volumes":        f.texts(&e.volumes),
		"user":           f.text(&e.user),
		"env":            f.variables(&e.env),
		"secrets":        f.secrets(&e.secrets),
		"allowHosts":     f.texts(&e.allowHosts),
		"extraHosts":     f.texts(&e.extraHosts),
		"disableNetwork": r.Optional(r.Boolean(&e.disableNetwork)),
		"longLived":      r.Optional(r.Boolean(&e.longLived)),
		"config":         f.configs(&e.configs),
		"tools":          f.tools(&e.tools),
		"remote":         f.remote(&e.remote),
		"sseEndpoint":    f.text(&e.sseEndpoint),
		"oauth":          f.oauth(&e.oauth),
		"prefix":         f.text(&e.prefix),
		"metadata":       f.metadata(&e.category, &e.tags),
	})("", n)
	p.add(r, e, line, compiledField)
}

// add converts an entry and takes it into the file.
func (p *parser) add(r *document.Reader, e entry, line int, field func(string) string) {
	if r.BadAsWhole() {
		return
	}
	origin := p.file.Origin
	origin.Line = line
	c := converter{entry: e, reader: r, field: field}
	server := c.convert(origin)
	catalog.ReportProblems(r, server, c.place)
	p.file.Servers = append(p.file.Servers, server)
}
