package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/meta"
)

// A Project is what a file in a working directory says. Whoever wrote it is
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
type Project struct {
	Quotas     Quotas       `yaml:"quotas"`
	Expose     []meta.Group `yaml:"expose"`
	Anticipate *bool        `yaml:"anticipate"`
	Discovery  Discovery    `yaml:"discovery"`
	// Others are what it cannot say.
	Others map[string]yaml.Node `yaml:",inline"`

	// File is where it was read, and Written what stands there, with the lines.
	File    string  `yaml:"-"`
	Written Written `yaml:"-"`
}

// ProjectFiles are where a project narrows, in its folder.
func ProjectFiles() []string {
	return []string{
		filepath.Join(".dockgate", "config.yaml"), "dockgate.yaml",
		filepath.Join(".dockgate", "mcp-limits.yaml"), filepath.Join(".go-ent", "mcp-limits.yaml"),
	}
}

// ParseProject reads the content of a project's file. The error joins all
// mistakes that can be told from it alone, as that of [LoadConfig] does.
// Where its sources lead is not looked at.
func ParseProject(path string, data []byte) (Project, error) {
	p := Project{File: path}
	root, err := decode(path, data, &p)
	mistakes := []error{err}
	p.Written = readWritten(path, root)
	p.Quotas = p.Quotas.from(path)
	mistakes = append(mistakes, p.others()...)
	for _, group := range p.Expose {
		if !slices.Contains(knownGroups(), group) {
			problem := fmt.Sprintf("expose: unknown group %q; known: %s", group, join(knownGroups()))
			mistakes = append(mistakes, &ConfigError{Place: p.Written.Place("expose", path), Problem: problem})
		}
	}
	mistakes = append(mistakes, p.Discovery.compile(path))
	return p, errors.Join(mistakes...)
}

// others refuses what a project cannot say.
func (p *Project) others() []error {
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
		mistakes = append(mistakes, &ConfigError{Place: p.Written.Place(key, p.File), Problem: problem})
	}
	slices.SortFunc(mistakes, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return mistakes
}
