package daemon

import (
	"context"
	"errors"
	"os"
	"runtime"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
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
	for _, path := range o.catalogs() {
		file, err := source.Load(ctx, catalog.User, path, o.Around(files))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		files = append(files, file)
	}
	return files, errors.Join(problems...)
}

// catalogs are the files on top of the built-in catalog.
func (o Options) catalogs() []string {
	if o.OwnCatalog == "" {
		return o.Config.Catalogs
	}
	if _, err := os.Stat(o.OwnCatalog); errors.Is(err, os.ErrNotExist) {
		return o.Config.Catalogs
	}
	return append([]string{o.OwnCatalog}, o.Config.Catalogs...)
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
