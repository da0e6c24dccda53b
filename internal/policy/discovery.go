package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/official"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/rules"
)

// Discovery is the part of a configuration that says which servers and tools
// there are to be found, and which may be called.
type Discovery struct {
	// Enabled lists the tools that find and call others; nil is true.
	Enabled *bool `yaml:"enabled"`
	Cache   Cache `yaml:"cache"`
	// Sources are what is read beside the catalogs, if it is there.
	Sources []Source `yaml:"sources"`
	// Servers are entries as they are written, see [Discovery.File].
	Servers yaml.Node `yaml:"servers"`
	// ToolRules is as it is written, see [rules.Parse].
	ToolRules yaml.Node `yaml:"toolRules"`
	// Rules is what ToolRules says.
	Rules rules.Rules `yaml:"-"`
}

// Off reports that the tools that find and call others are not listed.
func (d Discovery) Off() bool { return d.Enabled != nil && !*d.Enabled }

// DefaultTTL is for how long what others can change is taken as it was.
const DefaultTTL = time.Hour

// A Cache says for how long it is remembered what there is.
type Cache struct {
	// Enabled keeps what servers offered beyond the end of the gateway; nil is
	// true. What was approved is kept in any case.
	Enabled *bool `yaml:"enabled"`
	// TTL is for how long the list of servers, and what remote servers offered,
	// is taken as it was; zero is [DefaultTTL].
	TTL Seconds `yaml:"ttl"`
}

// Off reports that nothing is to be kept.
func (c Cache) Off() bool { return c.Enabled != nil && !*c.Enabled }

// Life is the time that TTL says.
func (c Cache) Life() time.Duration {
	if c.TTL == 0 {
		return DefaultTTL
	}
	return time.Duration(c.TTL)
}

// Seconds are written as a number of seconds, or as "1h".
type Seconds time.Duration

// maxSeconds is a century.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// UnmarshalYAML reads them.
func (s *Seconds) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if number, failed := strconv.ParseInt(node.Value, 10, 64); failed == nil && number <= maxSeconds {
		parsed, err = time.Duration(number)*time.Second, nil
	}
	if node.Kind != yaml.ScalarNode || err != nil || parsed <= 0 {
		return typeError(node, "is %s, want a time above 0, such as 3600 (in seconds) or 1h", document.Describe(node))
	}
	*s = Seconds(parsed)
	return nil
}

// A Source is a place where servers are configured for something else.
type Source struct {
	// Type is one of [source.Types], or what kind of file is at the path.
	Type string
	// Path is absolute; empty is where such a source is found.
	Path string
	// URL is where an [OfficialRegistry] is, and Search the words that its
	// servers' names have; "" is as many of all as it lists in ten answers.
	URL, Search string
	// Written is the path as it is written, and Place where the source is.
	Written, Place string
	line           int
}

// OfficialRegistry is the type of a source that is a registry of the official
// kind. What is found there is a stock to choose from.
const OfficialRegistry = "official-registry"

// fileTypes are the types of sources that have no place of their own.
func fileTypes() []string {
	return []string{"custom", "dockgate", "docker-catalog", "compose", "manifest", "server.json"}
}

func sourceTypes() []string {
	var types []string
	for _, t := range source.Types() {
		types = append(types, string(t))
	}
	return append(append(types, OfficialRegistry), fileTypes()...)
}

// UnmarshalYAML reads a source, {type, path}, or {type, url, search} of a
// registry.
func (s *Source) UnmarshalYAML(node *yaml.Node) error {
	s.line = node.Line
	r := document.New("")
	known := map[string]document.Read{"type": r.Text(&s.Type), "path": r.Text(&s.Written)}
	if kind := document.Member(node, "type"); kind != nil && kind.Value == OfficialRegistry {
		s.URL = official.DefaultBase
		known = map[string]document.Read{"type": r.Text(&s.Type), "url": r.Text(&s.URL), "search": r.Text(&s.Search)}
	}
	r.Mapping(known)("", node)
	switch {
	case len(r.Problems) > 0:
	case s.Type == "":
		r.Report(node, "type", "is missing; known: %s", strings.Join(sourceTypes(), ", "))
	case !slices.Contains(sourceTypes(), s.Type):
		r.Report(node, "type", "is %q; known: %s", s.Type, strings.Join(sourceTypes(), ", "))
	case s.Written == "" && slices.Contains(fileTypes(), s.Type):
		r.Report(node, "path", "is missing; a source of type %s can be anywhere", s.Type)
	case s.URL != "":
		if err := official.CheckURL(s.URL); err != nil {
			r.ReportAt("url", "%v", err)
		}
	}
	if len(r.Problems) == 0 {
		return nil
	}
	texts := make([]string, len(r.Problems))
	for i, problem := range r.Problems {
		texts[i] = within(node, problem.Line, problem.Field, problem.Text)
	}
	return &yaml.TypeError{Errors: texts}
}

// At returns the source with an absolute path: one that is not is in a folder.
func (s Source) At(folder, home string) Source {
	switch rest, isHome := strings.CutPrefix(filepath.ToSlash(s.Written), "~/"); {
	case s.Written == "":
	case isHome:
		s.Path = filepath.Join(home, filepath.FromSlash(rest))
	case filepath.IsAbs(s.Written):
		s.Path = filepath.Clean(s.Written)
	default:
		s.Path = filepath.Join(folder, s.Written)
	}
	return s
}

// compile reads what is in formats of its own; path is the file. The error
// joins [rules.Problems] and [catalog.Problems].
func (d *Discovery) compile(path string) error {
	var err error
	d.Rules, err = rules.Parse(path, "discovery.toolRules", d.ToolRules)
	for i := range d.Sources {
		d.Sources[i].Place = fmt.Sprintf("%s:%d", path, d.Sources[i].line)
	}
	_, wrong := d.File(catalog.Origin{Catalog: path}, catalog.Surroundings{})
	return errors.Join(err, wrong)
}

// File returns the servers that are written in the configuration itself: a
// mapping by name, or a list of entries with a name. Each is in the native
// format, or has a connection. The error is [catalog.Problems].
func (d Discovery) File(origin catalog.Origin, around catalog.Surroundings) (catalog.File, error) {
	file := catalog.File{Origin: origin}
	if d.Servers.Kind == 0 || document.IsNull(&d.Servers) {
		return file, nil
	}
	r := document.New(origin.Catalog)
	native, connected := mapping(d.Servers.Line), mapping(d.Servers.Line)
	add := func(key, entry *yaml.Node) {
		to := native
		if document.Member(document.Target(entry), "connection") != nil {
			to = connected
		}
		to.Content = append(to.Content, key, entry)
	}
	switch servers := document.Target(&d.Servers); servers.Kind {
	case yaml.MappingNode:
		r.Each("discovery.servers", servers, add)
	case yaml.SequenceNode:
		names := map[string]bool{}
		for i, item := range servers.Content {
			key, entry := named(document.Target(item))
			field := fmt.Sprintf("discovery.servers[%d]", i)
			switch {
			case key == nil:
				r.Report(item, field+".name", "is missing")
			case names[key.Value]:
				r.Report(item, field+".name", "%q is here twice", key.Value)
			default:
				names[key.Value] = true
				add(key, entry)
			}
		}
	default:
		r.Report(servers, "discovery.servers", "is %s, want a mapping or a list", document.Describe(servers))
	}
	inner := document.New(origin.Catalog)
	if len(native.Content) > 0 {
		root := mapping(d.Servers.Line)
		root.Content = []*yaml.Node{text("version", root.Line), text("1", root.Line), text("servers", root.Line), native}
		file.Servers = catalog.Read(inner, root, origin).Servers
	}
	if len(connected.Content) > 0 {
		root := mapping(d.Servers.Line)
		root.Content = []*yaml.Node{text("servers", root.Line), connected}
		file.Servers = append(file.Servers, client.ReadCustom(inner, root, origin, around).Servers...)
	}
	r.Adopt("discovery", inner)
	if err := r.Err(); err != nil {
		return catalog.File{}, err
	}
	return file, nil
}

func mapping(line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line}
}

func text(value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line}
}

// named returns an element of a list of servers as a member of a mapping of
// them; key is nil if it has no name.
func named(item *yaml.Node) (key, entry *yaml.Node) {
	entry = mapping(item.Line)
	if item.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(item.Content); i += 2 {
		if value := document.Target(item.Content[i+1]); item.Content[i].Value == "name" && value.Kind == yaml.ScalarNode && value.Value != "" {
			key = text(value.Value, item.Line)
			continue
		}
		entry.Content = append(entry.Content, item.Content[i], item.Content[i+1])
	}
	return key, entry
}
