// Package catalog describes MCP servers that can be started: what they are,
// what they need, what they ask for.
//
// It parses and validates entries, merges catalogs, and checks a user's
// settings against an entry. It refuses unknown fields, entries that name no
// source, and the reserved name "mcp"; from a project's file it takes no
// commands that run outside a container. It reports every mistake of a file
// at once. It starts nothing and grants nothing: every right in an entry is a
// request.
package catalog

import (
	"encoding/json"
	"strconv"
	"time"
)

// A Server is one entry of a catalog.
type Server struct {
	// Name is the entry's key: 1 to 64 of [A-Za-z0-9._-], never "mcp".
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// Origin is where the entry was read.
	Origin Origin `json:"origin"`

	// Exactly one of Image, Remote and Unsupported is set.
	Image  string  `json:"image,omitempty"`
	Remote *Remote `json:"remote,omitempty"`
	// Unsupported is the reason why the entry cannot run (yet), for the user.
	Unsupported string `json:"unsupported,omitempty"`

	// Command replaces the image's command; Entrypoint the image's
	// entrypoint. Both are templates over the settings, see [Expand].
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	// User is "uid[:gid]" or a name of the image; empty is the image's own.
	User string `json:"user,omitempty"`
	// Env holds plain variables; values are templates. An empty value means
	// that the variable is not set.
	Env     []Variable `json:"env,omitempty"`
	Secrets []Secret   `json:"secrets,omitempty"`
	// Config is a JSON Schema (2020-12) of the user's settings; nil takes none.
	Config json.RawMessage `json:"config,omitempty"`

	Network Network `json:"network"`
	Mounts  []Mount `json:"mounts,omitempty"`
	Limits  Limits  `json:"limits"`
	// Timeouts that are zero are the gateway's defaults.
	Timeouts  Timeouts  `json:"timeouts"`
	Isolation Isolation `json:"isolation"`
	// AutoStart servers are started in the background once approved.
	AutoStart bool `json:"auto_start,omitempty"`
	// Tools is a snapshot, for lists and search before the first start.
	Tools []ToolSnapshot `json:"tools,omitempty"`
}

// An Origin is the place of an entry in a catalog.
type Origin struct {
	// Catalog is a short name: "built-in", or the file's path.
	Catalog string `json:"catalog"`
	// Kind says who wrote the catalog.
	Kind OriginKind `json:"kind"`
	// Line is 1-based; 0 where the format has none.
	Line int `json:"line,omitempty"`
}

// String returns "catalog:line".
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Catalog
	}
	return o.Catalog + ":" + strconv.Itoa(o.Line)
}

// An OriginKind is who wrote a catalog; the approval shows it.
type OriginKind string

// The kinds of origin.
const (
	BuiltIn OriginKind = "built-in"
	User    OriginKind = "local"
	Project OriginKind = "project"
)

// A Remote is a server somebody else runs.
type Remote struct {
	// URL is http or https. In its query, ${ENV} stands for the secret with
	// that variable: it is filled in for the request and shown nowhere.
	URL string `json:"url"`
	// Transport is [StreamableHTTP] or [SSE].
	Transport string `json:"transport"`
	// Headers are templates; ${ENV} stands for the secret with that variable.
	Headers map[string]string `json:"headers,omitempty"`
}

// The transports of a remote server.
const (
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

// A Variable is an environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Secret is a secret that a server needs.
type Secret struct {
	// Name is the secret's name in a secret store, such as "postgres.url".
	Name string `json:"name"`
	// Env is the variable that the container reads.
	Env string `json:"env"`
	// From is the variable that the user sets and is told of; empty is Env.
	From     string `json:"from,omitempty"`
	Required bool   `json:"required,omitempty"`
	// Instructions tell a person where to get it.
	Instructions string `json:"instructions,omitempty"`
}

// Variable returns the name of the variable that the user sets.
func (s Secret) Variable() string {
	if s.From != "" {
		return s.From
	}
	return s.Env
}

// A NetworkMode is what a container may reach.
type NetworkMode string

// The network modes. The zero value is [NetworkNone].
const (
	NetworkNone   NetworkMode = "none"
	NetworkAllow  NetworkMode = "allow"
	NetworkPublic NetworkMode = "public"
	NetworkFull   NetworkMode = "full"
)

// A Network is the network right that an entry asks for.
type Network struct {
	Mode NetworkMode `json:"mode,omitempty"`
	// Allow lists "host:port" for [NetworkAllow].
	Allow []string `json:"allow,omitempty"`
}

// A Mount is a host path that an entry asks for. Source and Target are
// templates; lists in both make one mount for each pair of elements, and a
// missing value in both makes none.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only"`
}

// Limits bound a container. Zero means the default of [sandbox.Compile].
type Limits struct {
	// Memory is in bytes, swap included.
	Memory int64   `json:"memory,omitempty"`
	CPUs   float64 `json:"cpus,omitempty"`
	PIDs   int64   `json:"pids,omitempty"`
	// Shm is the size of /dev/shm in bytes.
	Shm int64 `json:"shm,omitempty"`
	// Tmp is the size of /tmp in bytes.
	Tmp int64 `json:"tmp,omitempty"`
}

// Timeouts bound waiting.
type Timeouts struct {
	Start time.Duration `json:"start,omitempty"`
	// Call is the time since the last sign of progress.
	Call time.Duration `json:"call,omitempty"`
	// CallMax is the whole time of a call, progress or not.
	CallMax time.Duration `json:"call_max,omitempty"`
	// List is how long the server may take to list what it offers.
	List time.Duration `json:"list,omitempty"`
	// Idle is how long a server runs without a call.
	Idle time.Duration `json:"idle,omitempty"`
	// Stop is how long the server may take to end once it has been told to,
	// before it is killed; at most [MaxStop].
	Stop time.Duration `json:"stop,omitempty"`
}

// MaxStop is the most that a server can be given to end: clients wait for the
// answer of mcp_remove, and people for the end of the gateway.
const MaxStop = 30 * time.Second

// An Isolation says which callers share one container.
type Isolation string

// The isolations. The zero value is [Shared].
const (
	Shared       Isolation = "shared"
	PerPrincipal Isolation = "principal"
	PerSession   Isolation = "session"
)

// A ToolSnapshot is what a catalog says of a tool before it ever ran.
type ToolSnapshot struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}
