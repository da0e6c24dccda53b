package setup

import (
	"slices"

	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/policy"
)

// defaults are all settings of a configuration that says nothing, with those
// of the endpoint, which has its own.
func defaults() []policy.Setting {
	http := func(key string, value any) policy.Setting {
		return policy.Setting{Key: "http." + key, Value: value, From: policy.BuiltIn}
	}
	return slices.Concat(policy.Defaults(), []policy.Setting{
		http("url", ""),
		http("hosts", []string{}),
		http("origins", []string{}),
		http("sse", false),
		http("rate", endpoint.DefaultRate),
		http("burst", endpoint.DefaultBurst),
		http("max_in_flight", endpoint.DefaultInFlight),
		http("max_sessions", endpoint.DefaultSessions),
		http("max_listens", endpoint.DefaultListens),
		http("session_timeout", policy.Brief(endpoint.DefaultSessionTimeout)),
		http("drain", policy.Brief(endpoint.DefaultDrain)),
	})
}
