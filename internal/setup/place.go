package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	builtin "github.com/dockgate/dockgate/catalog"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/registry"
	"github.com/dockgate/dockgate/internal/catalog/source"
	"github.com/dockgate/dockgate/internal/policy"
)

// LoadCatalog reads the built-in catalog, the user's own and those of the
// configuration, of which later ones win, and of a project what nobody else has
// a name for. A file may be in any format that can be read.
func LoadCatalog(ctx context.Context, in Inputs) (*catalog.Catalog, []catalog.Note, error) {
	files, err := LoadFiles(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	merged, notes := merge(files)
	return merged, notes, nil
}

// merge makes one catalog of files. A project's are at the bottom, wherever
// they were read: servers are added by name, so an entry that could take the
// name of one that the user has added would be active without being chosen.
func merge(files []catalog.File) (*catalog.Catalog, []catalog.Note) {
	ranked := make([]catalog.File, 0, len(files))
	for _, projects := range []bool{true, false} {
		for _, file := range files {
			if projects == (file.Origin.Kind == catalog.Project) {
				ranked = append(ranked, file)
			}
		}
	}
	return catalog.Merge(ranked...)
}

// LoadFiles reads what [LoadCatalog] merges, in the order of [Places].
func LoadFiles(ctx context.Context, in Inputs) ([]catalog.File, error) {
	projects, err := in.projects()
	if err != nil {
		return nil, err
	}
	read, err := in.read(ctx, projects, nil)
	return read.files, err
}

// A Place is where servers are described, and what was found there.
type Place struct {
	// Type is that of a source; else "built-in", "own", "registry", "catalog" or
	// "inline".
	Type string `json:"type"`
	// Path is empty for what is part of the program.
	Path string `json:"path,omitempty"`
	// From is where the configuration names it; empty for what is always read.
	From  string `json:"from,omitempty"`
	Found bool   `json:"found"`
	// Servers is how many there are, with those that others override.
	Servers int `json:"servers"`
	// Problem is why a registry has not answered.
	Problem string `json:"problem,omitempty"`
	// Configured places hold servers that the user has said are to be used; the
	// others are a stock to choose from. A project's are among those: what it
	// says of them is shown to no model before somebody chooses them.
	Configured bool `json:"configured"`

	kind catalog.OriginKind
	// optional places may be missing.
	optional bool
	inline   *policy.Discovery
	registry *policy.Source
}

// File is the file or folder of the place, "" if it is none.
func (p Place) File() string {
	if p.registry != nil {
		return ""
	}
	return p.Path
}

// Places returns where servers are described, in the order in which they are
// read: later ones win, but for a project's, which win over nothing else. The
// error joins all mistakes in them.
func Places(ctx context.Context, in Inputs) ([]Place, error) {
	projects, err := in.projects()
	if err != nil {
		return nil, err
	}
	read, err := in.read(ctx, projects, nil)
	return read.places, err
}

// A reading is what was read of all places.
type reading struct {
	files  []catalog.File
	places []Place
}

// configured returns the names of the servers that are to be used, sorted.
func (r reading) configured() []string {
	var names []string
	for i, place := range r.places {
		if !place.Configured {
			continue
		}
		for _, server := range r.files[i].Servers {
			if enabled := r.files[i].Enabled; enabled == nil || slices.Contains(enabled, server.Name) {
				names = append(names, server.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read reads the places; there is a file for each, which is empty where
// nothing was found.
func (in Inputs) read(ctx context.Context, projects []policy.Project, parsed *Parsed) (reading, error) {
	own, err := parsed.parse(ctx, catalog.Origin{Catalog: "built-in", Kind: catalog.BuiltIn}, builtin.Servers(), catalog.Surroundings{})
	if err != nil {
		return reading{}, err
	}
	r := reading{files: []catalog.File{own}, places: []Place{{Type: "built-in", Found: true, Servers: len(own.Servers)}}}
	var problems []error
	for _, place := range in.places(projects) {
		file, err := in.readPlace(ctx, &place, r.files, parsed)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		place.Servers = len(file.Servers)
		r.places, r.files = append(r.places, place), append(r.files, file)
	}
	return r, errors.Join(problems...)
}

func (in Inputs) readPlace(ctx context.Context, place *Place, before []catalog.File, parsed *Parsed) (catalog.File, error) {
	if place.inline != nil {
		place.Found = true
		return place.inline.File(catalog.Origin{Catalog: place.Path, Kind: place.kind}, in.Around(before))
	}
	if place.registry != nil {
		return in.readRegistry(ctx, place, before), nil
	}
	info, err := os.Stat(place.Path)
	if errors.Is(err, os.ErrNotExist) && place.optional {
		return catalog.File{Origin: catalog.Origin{Catalog: place.Path, Kind: place.kind}}, nil
	}
	place.Found = true
	if err == nil && info.Mode().IsRegular() {
		data, err := os.ReadFile(place.Path)
		if err != nil {
			return catalog.File{}, fmt.Errorf("catalog: %w", err)
		}
		return parsed.parse(ctx, catalog.Origin{Catalog: place.Path, Kind: place.kind}, data, in.Around(before))
	}
	return source.Load(ctx, place.kind, place.Path, in.Around(before))
}

// places are what is read on top of the built-in catalog: what registries
// elsewhere have, then what projects and the local registries say, then the
// user's own catalog and those of the configuration.
func (in Inputs) places(projects []policy.Project) []Place {
	places := in.registries()
	for i := range projects {
		p := &projects[i]
		for _, s := range p.Discovery.Sources {
			places = append(places, Place{Type: s.Type, Path: s.Path, From: s.Place, kind: catalog.Project, optional: true})
		}
		if p.Discovery.Servers.Kind != 0 {
			places = append(places, Place{Type: "inline", Path: p.File, From: p.Written.Place("discovery.servers", p.File), kind: catalog.Project, inline: &p.Discovery})
		}
	}
	for _, folder := range registry.Places(in.Around(nil)) {
		if !registry.IsFolder(filepath.FromSlash(folder)) {
			continue
		}
		path := filepath.FromSlash(folder)
		places = append(places, Place{Type: "registry", Path: path, kind: in.kindOf(path)})
	}
	if in.OwnCatalog != "" {
		if _, err := os.Stat(in.OwnCatalog); !errors.Is(err, os.ErrNotExist) {
			places = append(places, Place{Type: "own", Path: in.OwnCatalog, kind: catalog.User})
		}
	}
	for _, path := range in.Config.Catalogs {
		places = append(places, Place{Type: "catalog", Path: path, From: in.Config.Written.Place("catalogs", "flag"), kind: catalog.User})
	}
	return append(places, in.sources()...)
}

// kindOf says whose the file at a path is, where the user has not named it.
func (in Inputs) kindOf(path string) catalog.OriginKind {
	users := inside(in.Home, path) && inside(in.Dir, in.Home) // though the project is around it
	if in.Dir == "" || in.Dir == in.Home || users || !inside(in.Dir, path) {
		return catalog.User
	}
	return catalog.Project
}

// sources are the places that the user's configuration names under discovery.
func (in Inputs) sources() []Place {
	d := &in.Config.Discovery
	var places []Place
	for _, s := range d.Sources {
		if s.Type == policy.OfficialRegistry {
			continue
		}
		s = s.At(filepath.Dir(in.Config.File), in.Home)
		paths := []string{s.Path}
		if s.Path == "" {
			paths = nil
			for _, path := range source.Places(source.Type(s.Type), in.Around(nil)) {
				paths = append(paths, filepath.FromSlash(path))
			}
		}
		for _, path := range paths {
			kind := catalog.User
			if s.Path == "" {
				kind = in.kindOf(path)
			}
			places = append(places, Place{Type: s.Type, Path: path, From: s.Place, Configured: kind == catalog.User, kind: kind, optional: true})
		}
	}
	if d.Servers.Kind != 0 {
		places = append(places, Place{
			Type: "inline", Path: in.Config.File, From: in.Config.Written.Place("discovery.servers", in.Config.File), Configured: true, kind: catalog.User, inline: d,
		})
	}
	return places
}

// Around returns what the entries of some formats refer to: this machine, and
// the entries of the files that were read before.
func (in Inputs) Around(files []catalog.File) catalog.Surroundings {
	return catalog.Surroundings{
		OS: runtime.GOOS, Home: in.Home, Dir: in.Dir, Env: in.Env, Stat: os.Stat,
		Known: func(name string) (catalog.Server, bool) {
			merged, _ := merge(files)
			entry, err := merged.Server(name)
			return entry, err == nil
		},
	}
}
