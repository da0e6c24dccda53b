package daemon

import (
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// BuiltIn is where a [Setting] comes from that nobody has made.
const BuiltIn = "built-in"

// defaults are the settings of a configuration that says nothing.
func defaults() []Setting {
	var all []Setting
	add := func(key string, value any) { all = append(all, Setting{Key: key, Value: value, From: BuiltIn}) }
	size := func(bytes int64) string {
		return units.CustomSize("%.4g%s", float64(bytes), 1024, []string{"B", "KB", "MB", "GB"})
	}
	add("catalogs", []string{})
	add("expose", strings.Split(join(DefaultExpose()), ", "))
	add("prefix", string(gateway.PrefixServer))
	add("approval.mode", string(approval.ModeAsk))
	add("approval.wait", brief(approval.DefaultWait))
	add("approval.scripted", false)
	add("limits.memory", size(sandbox.DefaultMemory))
	add("limits.cpus", sandbox.DefaultCPUs)
	add("limits.pids", sandbox.DefaultPIDs)
	add("limits.shm", size(sandbox.DefaultShm))
	add("limits.tmp", size(sandbox.DefaultTmp))
	add("timeouts.start", brief(fleet.DefaultStart))
	add("timeouts.list", brief(fleet.DefaultList))
	add("timeouts.call", brief(fleet.DefaultCall))
	add("timeouts.call_max", brief(fleet.DefaultCallMax))
	add("timeouts.idle", brief(fleet.DefaultIdle))
	add("timeouts.stop", brief(sandbox.DefaultStop))
	add("quotas.max_running", DefaultMaxRunning)
	add("quotas.max_remote", DefaultMaxRemote)
	add("patience", brief(call.DefaultPatience))
	add("relay", DefaultRelay)
	add("lists.servers", gateway.DefaultServers)
	add("lists.tools", gateway.DefaultTools)
	add("lists.ttl", "0s")
	add("share.idle", brief(DefaultShareIdle))
	add("anticipate", true)
	add("discovery.enabled", true)
	add("discovery.cache.enabled", true)
	add("discovery.cache.ttl", int(DefaultTTL/time.Second))
	return all
}

// brief is a duration without the parts that are zero.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Settings is the configuration as it holds: what is built in, what the user
// has written, and what the project has narrowed, sorted by key.
func (d *Daemon) Settings() []Setting { return d.now.Load().settings() }

func (s *settled) settings() []Setting {
	all := defaults()
	set := func(one Setting) {
		one.Key = ourName(one.Key)
		if i := slices.IndexFunc(all, func(have Setting) bool { return have.Key == one.Key }); i >= 0 {
			all[i] = one
			return
		}
		all = append(all, one)
	}
	for _, one := range s.config.Written {
		set(one)
	}
	if files := strings.Count(placeOf(s.config.Written, "catalogs", ""), ":"); len(s.config.Catalogs) > 0 && files == 0 {
		set(Setting{Key: "catalogs", Value: s.config.Catalogs, From: "--catalog"})
	}
	for _, p := range s.projects {
		for _, one := range p.written {
			if s.holds(p, one) {
				set(one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// ourName is our name of a quota that has another in some files.
func ourName(key string) string {
	for _, one := range new(Quotas).each() {
		if one.seed != "" && key == "quotas."+one.seed {
			return "quotas." + one.name
		}
	}
	return key
}

// holds reports that a setting of a project is what counts.
func (s *settled) holds(p project, one Setting) bool {
	off := func(yes *bool) bool { return yes != nil && !*yes }
	switch key := ourName(one.Key); key {
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
		name, isQuota := strings.CutPrefix(key, "quotas.")
		if !isQuota {
			return true
		}
		for _, held := range s.quotas.each() {
			if held.name == name {
				return held.bound.Place == p.path
			}
		}
		return false
	}
}

// DiscoveryOff reports that the tools that find and call others are not listed.
func (d *Daemon) DiscoveryOff() bool {
	now := d.now.Load()
	return now.config.Discovery.Off() || slices.ContainsFunc(now.projects, func(p project) bool { return p.Discovery.Off() })
}

// Cache is what holds of the cache.
func (d *Daemon) Cache() Cache { return d.now.Load().cache() }

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
		files = append(files, p.path)
	}
	return files
}
