package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dockgate/dockgate/internal/fleet"
)

// A project is what the files in a working directory say. It can lower quotas
// and take tools away, and nothing else.
type project struct {
	Quotas    Quotas    `yaml:"quotas"`
	Discovery Discovery `yaml:"discovery"`
}

// projectFiles are where a project narrows, in its folder.
func projectFiles() []string {
	return []string{
		filepath.Join(".dockgate", "config.yaml"), "dockgate.yaml",
		filepath.Join(".dockgate", "mcp-limits.yaml"), filepath.Join(".go-ent", "mcp-limits.yaml"),
	}
}

// maxProjectFile is how long such a file may be, in bytes.
const maxProjectFile = 64 << 10

// loadProject reads a project's file; ok is false if there is none.
func loadProject(path string) (content project, ok bool, err error) {
	found, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return project{}, false, nil
	}
	if err != nil {
		return project{}, false, fmt.Errorf("read project file: %w", err)
	}
	if !found.Mode().IsRegular() || found.Size() > maxProjectFile {
		return project{}, false, &ConfigError{Place: path, Problem: "is not a file of at most 64kB"}
	}
	data, err := os.ReadFile(path) //nolint:gosec // its name is fixed, and it can only narrow
	if err != nil {
		return project{}, false, fmt.Errorf("read project file: %w", err)
	}
	if err := decode(path, data, &content); err != nil {
		return project{}, false, err
	}
	content.Quotas = content.Quotas.from(path)
	return content, true, content.Discovery.compile(path)
}

// narrow works out what holds: what the user says or the defaults, narrowed by
// the project's files.
func (d *Daemon) narrow() error {
	general := share{quotas: d.Config.Quotas, rules: d.Config.Discovery.Rules}
	if general.quotas.MaxRunning.Max == 0 {
		general.quotas.MaxRunning = fleet.Bound{Max: DefaultMaxRunning}
	}
	if general.quotas.MaxRemote.Max == 0 {
		general.quotas.MaxRemote = fleet.Bound{Max: DefaultMaxRemote}
	}
	d.Quotas, d.Rules = general.quotas, general.rules
	d.shares = sharesOf(d.Config.Admission, general)
	if d.Several {
		return nil
	}
	for _, name := range projectFiles() {
		path := filepath.Join(d.Dir, name)
		project, ok, err := loadProject(path)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		var ignored []string
		d.Quotas, ignored = d.Quotas.loweredBy(project.Quotas)
		d.Rules = d.Rules.Narrowed(project.Discovery.Rules)
		for name, share := range d.shares {
			d.shares[name] = share.narrowed(project)
		}
		d.Logger.Info("narrowed by the project", "file", path)
		for _, name := range ignored {
			d.Logger.Info("quota of the project has no effect", "file", path, "quota", name)
		}
	}
	return nil
}
