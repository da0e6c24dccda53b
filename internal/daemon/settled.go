package daemon

import (
	"context"
	"slices"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/rules"
)

// A settled is all that the configuration, the project's files and the
// catalogs come to at one time. It does not change; a reload takes another one
// in its place, and who has begun with one goes on with it.
type settled struct {
	config   policy.Config
	projects []policy.Project
	places   []Place
	catalog  *catalog.Catalog
	notes    []catalog.Note
	// configured are the servers of the places that are to be used.
	configured []string
	// quotas and rules hold for everybody without a share of a role.
	quotas policy.Quotas
	rules  rules.Rules
	shares map[string]share
	// idle are the quotas of projects that lower nothing.
	idle []policy.Setting
	// find ranks the catalog's servers for a query.
	find func(query string, limit int) []string
}

// settle works out what holds. The error joins all mistakes, and then nothing
// of it holds. What is in parsed is not parsed again; nil is nothing.
func settle(ctx context.Context, o Options, parsed *parsedFiles) (*settled, error) {
	projects, err := o.projects()
	if err != nil {
		return nil, err
	}
	read, err := o.read(ctx, projects, parsed)
	if err != nil {
		return nil, err
	}
	s := &settled{config: o.Config, projects: projects, places: read.places, configured: read.configured()}
	s.catalog, s.notes = catalog.Merge(read.files...)
	for _, name := range o.Servers {
		if _, err := s.catalog.Server(name); err != nil {
			return nil, err
		}
	}
	if err := s.narrow(); err != nil {
		return nil, err
	}
	s.find = finder(s.catalog)
	return s, nil
}

// narrow works out what the user says or the defaults, narrowed by the
// entries' lists of tools and the project's files.
func (s *settled) narrow() error {
	listed, err := listedTools(s.catalog)
	if err != nil {
		return err
	}
	general := share{quotas: s.config.Quotas, rules: s.config.Discovery.Rules.Narrowed(listed)}
	if general.quotas.MaxRunning.Max == 0 {
		general.quotas.MaxRunning = fleet.Bound{Max: policy.DefaultMaxRunning}
	}
	if general.quotas.MaxRemote.Max == 0 {
		general.quotas.MaxRemote = fleet.Bound{Max: policy.DefaultMaxRemote}
	}
	s.shares = sharesOf(s.config.Admission, general)
	for _, p := range s.projects {
		_, ignored := general.quotas.LoweredBy(p.Quotas)
		for _, name := range ignored {
			s.idle = append(s.idle, policy.Setting{Key: name, From: p.File})
		}
		general = general.narrowed(p)
		for name, share := range s.shares {
			s.shares[name] = share.narrowed(p)
		}
	}
	s.quotas, s.rules = general.quotas, general.rules
	return nil
}

// listedTools are the rules of entries that say which tools are enabled.
func listedTools(c *catalog.Catalog) (rules.Rules, error) {
	var lists []rules.Listing
	for _, entry := range c.Servers() {
		if entry.EnabledTools != nil {
			lists = append(lists, rules.Listing{Server: entry.Name, Tools: entry.EnabledTools, Place: entry.EnabledAt})
		}
	}
	return rules.Listed(lists...)
}

// say logs what a person would else look for.
func (s *settled) say(ctx context.Context, o Options) {
	for _, p := range s.projects {
		o.Logger.InfoContext(ctx, "narrowed by the project", "file", p.File)
	}
	for _, idle := range s.idle {
		o.Logger.InfoContext(ctx, "quota of the project has no effect", "file", idle.From, "quota", idle.Key)
	}
	for _, place := range s.places {
		if !place.Found {
			o.Logger.InfoContext(ctx, "source is not there", "file", place.Path, "kind", place.Type)
		}
	}
}

// exposed narrows groups to those that the configuration and the project
// leave.
func (s *settled) exposed(groups []meta.Group) []meta.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(group meta.Group) bool {
		off := group == meta.Meta && s.config.Discovery.Off()
		for _, p := range s.projects {
			off = off || group == meta.Meta && p.Discovery.Off() || p.Expose != nil && !slices.Contains(p.Expose, group)
		}
		return off
	})
}

// cache is what the configuration and the project say of it.
func (s *settled) cache() policy.Cache {
	cache := s.config.Discovery.Cache
	for _, p := range s.projects {
		other := p.Discovery.Cache
		if other.Off() {
			cache.Enabled = other.Enabled
		}
		if other.TTL > 0 && other.Life() < cache.Life() {
			cache.TTL = other.TTL
		}
	}
	return cache
}

// anticipates reports that servers are started before they are called.
func (s *settled) anticipates() bool {
	off := func(yes *bool) bool { return yes != nil && !*yes }
	return !off(s.config.Anticipate) && !slices.ContainsFunc(s.projects, func(p policy.Project) bool { return off(p.Anticipate) })
}

// Catalog is what all catalogs and sources together offer now.
func (d *Daemon) Catalog() *catalog.Catalog { return d.now.Load().catalog }

// Notes say which catalog entries replaced others.
func (d *Daemon) Notes() []catalog.Note { return d.now.Load().notes }

// Quotas are those that hold here.
func (d *Daemon) Quotas() policy.Quotas { return d.now.Load().quotas }

// Rules say which tools may be called: the user's, narrowed by the project's.
func (d *Daemon) Rules() rules.Rules { return d.now.Load().rules }

// Find ranks the catalog's servers for a query.
func (d *Daemon) Find(query string, limit int) []string { return d.now.Load().find(query, limit) }
