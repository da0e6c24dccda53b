package daemon

import (
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/policy"
)

// Settings is the configuration as it holds: what is built in, what the user
// has written, and what the project has narrowed, sorted by key.
func (d *Daemon) Settings() []policy.Setting { return d.now.Load().settings() }

func (s *settled) settings() []policy.Setting {
	all := policy.Defaults()
	set := func(one policy.Setting) {
		if i := slices.IndexFunc(all, func(have policy.Setting) bool { return have.Key == one.Key }); i >= 0 {
			all[i] = one
			return
		}
		all = append(all, one)
	}
	for _, one := range s.config.Written {
		set(one)
	}
	if files := strings.Count(s.config.Written.Place("catalogs", ""), ":"); len(s.config.Catalogs) > 0 && files == 0 {
		set(policy.Setting{Key: "catalogs", Value: s.config.Catalogs, From: "--catalog"})
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
func (s *settled) holds(p policy.Project, one policy.Setting) bool {
	off := func(yes *bool) bool { return yes != nil && !*yes }
	switch one.Key {
	case "discovery.enabled":
		return p.Discovery.Off()
	case "discovery.cache.enabled":
		return p.Discovery.Cache.Off()
	case "discovery.cache.ttl":
		return p.Discovery.Cache.Life() == s.cache().Life() && p.Discovery.Cache.Life() < s.config.Discovery.Cache.Life()
	case "anticipate":
		return off(p.Anticipate)
	case "discovery.servers", "discovery.sources", "discovery.toolRules":
		return false // they are added to the user's, and shown with them
	default:
		name, isQuota := strings.CutPrefix(one.Key, "quotas.")
		return !isQuota || s.quotas.Place(name) == p.File
	}
}

// DiscoveryOff reports that the tools that find and call others are not listed.
func (d *Daemon) DiscoveryOff() bool {
	now := d.now.Load()
	return now.config.Discovery.Off() || slices.ContainsFunc(now.projects, func(p policy.Project) bool { return p.Discovery.Off() })
}

// Cache is what holds of the cache.
func (d *Daemon) Cache() policy.Cache { return d.now.Load().cache() }

// Places are where servers are described, with what was found there.
func (d *Daemon) Places() []Place { return d.now.Load().places }

// Files are the configuration files that were read: the user's, and then the
// project's.
func (d *Daemon) Files() []string {
	now := d.now.Load()
	var files []string
	if now.config.File != "" {
		files = append(files, now.config.File)
	}
	for _, p := range now.projects {
		files = append(files, p.File)
	}
	return files
}
