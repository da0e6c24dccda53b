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
	"strings"
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

	// Exactly one of Image, Program, Exec, Remote and Unsupported is set; or
	// none of them, and every one of Tools has a Run.
	Image   string   `json:"image,omitempty"`
	Program *Program `json:"program,omitempty"`
	Exec    *Exec    `json:"exec,omitempty"`
	Remote  *Remote  `json:"remote,omitempty"`
	// Unsupported is the reason why the entry cannot run (yet), for the user.
	Unsupported string `json:"unsupported,omitempty"`

	// Command replaces the image's command; Entrypoint the image's
	// entrypoint. For a Program, Command is what follows it, and for an Exec
	// the whole command. Both are templates over the settings, see
	// [template.Expand].
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	// WorkingDir is an absolute path in the container; empty is the image's own.
	WorkingDir string `json:"working_dir,omitempty"`
	// User is "uid[:gid]" or a name of the image, or a template of one; empty
	// is the image's own.
	User string `json:"user,omitempty"`
	// Env holds plain variables. An empty value means that the variable is not
	// set. A value is a template; or ${ENV} in it stands for the secret with
	// that variable, and then it holds no template.
	Env     []Variable `json:"env,omitempty"`
	Secrets []Secret   `json:"secrets,omitempty"`
	// Config is a JSON Schema (2020-12) of the user's settings; nil takes none.
	Config json.RawMessage `json:"config,omitempty"`

	Network Network `json:"network"`
	// ExtraHosts are "name:address", lines of the container's /etc/hosts.
	ExtraHosts []string `json:"extra_hosts,omitempty"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	// Tmpfs are paths in the container that are writable and forgotten.
	Tmpfs  []string `json:"tmpfs,omitempty"`
	Limits Limits   `json:"limits"`
	// Timeouts that are zero are the gateway's defaults.
	Timeouts  Timeouts  `json:"timeouts"`
	Isolation Isolation `json:"isolation"`
	// AutoStart servers are started in the background once approved.
	AutoStart bool `json:"auto_start,omitempty"`
	// HTTP is set where the container listens on a port instead of its stdin.
	HTTP *HTTP `json:"http,omitempty"`
	// Helpers run beside the server, in the order in which they are started.
	Helpers []Helper `json:"helpers,omitempty"`
	// OAuth says who gives out the server's tokens.
	OAuth *OAuth `json:"oauth,omitempty"`
	// Tools is a snapshot, for lists and search before the first start.
	Tools []ToolSnapshot `json:"tools,omitempty"`
	// EnabledTools are the only tools that the user wants to see; nil is all.
	EnabledTools []string `json:"enabled_tools,omitzero"`
	// EnabledAt is where EnabledTools are written, "file:line".
	EnabledAt string `json:"-"`
	// Remarks say what of the source is not in the entry, such as a flag that
	// would weaken the sandbox. They are for people.
	Remarks []string `json:"remarks,omitempty"`
}

// Runs returns how the entry is run.
func (s Server) Runs() Kind {
	switch {
	case s.Unsupported != "":
		return KindUnsupported
	case s.Remote != nil:
		return KindRemote
	case s.Exec != nil:
		return KindExec
	case s.Program != nil:
		return KindProgram
	case s.Image != "":
		return KindContainer
	}
	return KindTools
}

// A Kind is how an entry is run.
type Kind string

// The kinds of entry.
const (
	// KindContainer is a container of an image that holds the server.
	KindContainer Kind = "container"
	// KindProgram is a package or a file, in the image of a runtime.
	KindProgram Kind = "program"
	// KindExec is a process in a container that the user runs.
	KindExec Kind = "exec"
	// KindRemote is a server that somebody else runs.
	KindRemote Kind = "remote"
	// KindTools has a container for each call of a tool.
	KindTools Kind = "tools"
	// KindUnsupported cannot be run.
	KindUnsupported Kind = "unsupported"
)

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
	// Addresses are those that the URL's host may have though they are not
	// public: addresses, or prefixes such as "10.1.0.0/16".
	Addresses []string `json:"addresses,omitempty"`
}

// The transports of a remote server.
const (
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

// A Program is a package or a file that runs in the image of a runtime. A
// package is installed once, with network, into an image of its own; the
// folder of a file is mounted read-only.
type Program struct {
	// Runtime is [NPX] for Node.js, or [UVX] for Python.
	Runtime string `json:"runtime"`
	// Package is the name of an npm or PyPI package, or a source such as
	// "git+https://github.com/owner/repository". It is empty for a File.
	Package string `json:"package,omitempty"`
	// Version is empty for the newest.
	Version string `json:"version,omitempty"`
	// With are packages, with their versions, that are installed beside it.
	With []string `json:"with,omitempty"`
	// Binary is the program of the package to run; empty is its only one, or
	// the one of the package's name.
	Binary string `json:"binary,omitempty"`
	// Module is run by "python -m" in place of a binary.
	Module string `json:"module,omitempty"`
	// Index is the address of the registry of npm packages, or of the index of
	// Python packages, that the package comes from; empty is the usual one.
	Index string `json:"index,omitempty"`
	// File is the absolute path of a script on the host, which lies in Folder.
	File   string `json:"file,omitempty"`
	Folder string `json:"folder,omitempty"`
}

// The runtimes of programs.
const (
	NPX = "npx"
	UVX = "uvx"
)

// String returns what is run, in short: "npx @scope/package@1.2", and where it
// comes from if that is not the usual place; of a file "node FILE".
func (p Program) String() string {
	if p.File != "" && p.Runtime == UVX {
		return "python " + p.File
	}
	if p.File != "" {
		return "node " + p.File
	}
	what := p.Package
	if p.Version != "" {
		what += "@" + p.Version
	}
	if p.Index != "" {
		what += " from " + p.Index
	}
	return p.Runtime + " " + what
}

// An Exec is a process in a container that the user runs, and that has no
// limits of ours: it is not sandboxed by us.
type Exec struct {
	// Container is its name or id.
	Container string `json:"container"`
}

// HTTP is how a server in a container is spoken to over a port. No port is
// published for it.
type HTTP struct {
	Port int `json:"port"`
	// Path is that of the endpoint, such as "/mcp".
	Path string `json:"path"`
	// Transport is [StreamableHTTP] or [SSE].
	Transport string `json:"transport"`
}

// A Helper is a container that a server needs beside it, such as its database.
// Server and helpers share a network on which nobody else is.
type Helper struct {
	// Name is its name on that network.
	Name       string     `json:"name"`
	Image      string     `json:"image"`
	Entrypoint []string   `json:"entrypoint,omitempty"`
	Command    []string   `json:"command,omitempty"`
	WorkingDir string     `json:"working_dir,omitempty"`
	User       string     `json:"user,omitempty"`
	Env        []Variable `json:"env,omitempty"`
	Secrets    []Secret   `json:"secrets,omitempty"`
	Mounts     []Mount    `json:"mounts,omitempty"`
	Tmpfs      []string   `json:"tmpfs,omitempty"`
	Limits     Limits     `json:"limits"`
	Ready      Ready      `json:"ready"`
	Health     *Health    `json:"health,omitempty"`
}

// A Ready is what is waited for before what comes after a helper is started.
type Ready string

// What a helper can be waited for.
const (
	ReadyStarted   Ready = "started"
	ReadyHealthy   Ready = "healthy"
	ReadyCompleted Ready = "completed"
)

// A Health is how a helper is asked whether it works. Zero is the engine's
// default.
type Health struct {
	// Test is a command, or "CMD-SHELL" and a line for the shell.
	Test     []string      `json:"test"`
	Interval time.Duration `json:"interval,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Start    time.Duration `json:"start,omitempty"`
	Retries  int64         `json:"retries,omitempty"`
}

// OAuth says who gives out a server's tokens.
type OAuth struct {
	Providers []OAuthProvider `json:"providers"`
	Scopes    []string        `json:"scopes,omitempty"`
}

// LogsIn reports that the gateway logs in to the server: somebody else runs
// it, its entry says that it takes OAuth, and sends no Authorization itself.
func (s Server) LogsIn() bool {
	if s.Remote == nil || s.OAuth == nil {
		return false
	}
	for name := range s.Remote.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return true
}

// An OAuthProvider gives out a token, which is the secret of that name.
type OAuthProvider struct {
	Provider string `json:"provider"`
	Secret   string `json:"secret,omitempty"`
	Env      string `json:"env,omitempty"`
}

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
	// File says that the value is the path of a file on the host: the file is
	// mounted read-only, and Env holds its path in the container.
	File bool `json:"file,omitempty"`
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
	// Allow lists "host:port" for [NetworkAllow]. The host may be "*", or begin
	// with "*." for every name below another.
	Allow []string `json:"allow,omitempty"`
}

// A Mount is a host path or a named volume that an entry asks for. Source and
// Target are templates; lists in both make one mount for each pair of elements,
// and a missing value in both makes none.
type Mount struct {
	// Source is a host path; empty if Volume is set.
	Source string `json:"source,omitempty"`
	// Volume is the name of a volume of the engine, which is made if need be
	// and stays when the server ends.
	Volume   string `json:"volume,omitempty"`
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
	// PerCapabilities is one for all callers whose clients can be asked the
	// same things. Its server is told of these; others are told of everything,
	// and refused what a client cannot be asked.
	PerCapabilities Isolation = "capabilities"
)

// A ToolSnapshot is what a catalog says of a tool before it ever ran.
type ToolSnapshot struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Examples    []Example       `json:"examples,omitempty"`
	// Run is the container of one call, where the tool has one of its own.
	Run *ToolRun `json:"run,omitempty"`
}

// An Example shows how a tool is called.
type Example struct {
	Description string `json:"description,omitempty"`
	// Parameters are the arguments of the call, an object.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// A ToolRun is the container of one call of a tool; what it writes is the
// result. Its texts are templates over the arguments of the call, below
// "arguments", and the settings, below "config".
type ToolRun struct {
	Image      string   `json:"image"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	User       string   `json:"user,omitempty"`
	Mounts     []Mount  `json:"mounts,omitempty"`
}
