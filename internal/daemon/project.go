package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/meta"
)

// A project is what a file in a working directory says. Whoever wrote it is
// not the user, so it can narrow and cannot widen:
//
//   - quotas are lowered; one that is higher than the user's has no effect;
//   - expose takes groups away; one that the user does not list stays away;
//   - discovery.enabled, discovery.cache.enabled and anticipate switch off
//     only: true has no effect;
//   - discovery.cache.ttl is shortened;
//   - discovery.toolRules take tools away;
//   - discovery.servers adds servers to choose from, and discovery.sources
//     those of files within the folder; each waits for its approval like any
//     other, and the user's entry of the same name wins;
//   - nothing else can be in it.
type project struct {
	Quotas     Quotas       `yaml:"quotas"`
	Expose     []meta.Group `yaml:"expose"`
	Anticipate *bool        `yaml:"anticipate"`
	Discovery  Discovery    `yaml:"discovery"`
	// Others are what it cannot say.
	Others map[string]yaml.Node `yaml:",inline"`

	path    string
	written []Setting
}

// projectFiles are where a project narrows, in its folder.
func projectFiles() []string {
	return []string{
		filepath.Join(".dockgate", "config.yaml"), "dockgate.yaml",
		filepath.Join(".dockgate", "mcp-limits.yaml"), filepath.Join(".go-ent", "mcp-limits.yaml"),
	}
}

// ProjectFiles are the files of a project in the working directory, whether
// they are there or not.
func (o Options) ProjectFiles() []string {
	var files []string
	for _, name := range projectFiles() {
		files = append(files, filepath.Join(o.Dir, name))
	}
	return files
}

// maxProjectFile is how long such a file may be, in bytes.
const maxProjectFile = 64 << 10

// projects reads the project's files that are there. What the user named as
// the configuration is no project's. The error joins all mistakes.
func (o Options) projects() ([]project, error) {
	var all []project
	var mistakes []error
	if o.Several { // a project speaks for its own folder only
		return nil, nil
	}
	for _, path := range o.ProjectFiles() {
		found, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) || o.isConfig(found) {
			continue
		}
		if err == nil && (!found.Mode().IsRegular() || found.Size() > maxProjectFile) {
			err = &ConfigError{Place: path, Problem: "is not a file of at most 64kB"}
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(path) //nolint:gosec // its name is fixed, and it can only narrow
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("read project file: %w", err))
			continue
		}
		p, err := parseProject(path, data, o)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		all = append(all, p)
	}
	return all, errors.Join(mistakes...)
}

// isConfig reports that a file is the user's configuration.
func (o Options) isConfig(found os.FileInfo) bool {
	if o.Config.File == "" || found == nil {
		return false
	}
	config, err := os.Stat(o.Config.File)
	return err == nil && os.SameFile(found, config)
}

func parseProject(path string, data []byte, o Options) (project, error) {
	p := project{path: path}
	root, err := decode(path, data, &p)
	mistakes := []error{err}
	p.written = written(path, root)
	p.Quotas = p.Quotas.from(path)
	mistakes = append(mistakes, p.others()...)
	for _, group := range p.Expose {
		if !slices.Contains(knownGroups(), group) {
			problem := fmt.Sprintf("expose: unknown group %q; known: %s", group, join(knownGroups()))
			mistakes = append(mistakes, &ConfigError{Place: placeOf(p.written, "expose", path), Problem: problem})
		}
	}
	mistakes = append(mistakes, p.Discovery.compile(path))
	for i, s := range p.Discovery.Sources {
		inside, err := o.within(s)
		p.Discovery.Sources[i] = inside
		mistakes = append(mistakes, err)
	}
	return p, errors.Join(mistakes...)
}

// others refuses what a project cannot say.
func (p *project) others() []error {
	known := map[string]bool{}
	for field := range reflect.TypeFor[Config]().Fields() {
		known[field.Tag.Get("yaml")] = true
	}
	var mistakes []error
	for key := range p.Others {
		problem := key + ": unknown field; known fields are in: dockgate config schema"
		if known[key] {
			problem = key + ": is the user's to say; a project can only narrow, by quotas, expose, anticipate and discovery"
		}
		mistakes = append(mistakes, &ConfigError{Place: placeOf(p.written, key, p.path), Problem: problem})
	}
	slices.SortFunc(mistakes, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return mistakes
}

// within returns a project's source with its place in the project's folder.
// What lies outside is refused: the files there are not the project's to name.
func (o Options) within(s Source) (Source, error) {
	if s.Written == "" {
		for _, place := range source.Places(source.Type(s.Type), o.Around(nil)) {
			if path := filepath.FromSlash(place); o.kindOf(path) == catalog.Project {
				s.Path = path
				return s, nil
			}
		}
		return s, &ConfigError{Place: s.Place, Problem: fmt.Sprintf("discovery.sources: %s has no place in a project; name a path in it", s.Type)}
	}
	s = s.at(o.Dir, o.Home)
	real, err := filepath.EvalSymlinks(s.Path)
	if err != nil { // what is not there leads nowhere
		real = s.Path
	}
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		dir = o.Dir
	}
	if inside(o.Dir, s.Path) && (inside(dir, real) || real == s.Path) {
		return s, nil
	}
	return s, &ConfigError{Place: s.Place, Problem: fmt.Sprintf("discovery.sources: %s is not in the project's folder", s.Written)}
}

func inside(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}
