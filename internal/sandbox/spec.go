// Package sandbox decides how a server runs: from a catalog entry, the user's
// settings and the image's configuration it compiles a [Spec], the complete
// description of one container, and from that the [Grant] that a person
// approves.
//
// Compile is pure. It refuses mounts of the engine's socket, of the root, of
// system and credential folders and of a whole home directory, and it has no
// word for privileged containers, host namespaces, devices or added
// capabilities, so no Spec can ask for them.
//
// A [Process] is a running Spec. The contract every engine must keep stands
// at the interface, and package sandboxtest holds engines to it.
package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/secret"
)

// A Spec is everything an engine needs to create one container. It is plain
// data; its JSON holds no secret values. What every container gets is not in
// it, because no entry may change it: an init process, a read-only root, no
// capabilities, no-new-privileges, the default seccomp profile, no logs kept
// by the engine.
type Spec struct {
	Server string `json:"server"`
	// Exec, if set, is a container that the user runs: the command is a process
	// in it, and nothing else of the Spec holds but user, folder and variables.
	Exec string `json:"exec,omitempty"`
	// Remote, if set, is a server that somebody else runs: nothing else of the
	// Spec holds but the secrets.
	Remote *Remote `json:"remote,omitempty"`
	// HTTP, if set, is a port that the server listens on; its stdin and stdout
	// are then no conversation.
	HTTP *HTTP `json:"http,omitempty"`
	// Runs, if any, are tools with a container of their own for each call; the
	// Spec then holds what all of them have in common, and has no image.
	Runs []Run `json:"runs,omitempty"`
	// LeftOut are the tools beside Runs that are not offered.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// Settings are for the templates of Runs.
	Settings map[string]any `json:"settings,omitempty"`
	// Helpers run beside the server, on a network of their own. They are started
	// first, in their order.
	Helpers []Helper `json:"helpers,omitempty"`
	// NoInput says that the container's stdin is empty.
	NoInput bool `json:"no_input,omitempty"`
	// Beside is the id of a container whose network and processes this one
	// shares, to end them when its own input ends. Only a program of ours is
	// run so, and no entry can ask for it.
	Beside string `json:"-"`

	Image      Image      `json:"image"`
	Entrypoint []string   `json:"entrypoint"`
	Command    []string   `json:"command"`
	WorkingDir string     `json:"working_dir,omitempty"`
	User       string     `json:"user,omitempty"`
	Env        []Variable `json:"env,omitempty"`
	Secrets    []Secret   `json:"secrets,omitempty"`
	// Network is NetworkNone or NetworkFull: nothing between is enforced yet.
	Network catalog.NetworkMode `json:"network"`
	// ExtraHosts are "name:address", lines of /etc/hosts.
	ExtraHosts []string `json:"extra_hosts,omitempty"`
	Mounts     []Mount  `json:"mounts,omitempty"`
	Tmpfs      []Tmpfs  `json:"tmpfs"`
	Limits     Limits   `json:"limits"`
	// Stop is how long the server may take to end, see [Process]; zero is
	// [DefaultStop]. It changes nothing about what is started.
	Stop time.Duration `json:"-"`
}

// DefaultStop is how long a server may take to end once it has been told to.
const DefaultStop = 5 * time.Second

// Ladder returns the two waits of stopping a server: after its stdin was
// closed, and after SIGTERM. A server that listens on a port does not look at
// its stdin, and one without input cannot.
func (s Spec) Ladder() (afterEOF, afterTerm time.Duration) {
	whole := cmp.Or(s.Stop, DefaultStop)
	if s.HTTP != nil || s.NoInput {
		return 0, whole
	}
	afterEOF = whole * 2 / 5
	return afterEOF, whole - afterEOF
}

// A Variable is an environment variable with its final value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Secrets are variables of secrets whose values take the place of
	// ${VARIABLE} in Value, just before the start.
	Secrets []string `json:"secrets,omitempty"`
}

// A Secret is a variable whose value arrives just before the start.
type Secret struct {
	// Name and From are how the value is looked up, see [catalog.Secret].
	Name     string `json:"name"`
	From     string `json:"from"`
	Env      string `json:"env"`
	Required bool   `json:"required,omitempty"`
	// File says that the value is the path of a file on the host, which is
	// mounted read-only at [Secret.Target].
	File bool `json:"file,omitempty"`
	// Instructions are for the error when a required one is missing.
	Instructions string `json:"-"`
	// Value is filled in by whoever starts the Spec.
	Value secret.Value `json:"-"`
}

// Target is where the file of a File secret is mounted; the container finds it
// there by the secret's variable.
func (s Secret) Target() string { return "/run/secrets/" + s.Env }

// Environ returns the variables of the container as "NAME=value", with the
// secrets that have a value filled in. It is not to be shown or kept.
func (s Spec) Environ() []string {
	env := make([]string, 0, len(s.Env)+len(s.Secrets))
	for _, v := range s.Env {
		value := v.Value
		for _, secret := range s.Secrets {
			if slices.Contains(v.Secrets, secret.Env) {
				value = strings.ReplaceAll(value, "${"+secret.Env+"}", secret.Value.Reveal())
			}
		}
		env = append(env, v.Name+"="+value)
	}
	for _, secret := range s.Secrets {
		switch {
		case !secret.Value.Set():
		case secret.File:
			env = append(env, secret.Env+"="+secret.Target())
		default:
			env = append(env, secret.Env+"="+secret.Value.Reveal())
		}
	}
	return env
}

// Binds returns the mounts of the container, the files of secrets among them.
func (s Spec) Binds() []Mount {
	mounts := slices.Clone(s.Mounts)
	for _, secret := range s.Secrets {
		if secret.File && secret.Value.Set() {
			mounts = append(mounts, Mount{Source: secret.Value.Reveal(), Target: secret.Target(), ReadOnly: true})
		}
	}
	return mounts
}

// A Mount binds a host path, or a volume of the engine, into the container.
type Mount struct {
	// Source is a host path; empty if Volume is set.
	Source string `json:"source,omitempty"`
	// Volume is the name of a volume, which is made if it is not there.
	Volume   string `json:"volume,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only"`
}

// A Tmpfs is a size-limited file system in memory, world-writable with the
// sticky bit, without set-uid programs and devices.
type Tmpfs struct {
	Target string `json:"target"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

// Limits are the final limits of a container; none is zero.
type Limits struct {
	// Memory is in bytes, and is the limit of memory and swap together.
	Memory int64 `json:"memory"`
	// NanoCPUs is in billionths of a processor.
	NanoCPUs int64 `json:"nano_cpus"`
	// CPUShares is the weight against other containers; the engine's default is 1024.
	CPUShares int64 `json:"cpu_shares"`
	PIDs      int64 `json:"pids"`
	// Shm is the size of /dev/shm in bytes.
	Shm int64 `json:"shm"`
	// Files is the limit of open files, soft and hard.
	Files int64 `json:"files"`
}

// Digest identifies what is started: the Spec without secret values. Two
// Specs of one digest offer the same tools.
func (s Spec) Digest() string { return digest(s) }

func digest(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic("sandbox: plain data that does not encode: " + err.Error())
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}
