package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/policy"
)

// ProjectFiles are the files of a project in the working directory, whether
// they are there or not.
func (in Inputs) ProjectFiles() []string {
	var files []string
	for _, name := range policy.ProjectFiles() {
		files = append(files, filepath.Join(in.Dir, name))
	}
	return files
}

// maxProjectFile is how long such a file may be, in bytes.
const maxProjectFile = 64 << 10

// projects reads the project's files that are there. What the user named as
// the configuration is no project's. The error joins all mistakes.
func (in Inputs) projects() ([]policy.Project, error) {
	var all []policy.Project
	var mistakes []error
	if in.Several { // a project speaks for its own folder only
		return nil, nil
	}
	for _, path := range in.ProjectFiles() {
		found, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) || in.isConfig(found) {
			continue
		}
		if err == nil && (!found.Mode().IsRegular() || found.Size() > maxProjectFile) {
			err = &policy.ConfigError{Place: path, Problem: "is not a file of at most 64kB"}
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(path) //nolint:gosec // its name is fixed, and it can only narrow
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("read project file: %w", err))
			continue
		}
		p, err := policy.ParseProject(path, data)
		if err := errors.Join(err, in.confine(&p)); err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		all = append(all, p)
	}
	return all, errors.Join(mistakes...)
}

// isConfig reports that a file is the user's configuration.
func (in Inputs) isConfig(found os.FileInfo) bool {
	if in.Config.File == "" || found == nil {
		return false
	}
	config, err := os.Stat(in.Config.File)
	return err == nil && os.SameFile(found, config)
}

// confine gives a project's sources their places in the project's folder.
func (in Inputs) confine(p *policy.Project) error {
	var mistakes []error
	for i, s := range p.Discovery.Sources {
		inside, err := in.within(s)
		p.Discovery.Sources[i] = inside
		mistakes = append(mistakes, err)
	}
	return errors.Join(mistakes...)
}

// within returns a project's source with its place in the project's folder.
// What lies outside is refused: the files there are not the project's to name.
func (in Inputs) within(s policy.Source) (policy.Source, error) {
	if s.Type == policy.OfficialRegistry {
		return s, &policy.ConfigError{Place: s.Place, Problem: "discovery.sources: a project names no registry: looking there is the user's to say"}
	}
	if s.Written == "" {
		for _, place := range source.Places(source.Type(s.Type), in.Around(nil)) {
			if path := filepath.FromSlash(place); in.kindOf(path) == catalog.Project {
				s.Path = path
				return s, nil
			}
		}
		return s, &policy.ConfigError{Place: s.Place, Problem: fmt.Sprintf("discovery.sources: %s has no place in a project; name a path in it", s.Type)}
	}
	s = s.At(in.Dir, in.Home)
	real, err := filepath.EvalSymlinks(s.Path)
	if err != nil { // what is not there leads nowhere
		real = s.Path
	}
	dir, err := filepath.EvalSymlinks(in.Dir)
	if err != nil {
		dir = in.Dir
	}
	if inside(in.Dir, s.Path) && (inside(dir, real) || real == s.Path) {
		return s, nil
	}
	return s, &policy.ConfigError{Place: s.Place, Problem: fmt.Sprintf("discovery.sources: %s is not in the project's folder", s.Written)}
}

func inside(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}
