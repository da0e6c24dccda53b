package policy

import (
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// BuiltIn is where a [Setting] comes from that nobody has made.
const BuiltIn = "built-in"

// Defaults are the settings of a configuration that says nothing.
func Defaults() []Setting {
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
	add("lists.tools_per_server", upstream.DefaultEntries)
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
