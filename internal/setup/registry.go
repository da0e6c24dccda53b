package setup

import (
	"context"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/official"
	"github.com/dockgate/dockgate/internal/policy"
)

const (
	// registryTime is how long all answers of a registry may take, when nothing
	// else waits for it but the start of the gateway.
	registryTime = 10 * time.Second
	// registryStart is how old an answer may be when a gateway starts. While it
	// runs it asks again as the configuration says.
	registryStart = 24 * time.Hour
)

// Registry returns the registry of the official kind at a URL; "" is the first
// of the configuration, else the official one. What it answers is used again
// for ttl.
func (in Inputs) Registry(url string, ttl time.Duration, before []catalog.File) *official.Registry {
	for _, place := range in.registries() {
		if url == "" {
			url = place.Path
		}
	}
	if url == "" {
		url = official.DefaultBase
	}
	registry := &official.Registry{Base: url, TTL: ttl, Around: in.Around(before)}
	if !in.Config.Discovery.Cache.Off() {
		registry.Folder = in.Answers
	}
	return registry
}

// registries are the registries that the user's configuration names. Others
// write what is in them, so they are read first, and what is found there
// replaces nothing but built-in entries of its own long names.
func (in Inputs) registries() []Place {
	var places []Place
	for _, s := range in.Config.Discovery.Sources {
		if s.Type == policy.OfficialRegistry {
			places = append(places, Place{Type: s.Type, Path: s.URL, From: s.Place, kind: catalog.User, optional: true, registry: &s})
		}
	}
	return places
}

// readRegistry reads what a registry has. One that does not answer is as one
// that is not there, and says why.
func (in Inputs) readRegistry(ctx context.Context, place *Place, before []catalog.File) catalog.File {
	file := catalog.File{Origin: catalog.Origin{Catalog: place.Path, Kind: place.kind}}
	ctx, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	ttl := registryStart
	if in.Again {
		ttl = in.Config.Discovery.Cache.Life()
	}
	found, err := in.Registry(place.Path, ttl, before).Search(ctx, place.registry.Search, 0)
	if err != nil {
		place.Problem = err.Error()
		return file
	}
	place.Found = true
	for _, one := range found {
		file.Servers = append(file.Servers, one.Entry)
	}
	return file
}
