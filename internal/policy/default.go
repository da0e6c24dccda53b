package policy

import (
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// BuiltIn is where a [Setting] comes from that nobody has made.
const BuiltIn = "built-in"

// Defaults are the settings of a configuration that says nothing, but for those
// of the endpoint (http), which the package of that name has.
func Defaults() []Setting {
	var all []Setting
	add := func(key string, value any) { all = append(all, Setting{Key: key, Value: value, From: BuiltIn}) }
	add("catalogs", []string{})
	add("expose", strings.Split(join(DefaultExpose()), ", "))
	add("prefix", string(menu.PrefixServer))
	add("approval.mode", string(approval.ModeAsk))
	add("approval.wait", Brief(consent.DefaultWait))
	add("approval.scripted", false)
	add("limits.memory", Size(sandbox.DefaultMemory).String())
	add("limits.cpus", sandbox.DefaultCPUs)
	add("limits.pids", sandbox.DefaultPIDs)
	add("limits.shm", Size(sandbox.DefaultShm).String())
	add("limits.tmp", Size(sandbox.DefaultTmp).String())
	add("timeouts.start", Brief(fleet.DefaultStart))
	add("timeouts.list", Brief(fleet.DefaultList))
	add("timeouts.call", Brief(fleet.DefaultCall))
	add("timeouts.call_max", Brief(fleet.DefaultCallMax))
	add("timeouts.idle", Brief(fleet.DefaultIdle))
	add("timeouts.stop", Brief(sandbox.DefaultStop))
	add("quotas.max_running", DefaultMaxRunning)
	add("quotas.max_remote", DefaultMaxRemote)
	for _, unbounded := range []string{"max_memory_per_server", "max_total_memory", "max_call"} {
		add("quotas."+unbounded, "none")
	}
	add("patience", Brief(call.DefaultPatience))
	add("relay", DefaultRelay)
	add("lists.servers", gateway.DefaultServers)
	add("lists.tools", gateway.DefaultTools)
	add("lists.tools_per_server", upstream.DefaultEntries)
	add("lists.ttl", "0s")
	add("share.idle", Brief(DefaultShareIdle))
	add("anticipate", true)
	add("discovery.enabled", true)
	add("discovery.cache.enabled", true)
	add("discovery.cache.ttl", int(DefaultTTL/time.Second))
	return all
}

// Brief is a duration without the parts that are zero.
func Brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
