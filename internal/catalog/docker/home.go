package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// The files that Docker's toolkit keeps for a user, usually in ~/.docker/mcp.
const (
	configFile   = "config.yaml"
	registryFile = "registry.yaml"
	toolsFile    = "tools.yaml"
	catalogsDir  = "catalogs"
)

// IsHome reports whether a folder is one that Docker's toolkit keeps for a
// user.
func IsHome(folder string) bool {
	for _, name := range []string{registryFile, catalogsDir} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// LoadHome reads the folder that Docker's toolkit keeps for a user: the
// catalogs in it, of which a later one wins by its file's name, the servers
// that are enabled, the user's settings of them, and the tools that the user
// wants to see. A file that is missing says nothing.
func LoadHome(kind catalog.OriginKind, folder string) (catalog.File, error) {
	all := catalog.File{Origin: catalog.Origin{Catalog: folder, Kind: kind}}
	h := home{kind: kind, folder: folder}
	servers := make(map[string]catalog.Server)
	for _, path := range h.catalogs() {
		data, err := os.ReadFile(path) //nolint:gosec // the user names the folder
		if err != nil {
			return catalog.File{}, fmt.Errorf("catalog: %w", err)
		}
		file, err := Parse(catalog.Origin{Catalog: path, Kind: kind}, data)
		h.take(err)
		for _, s := range file.Servers {
			servers[s.Name] = s
		}
	}
	enabled, listed := h.enabled()
	settings := h.settings()
	tools := h.tools()
	if len(h.failures) > 0 {
		return catalog.File{}, errors.Join(h.failures...)
	}
	if len(h.problems) > 0 {
		return catalog.File{}, h.problems
	}
	if listed {
		all.Enabled = append([]string{}, enabled...) // none is not the same as nothing said
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		if list, ok := tools[name]; ok {
			s.EnabledTools, s.EnabledAt = list.names, list.at
		}
		all.Servers = append(all.Servers, s)
		if own := settings[name]; len(own) > 0 {
			if all.Settings == nil {
				all.Settings = make(map[string]map[string]any)
			}
			all.Settings[name] = own
		}
	}
	return all, nil
}

// A home gathers what is wrong with the files of a folder.
type home struct {
	kind     catalog.OriginKind
	folder   string
	problems catalog.Problems
	failures []error
}

func (h *home) take(err error) {
	var problems catalog.Problems
	switch {
	case errors.As(err, &problems):
		h.problems = append(h.problems, problems...)
	case err != nil:
		h.failures = append(h.failures, err)
	}
}

func (h *home) catalogs() []string {
	var paths []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(quoteGlob(h.folder), catalogsDir, pattern))
		if err == nil {
			paths = append(paths, found...)
		}
	}
	slices.Sort(paths)
	return paths
}

// open returns the root of a file; nil if there is none, or nothing in it.
func (h *home) open(name string) (*document.Reader, *yaml.Node) {
	path := filepath.Join(h.folder, name)
	data, err := os.ReadFile(path) //nolint:gosec // the user names the folder
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return nil, nil
	}
	if err != nil {
		h.failures = append(h.failures, fmt.Errorf("catalog: %w", err))
		return nil, nil
	}
	r := document.New(path)
	root := r.Open(data, "")
	if root == nil || document.IsNull(root) {
		h.take(r.Err())
		return nil, nil
	}
	return r, root
}

// enabled returns the servers that registry.yaml lists, in its order, and
// whether there is such a file.
func (h *home) enabled() (names []string, listed bool) {
	r, root := h.open(registryFile)
	if root == nil {
		return nil, false
	}
	r.Loose(map[string]document.Read{"registry": r.Optional(func(field string, n *yaml.Node) {
		r.Each(field, n, func(key, _ *yaml.Node) { names = append(names, key.Value) })
	})})("", root)
	h.take(r.Err())
	return names, true
}

// settings returns what config.yaml says of each server.
func (h *home) settings() map[string]map[string]any {
	r, root := h.open(configFile)
	if root == nil {
		return nil
	}
	all := make(map[string]map[string]any)
	r.Each("", root, func(key, value *yaml.Node) {
		var raw json.RawMessage
		r.Optional(r.Object(&raw))(key.Value, value)
		var settings map[string]any
		if raw != nil && json.Unmarshal(raw, &settings) == nil {
			all[key.Value] = settings
		}
	})
	h.take(r.Err())
	return all
}

// A toolList is the tools that tools.yaml lists for a server, and where.
type toolList struct {
	names []string
	at    string
}

// tools returns the tools that tools.yaml lists for each server. One with
// nothing behind its name lists none.
func (h *home) tools() map[string]toolList {
	r, root := h.open(toolsFile)
	if root == nil {
		return nil
	}
	all := make(map[string]toolList)
	r.Each("", root, func(key, value *yaml.Node) {
		origin := catalog.Origin{Catalog: filepath.Join(h.folder, toolsFile), Line: key.Line}
		list := toolList{names: []string{}, at: origin.String()}
		r.Optional(r.Texts(&list.names))(key.Value, value)
		all[key.Value] = list
	})
	h.take(r.Err())
	return all
}
