package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/registry"
	"github.com/dockgate/dockgate/internal/catalog/source"
)

// LoadCatalog reads the built-in catalog, the user's own and those of the
// configuration, of which later ones win. A file may be in any format that
// can be read.
func LoadCatalog(ctx context.Context, o Options) (*catalog.Catalog, []catalog.Note, error) {
	files, err := LoadFiles(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	merged, notes := catalog.Merge(files...)
	return merged, notes, nil
}

// LoadFiles reads what [LoadCatalog] merges.
func LoadFiles(ctx context.Context, o Options) ([]catalog.File, error) {
	own, err := catalog.Parse(catalog.Origin{Catalog: "built-in", Kind: catalog.BuiltIn}, builtin.Servers())
	if err != nil {
		return nil, err
	}
	files := []catalog.File{own}
	var problems []error
	for _, place := range o.catalogs() {
		file, err := source.Load(ctx, place.kind, place.path, o.Around(files))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		files = append(files, file)
	}
	return files, errors.Join(problems...)
}

// A place is a catalog on top of the built-in one.
type place struct {
	kind catalog.OriginKind
	path string
}

// catalogs are what is read on top of the built-in catalog: the local
// registries that are there, of which the project's is trusted least, then the
// user's own catalog and those of the configuration.
func (o Options) catalogs() []place {
	var places []place
	for _, folder := range registry.Places(o.Around(nil)) {
		if !registry.IsFolder(filepath.FromSlash(folder)) {
			continue
		}
		found := place{catalog.User, filepath.FromSlash(folder)}
		if o.Dir != "" && o.Dir != o.Home && strings.HasPrefix(found.path, o.Dir+string(filepath.Separator)) {
			found.kind = catalog.Project
		}
		places = append(places, found)
	}
	if o.OwnCatalog != "" {
		if _, err := os.Stat(o.OwnCatalog); !errors.Is(err, os.ErrNotExist) {
			places = append(places, place{catalog.User, o.OwnCatalog})
		}
	}
	for _, path := range o.Config.Catalogs {
		places = append(places, place{catalog.User, path})
	}
	return places
}

// Around returns what the entries of some formats refer to: this machine, and
// the entries of the files that were read before.
func (o Options) Around(files []catalog.File) catalog.Surroundings {
	return catalog.Surroundings{
		OS: runtime.GOOS, Home: o.Home, Dir: o.Dir, Env: o.Env, Stat: os.Stat,
		Known: func(name string) (catalog.Server, bool) {
			merged, _ := catalog.Merge(files...)
			entry, err := merged.Server(name)
			return entry, err == nil
		},
	}
}
