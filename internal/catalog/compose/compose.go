// Package compose reads the MCP servers of Compose files: services that carry
// the extension x-mcp or the label dockgate.mcp.
//
// Compose's own library loads the file, with interpolation, profiles, includes
// and extends. The services that a server depends on become its helpers. What
// would weaken the sandbox (privileged, capabilities, devices, namespaces of
// the host, the engine's socket) is kept out and said in the entry's remarks,
// and no port is published. A secret that Compose would put into a command becomes
// a setting; what stands in plain sight in the file stays. An image that Compose builds is taken as Compose
// names it; it is not built here.
package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

const (
	extension = "x-mcp"
	label     = "dockgate.mcp"
)

// Matches reports whether a document is a Compose file.
func Matches(root *yaml.Node) bool {
	services := document.Member(root, "services")
	return services != nil && services.Kind == yaml.MappingNode
}

// Find returns the Compose files of a folder, in the order in which Compose
// takes them; none if there are none.
func Find(folder string) []string {
	for _, names := range [][2]string{
		{"compose.yaml", "compose.override.yaml"},
		{"compose.yml", "compose.override.yml"},
		{"docker-compose.yml", "docker-compose.override.yml"},
		{"docker-compose.yaml", "docker-compose.override.yaml"},
	} {
		file := filepath.Join(folder, names[0])
		if _, err := os.Stat(file); err != nil {
			continue
		}
		files := []string{file}
		if override := filepath.Join(folder, names[1]); exists(override) {
			files = append(files, override)
		}
		return files
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Parse reads a Compose file. The error is [catalog.Problems], and then nothing
// of the file is returned.
func Parse(ctx context.Context, origin catalog.Origin, data []byte, around catalog.Surroundings) (catalog.File, error) {
	return catalog.ParseWith(origin, data, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(ctx, r, root, origin, data, around)
	})
}

// Read reads a Compose file that has been opened already; what is wrong with
// it is in the reader then. Of what Compose's library finds wrong it says the
// first thing only.
func Read(ctx context.Context, r *document.Reader, root *yaml.Node, origin catalog.Origin, data []byte, around catalog.Surroundings) catalog.File {
	p := parser{Reader: r, root: root, around: around, file: catalog.File{Origin: origin}}
	path, err := filepath.Abs(origin.Catalog)
	if err == nil {
		p.environment, err = readEnvironment(filepath.Dir(path), around)
	}
	if err == nil {
		p.project, err = p.environment.load(ctx, path, data)
	}
	if err != nil {
		p.Problems = append(p.Problems, problem(origin.Catalog, err))
		return p.file
	}
	project := p.project
	for _, name := range project.ServiceNames() {
		if service := project.Services[name]; marked(service) {
			p.server(service)
		}
	}
	if len(p.file.Servers) == 0 && len(r.Problems) == 0 {
		r.Report(cmp.Or(document.Member(root, "services"), root), "services", "hold no MCP server: none has %s or the label %s", extension, label)
	}
	return p.file
}

// An environment is what Compose would know: the user's, and the .env file
// beside the Compose file.
type environment struct {
	around catalog.Surroundings
	file   map[string]string
}

func readEnvironment(dir string, around catalog.Surroundings) (environment, error) {
	e := environment{around: around, file: make(map[string]string)}
	file := filepath.Join(dir, ".env")
	if !exists(file) {
		return e, nil
	}
	var err error
	e.file, err = dotenv.GetEnvFromFile(nil, []string{file})
	return e, err
}

func (e environment) lookUp(name string) (string, bool) {
	if e.around.Env != nil {
		if value, ok := e.around.Env(name); ok {
			return value, true
		}
	}
	value, ok := e.file[name]
	return value, ok
}

// load has Compose's library load a file with the environment.
func (e environment) load(ctx context.Context, path string, data []byte) (*types.Project, error) {
	dir := filepath.Dir(path)
	files := []types.ConfigFile{{Filename: path, Content: data}}
	if found := Find(dir); len(found) == 2 && found[0] == path {
		files = append(files, types.ConfigFile{Filename: found[1]})
	}
	profiles, _ := e.lookUp("COMPOSE_PROFILES")
	name, named := e.lookUp("COMPOSE_PROJECT_NAME")
	return loader.LoadWithContext(ctx, types.ConfigDetails{WorkingDir: dir, ConfigFiles: files, Environment: e.file}, func(o *loader.Options) {
		o.Interpolate.LookupValue = e.lookUp
		o.Profiles = strings.FieldsFunc(profiles, func(c rune) bool { return c == ',' })
		o.SetProjectName(cmp.Or(loader.NormalizeProjectName(cmp.Or(name, filepath.Base(dir))), "compose"), named)
		o.ResolvePaths = true
	})
}

var yamlLine = regexp.MustCompile(`(?:^|[^0-9])line (\d+)`)

// problem turns an error of Compose's library, which has its place in the text
// only, into a problem.
func problem(file string, err error) catalog.Problem {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	found := catalog.Problem{File: file, Text: "is refused by Compose: " + text}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		found.Line, _ = strconv.Atoi(m[1]) // digits only; one that is too long is no line
	}
	return found
}

// marked reports whether a service is an MCP server.
func marked(s types.ServiceConfig) bool {
	if _, ok := s.Extensions[extension]; ok {
		return true
	}
	value, ok := s.Labels[label]
	return ok && value != "false"
}

// A parser reads one file.
type parser struct {
	*document.Reader
	root        *yaml.Node
	project     *types.Project
	around      catalog.Surroundings
	environment environment
	file        catalog.File
}

func (p *parser) server(s types.ServiceConfig) {
	node := document.Member(p.root, "services")
	line := 0 // of a service that stands in another file
	own := document.Member(node, s.Name)
	if own != nil {
		line = keyLine(node, s.Name)
	}
	r := p.Inner(line)
	entry := catalog.Server{Name: s.Name, Origin: p.file.Origin, Isolation: catalog.Shared}
	entry.Origin.Line = line
	about := p.about(r, s, own)
	about.describe(&entry)
	c := converter{parser: p, reader: r, service: s, entry: &entry, templates: about.config != nil}
	c.convert(about)
	catalog.ReportProblems(r, entry, field)
	p.Adopt(document.Join("services", s.Name), r)
	p.file.Servers = append(p.file.Servers, entry)
}

// keyLine is the line of a key of a mapping.
func keyLine(n *yaml.Node, name string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i].Line
		}
	}
	return n.Line
}

// field names the field of a service that became a field of an entry.
func field(field string) string {
	for _, renamed := range [][2]string{
		{"env.", "environment."},
		{"mounts[", "volumes["},
		{"http", extension + ".port"},
		{"network.allow", extension + ".allow_hosts"},
		{"timeouts", extension + ".timeouts"},
		{"config", extension + ".config"},
		{"keywords", extension + ".keywords"},
		{"tags", extension + ".tags"},
		{"isolation", extension + ".isolation"},
		{"limits.memory", "mem_limit"},
	} {
		if rest, ok := strings.CutPrefix(field, renamed[0]); ok {
			return renamed[1] + rest
		}
	}
	return field
}

// about is what x-mcp says, for which Compose has no word.
type about struct {
	title, description, transport, path, isolation string

	keywords, tags, allowHosts []string
	port                       int64
	timeouts                   catalog.Timeouts
	autoStart                  bool
	config                     []byte
	tools                      []catalog.ToolSnapshot
}

// about reads x-mcp: from the file, so that mistakes have their lines, or from
// what Compose made of it where it stands in another file.
func (p *parser) about(r *document.Reader, s types.ServiceConfig, node *yaml.Node) about {
	var a about
	n := document.Member(node, extension)
	if n == nil {
		value, ok := s.Extensions[extension]
		if !ok || value == nil {
			return a
		}
		var decoded yaml.Node
		encoded, err := yaml.Marshal(value)
		if err == nil {
			err = yaml.Unmarshal(encoded, &decoded)
		}
		if err != nil || len(decoded.Content) == 0 {
			return a
		}
		n = decoded.Content[0]
	}
	if document.IsNull(n) {
		return a
	}
	if n.Kind == yaml.ScalarNode && n.Value == "true" {
		return a
	}
	a.config = nil
	raw := catalog.Server{}
	r.Mapping(map[string]document.Read{
		"title": r.Text(&a.title), "description": r.Text(&a.description), "keywords": r.Texts(&a.keywords), "tags": r.Texts(&a.tags),
		"transport": r.Text(&a.transport), "port": r.Integer(&a.port), "path": r.Text(&a.path), "allow_hosts": r.Texts(&a.allowHosts),
		"timeouts": catalog.ReadTimeouts(r, &a.timeouts), "isolation": r.Text(&a.isolation), "auto_start": r.Boolean(&a.autoStart),
		"config": r.Object(&raw.Config), "tools": catalog.ReadTools(r, &a.tools),
	})(extension, n)
	a.config = raw.Config
	return a
}

// describe takes into the entry what only describes it.
func (a about) describe(s *catalog.Server) {
	s.Title, s.Description, s.Keywords, s.Tags = a.title, a.description, a.keywords, a.tags
	s.Timeouts, s.AutoStart, s.Config, s.Tools = a.timeouts, a.autoStart, a.config, a.tools
	if a.isolation != "" {
		s.Isolation = catalog.Isolation(a.isolation)
	}
}

// errNoFile says that a folder has no Compose file.
var errNoFile = errors.New("has no Compose file")

// LoadFolder reads the Compose file of a folder.
func LoadFolder(ctx context.Context, kind catalog.OriginKind, folder string, around catalog.Surroundings) (catalog.File, error) {
	files := Find(folder)
	if len(files) == 0 {
		return catalog.File{}, fmt.Errorf("catalog %s: %w", folder, errNoFile)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return catalog.File{}, fmt.Errorf("catalog: %w", err)
	}
	return Parse(ctx, catalog.Origin{Catalog: files[0], Kind: kind}, data, around)
}

// sorted returns the names of a mapping in their order.
func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
