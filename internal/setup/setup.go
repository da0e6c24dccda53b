// Package setup works out what holds: what the user's configuration, the
// project's files and the catalogs that both name come to at one time.
//
// It decides which servers there are to choose from and whose word each is,
// which of them are to be used, and how far quotas, rules and lists are
// narrowed, for everybody and for each role. It refuses a project's source
// outside of the project's folder, and every mistake in any of the files: then
// nothing of it holds. It guarantees that a project takes away only, that what
// it adds takes nobody's name, and that a [Setup] does not change. It reads
// files, asks the registries that the user names, and starts nothing.
package setup

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/rules"
)

// Inputs are what a [Setup] is worked out from.
type Inputs struct {
	Config policy.Config
	// OwnCatalog is the user's own catalog, in the native format; it is read
	// if it is there.
	OwnCatalog string
	// Servers are active in this process, on top of what the user has added.
	Servers []string
	// Home is the user's home folder, Dir the working directory.
	Home, Dir string
	// Several says that clients in other folders use the gateway too, so that
	// files in Dir say nothing about it.
	Several bool
	// Answers is the folder where answers of registries are kept; "" keeps none.
	Answers string
	// Again says that a gateway which runs reads everything anew: answers that
	// are good enough for a start are asked for again.
	Again bool
	// Env looks a variable up.
	Env func(name string) (string, bool)
}

// A Setup is all that the inputs come to at one time. It does not change; a
// reload takes another one in its place, and who has begun with one goes on
// with it.
type Setup struct {
	// Share is what holds for everybody without a share of a role.
	Share
	Config policy.Config
	// Catalog is what all places together offer, and Notes say which entries
	// replaced others.
	Catalog *catalog.Catalog
	Notes   []catalog.Note
	// Places are where servers are described, with what was found there.
	Places []Place
	// Configured are the servers of the places that are to be used, sorted.
	Configured []string

	projects []policy.Project
	shares   map[string]Share
	// idle are the quotas of projects that lower nothing.
	idle []policy.Setting
	find func(query string, limit int) []string
}

// Read works out what holds. The error joins all mistakes, and then nothing of
// it holds. What is in parsed is not parsed again; nil is nothing.
func Read(ctx context.Context, in Inputs, parsed *Parsed) (*Setup, error) {
	projects, err := in.projects()
	if err != nil {
		return nil, err
	}
	read, err := in.read(ctx, projects, parsed)
	if err != nil {
		return nil, err
	}
	s := &Setup{Config: in.Config, projects: projects, Places: read.places, Configured: read.configured()}
	s.Catalog, s.Notes = merge(read.files)
	for _, name := range in.Servers {
		if _, err := s.Catalog.Server(name); err != nil {
			return nil, err
		}
	}
	if err := s.narrow(); err != nil {
		return nil, err
	}
	s.find = finder(s.Catalog)
	return s, nil
}

// narrow works out what the user says or the defaults, narrowed by the
// entries' lists of tools and the project's files.
func (s *Setup) narrow() error {
	listed, err := listedTools(s.Catalog)
	if err != nil {
		return err
	}
	general := Share{Quotas: s.Config.Quotas, Rules: s.Config.Discovery.Rules.Narrowed(listed)}
	if general.Quotas.MaxRunning.Max == 0 {
		general.Quotas.MaxRunning = fleet.Bound{Max: policy.DefaultMaxRunning}
	}
	if general.Quotas.MaxRemote.Max == 0 {
		general.Quotas.MaxRemote = fleet.Bound{Max: policy.DefaultMaxRemote}
	}
	s.shares = sharesOf(s.Config.Admission, general)
	for _, p := range s.projects {
		_, ignored := general.Quotas.LoweredBy(p.Quotas)
		for _, name := range ignored {
			s.idle = append(s.idle, policy.Setting{Key: name, From: p.File})
		}
		general = general.narrowed(p)
		for name, share := range s.shares {
			s.shares[name] = share.narrowed(p)
		}
	}
	s.Share = general
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

// Log says what a person would else look for.
func (s *Setup) Log(ctx context.Context, logger *slog.Logger) {
	for _, p := range s.projects {
		logger.InfoContext(ctx, "narrowed by the project", "file", p.File)
	}
	for _, idle := range s.idle {
		logger.InfoContext(ctx, "quota of the project has no effect", "file", idle.From, "quota", idle.Key)
	}
	for _, place := range s.Places {
		switch {
		case place.Problem != "":
			logger.WarnContext(ctx, "registry cannot be asked", "url", place.Path, "err", place.Problem)
		case !place.Found:
			logger.InfoContext(ctx, "source is not there", "file", place.Path, "kind", place.Type)
		}
	}
}

// Settings is the configuration as it holds: what is built in, what the user
// has written, and what the project has narrowed, sorted by key.
func (s *Setup) Settings() []policy.Setting {
	all := defaults()
	set := func(one policy.Setting) {
		if i := slices.IndexFunc(all, func(have policy.Setting) bool { return have.Key == one.Key }); i >= 0 {
			all[i] = one
			return
		}
		all = append(all, one)
	}
	for _, one := range s.Config.Written {
		set(one)
	}
	if files := strings.Count(s.Config.Written.Place("catalogs", ""), ":"); len(s.Config.Catalogs) > 0 && files == 0 {
		set(policy.Setting{Key: "catalogs", Value: s.Config.Catalogs, From: "--catalog"})
	}
	for _, p := range s.projects {
		for _, one := range p.Written {
			if s.holds(p, one) {
				set(one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b policy.Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// holds reports that a setting of a project is what counts.
func (s *Setup) holds(p policy.Project, one policy.Setting) bool {
	switch one.Key {
	case "discovery.enabled":
		return p.Discovery.Off()
	case "discovery.cache.enabled":
		return p.Discovery.Cache.Off()
	case "discovery.cache.ttl":
		return p.Discovery.Cache.Life() == s.Cache().Life() && p.Discovery.Cache.Life() < s.Config.Discovery.Cache.Life()
	case "anticipate":
		return off(p.Anticipate)
	case "discovery.servers", "discovery.sources", "discovery.toolRules":
		return false // they are added to the user's, and shown with them
	default:
		name, isQuota := strings.CutPrefix(one.Key, "quotas.")
		return !isQuota || s.Quotas.Place(name) == p.File
	}
}

// DiscoveryOff reports that the tools that find and call others are not listed.
func (s *Setup) DiscoveryOff() bool {
	return s.Config.Discovery.Off() || slices.ContainsFunc(s.projects, func(p policy.Project) bool { return p.Discovery.Off() })
}

// Cache is what the configuration and the project say of it.
func (s *Setup) Cache() policy.Cache {
	cache := s.Config.Discovery.Cache
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

// Anticipates reports that servers are started before they are called.
func (s *Setup) Anticipates() bool {
	return !off(s.Config.Anticipate) && !slices.ContainsFunc(s.projects, func(p policy.Project) bool { return off(p.Anticipate) })
}

// off reports that a switch that is on by itself was switched off.
func off(yes *bool) bool { return yes != nil && !*yes }

// Files are the configuration files that were read: the user's, and then the
// project's.
func (s *Setup) Files() []string {
	var files []string
	if s.Config.File != "" {
		files = append(files, s.Config.File)
	}
	for _, p := range s.projects {
		files = append(files, p.File)
	}
	return files
}

// Find ranks the catalog's servers for a query.
func (s *Setup) Find(query string, limit int) []string { return s.find(query, limit) }
