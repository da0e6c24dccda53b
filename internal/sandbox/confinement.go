package sandbox

import "time"

// Lifetime is how long a container is its gateway's: when it is over, gateways
// of other state folders may remove it too. A server does not run for longer.
const Lifetime = 24 * time.Hour

// A Confinement is what every container gets, whatever its entry says.
type Confinement struct {
	ReadOnlyRoot    bool     `json:"read_only_root"`
	Capabilities    []string `json:"capabilities"`
	NoNewPrivileges bool     `json:"no_new_privileges"`
	// Seccomp is the profile: the engine's own.
	Seccomp string `json:"seccomp"`
	// Swap is how many bytes a container may have beyond its memory.
	Swap int64 `json:"swap"`
	// Init reports that the first process is one that collects the others.
	Init bool `json:"init"`
	// Logs is what the engine keeps of the container's output.
	Logs string `json:"logs"`
	// LifetimeSeconds is [Lifetime].
	LifetimeSeconds int64 `json:"lifetime_seconds"`
}

// Confined returns what every container gets.
func Confined() Confinement {
	return Confinement{
		ReadOnlyRoot: true, Capabilities: []string{}, NoNewPrivileges: true, Seccomp: "default",
		Init: true, Logs: "none", LifetimeSeconds: int64(Lifetime / time.Second),
	}
}
