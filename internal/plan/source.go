package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// The prefixes of references that no registry has, see [Planner.Source].
const (
	packagePrefix   = "package:"
	containerPrefix = "container:"
)

// A Package is a program of an ecosystem, and the image that it is installed in.
type Package struct {
	Program catalog.Program `json:"program"`
	Runtime string          `json:"runtime"`
}

// String names both for a person.
func (p Package) String() string { return fmt.Sprintf("%s in %s", p.Program, p.Runtime) }

// ref returns the package as one text, from which ParsePackage makes it again.
func (p Package) ref() string {
	encoded, err := json.Marshal(p)
	if err != nil {
		panic("plan: plain data that does not encode: " + err.Error())
	}
	return packagePrefix + string(encoded)
}

// ParsePackage reads a reference of a package; ok is false if it is another's.
func ParsePackage(ref string) (p Package, ok bool) {
	encoded, ok := strings.CutPrefix(ref, packagePrefix)
	ok = ok && json.Unmarshal([]byte(encoded), &p) == nil
	return p, ok
}

// ParseContainer returns the container in a reference of one that the user
// runs; ok is false if it is another's.
func ParseContainer(ref string) (name string, ok bool) {
	return strings.CutPrefix(ref, containerPrefix)
}

// Sources returns what the images of an entry are found by, each once: a
// reference as of "docker pull" or, for what no registry has, one that
// [ParsePackage] or [ParseContainer] reads. A remote server has none.
func (p *Planner) Sources(entry catalog.Server) []string {
	switch entry.Runs() {
	case catalog.KindRemote:
		return nil
	case catalog.KindTools:
		var sources []string
		for _, t := range entry.Tools {
			if t.Run != nil && t.Run.Refusal() == "" && !slices.Contains(sources, t.Run.Image) {
				sources = append(sources, t.Run.Image)
			}
		}
		return sources
	case catalog.KindExec:
		return []string{containerPrefix + entry.Exec.Container}
	case catalog.KindProgram:
		runtime := p.runtime(entry.Program.Runtime)
		if entry.Program.File != "" {
			return beside(entry, runtime)
		}
		return beside(entry, Package{Program: *entry.Program, Runtime: runtime}.ref())
	case catalog.KindContainer, catalog.KindUnsupported:
	}
	return beside(entry, entry.Image)
}

// beside returns the source of a server's image and those of its helpers.
func beside(entry catalog.Server, source string) []string {
	sources := []string{source}
	for _, h := range entry.Helpers {
		if !slices.Contains(sources, h.Image) {
			sources = append(sources, h.Image)
		}
	}
	return sources
}

// The images of runtimes for which no catalog names another: the smallest of
// each project's own that have its installer.
const (
	nodeImage   = "node:22-slim"
	pythonImage = "python:3.13-slim"
)

func (p *Planner) runtime(name string) string {
	if found, ok := p.Catalog().Runtime(name); ok && found.Image != "" {
		return found.Image
	}
	if name == catalog.UVX {
		return pythonImage
	}
	return nodeImage
}

// described is a reference for a person.
func described(ref string) string {
	if p, ok := ParsePackage(ref); ok {
		return p.String()
	}
	return ref
}
