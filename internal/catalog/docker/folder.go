package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// ParseSource reads one server.yaml, from which catalogs are compiled.
func ParseSource(origin catalog.Origin, data []byte) (catalog.File, error) {
	return catalog.ParseWith(origin, data, ReadSource)
}

// ReadSource reads a server.yaml that has been opened already; what is wrong
// with it is in the reader then.
func ReadSource(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
	file := catalog.File{Origin: origin}
	p := parser{Reader: r, file: &file}
	p.source(root)
	return file
}

// source reads the entry of a server.yaml.
func (p *parser) source(n *yaml.Node) {
	r := p.Inner(n.Line)
	defer p.Adopt("", r)
	f := fields{r}
	var e entry
	var own config // the settings, of which the file has no more than parts
	var runEnv []catalog.Variable
	run := map[string]document.Read{
		"command": f.texts(&e.command), "volumes": f.texts(&e.volumes), "env": f.variableMap(&runEnv), "user": f.text(&e.user),
		"allowHosts": f.texts(&e.allowHosts), "extraHosts": f.texts(&e.extraHosts),
		"disableNetwork": r.Optional(r.Boolean(&e.disableNetwork)), "longLived": r.Optional(r.Boolean(&e.longLived)),
	}
	r.Loose(map[string]document.Read{
		"name": f.text(&e.name), "image": f.text(&e.image), "type": f.text(&e.kind),
		"about": f.Optional(f.Loose(map[string]document.Read{"title": f.text(&e.title), "description": f.text(&e.description)})),
		"meta":  f.metadata(&e.category, &e.tags),
		"run":   f.Optional(f.Loose(run)),
		"config": f.Optional(f.Loose(map[string]document.Read{
			"secrets": f.secrets(&e.secrets), "env": f.variables(&e.env), "parameters": f.Optional(f.Object(&own.schema)),
		})),
		"oauth": f.oauth(&e.oauth), "prefix": f.text(&e.prefix), "remote": f.remote(&e.remote), "tools": f.tools(&e.tools),
	})("", n)
	e.env = append(e.env, runEnv...)
	if own.schema != nil {
		own.name = e.name
		e.configs = append(e.configs, own)
	}
	if e.image == "" && e.remote == nil && (e.kind == "" || e.kind == "server") {
		e.image = "mcp/" + e.name // as the compiler of these catalogs does
	}
	if e.name == "" {
		r.Report(n, "name", "is missing")
		return
	}
	p.add(r, e, n.Line, sourceField)
}

// sourceField names the field of a server.yaml that became a field of an
// entry.
func sourceField(field string) string {
	field = compiledField(field)
	for _, run := range []string{"command", "volumes", "user", "allowHosts", "extraHosts"} {
		if strings.HasPrefix(field, run) {
			return "run." + field
		}
	}
	for _, renamed := range [][2]string{
		{"secrets", "config.secrets"},
		{"env", "config.env"},
		{"config.properties", "config.parameters.properties"},
		{"metadata.tags", "meta.tags"},
		{"title", "about.title"},
		{"description", "about.description"},
	} {
		if rest, ok := strings.CutPrefix(field, renamed[0]); ok {
			return renamed[1] + rest
		}
	}
	return field
}

// Sources returns the server.yaml files of a folder: NAME/server.yaml in it or
// in its folder servers. It returns none if it is no such folder.
func Sources(folder string) []string {
	for _, pattern := range []string{"server.yaml", "*/server.yaml", "servers/*/server.yaml"} {
		if found, err := filepath.Glob(filepath.Join(quoteGlob(folder), pattern)); err == nil && len(found) > 0 {
			slices.Sort(found)
			return found
		}
	}
	return nil
}

func quoteGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // there a backslash does not quote
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// LoadSources reads a folder of server.yaml files as one catalog. The error
// has the problems of all of them.
func LoadSources(kind catalog.OriginKind, folder string) (catalog.File, error) {
	all := catalog.File{Origin: catalog.Origin{Catalog: folder, Kind: kind}}
	var failures []error
	var problems catalog.Problems
	for _, path := range Sources(folder) {
		data, err := os.ReadFile(path) //nolint:gosec // the user names the folder
		if err != nil {
			failures = append(failures, fmt.Errorf("catalog: %w", err))
			continue
		}
		file, err := ParseSource(catalog.Origin{Catalog: path, Kind: kind}, data)
		var found catalog.Problems
		switch {
		case errors.As(err, &found):
			problems = append(problems, found...)
		case err != nil:
			failures = append(failures, err)
		}
		all.Servers = append(all.Servers, file.Servers...)
	}
	if len(problems) > 0 {
		failures = append(failures, problems)
	}
	if err := errors.Join(failures...); err != nil {
		if len(failures) == 1 {
			err = failures[0]
		}
		return catalog.File{}, err
	}
	return all, nil
}
