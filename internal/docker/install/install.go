// Package install makes an image of a package: of a program that its publisher
// offers on npm or PyPI and not as an image.
//
// It decides what an installation may do: it has the network, and runs nothing
// of the package. It refuses names that are options or more than one word, and
// packages whose command is not clear. The same package in the same runtime is
// installed once; its image runs as a user who owns nothing in it, and carries
// no label of the gateway that made it. If an installation fails nothing is
// left of it.
package install

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/opencontainers/go-digest"

	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/pull"
)

// An Ecosystem is where a package comes from.
type Ecosystem string

// The ecosystems whose packages can be installed.
const (
	NPM  Ecosystem = "npm"
	PyPI Ecosystem = "pypi"
)

// A Package is a program that is not published as an image. It is installed
// once, with network, into an image of its own; nothing of the package runs
// meanwhile.
type Package struct {
	Ecosystem Ecosystem
	// Name and Version are the registry's. An empty version is the newest at
	// the time of the installation.
	Name, Version string
	// Command is which of the package's commands is run; empty is the one of
	// its name, or its only one.
	Command string
	// With are packages, with their versions, that are installed beside it.
	With []string
	// Module, if set, is a Python module that is run in place of a command.
	Module string
	// Index is the address of the registry that it comes from; empty is the one
	// that Env names, or the usual one.
	Index string
	// Runtime is the image that it is installed and run in.
	Runtime string
	// Env are variables of the installation, "NAME=value", such as the address
	// of a registry. Those by which uvx knows an index count as pip's.
	Env []string
	// Certificates is a file of this host with certificate authorities that
	// the installation trusts; empty is the runtime's own.
	Certificates string
}

// String returns the package as its registry names it.
func (p Package) String() string {
	switch {
	case p.Version == "":
		return p.Name
	case p.Ecosystem == PyPI && strings.ContainsAny(p.Version[:1], "=<>!~"):
		return p.Name + p.Version // a range
	case p.Ecosystem == PyPI:
		return p.Name + "==" + p.Version
	default:
		return p.Name + "@" + p.Version
	}
}

const (
	// packagePrefix is the repository of images with packages. They have no registry.
	packagePrefix = "dockgate/package"
	labelPackage  = "dockgate.package"
	labelRuntime  = "dockgate.runtime"

	installRoot   = "/opt/dockgate"
	installTime   = 10 * time.Minute
	installMemory = 1 << 30
	installPIDs   = 512
	// installUser runs packages. It owns nothing in the image.
	installUser = "65532:65532"
	// maxManifest bounds what is read of a package's own description.
	maxManifest = 4 << 20
)

// Packages are the images that were made of packages on an engine. All methods
// may be called from any goroutine.
type Packages struct {
	books  *owner.Books
	images *pull.Images
}

// New returns the packages of an engine, whose runtimes are among its images.
func New(books *owner.Books, images *pull.Images) *Packages {
	return &Packages{books: books, images: images}
}

// reference names the image of a package: the same package in the same runtime
// is installed once.
func (p Package) reference(runtime string) string {
	parts := []string{string(p.Ecosystem), p.Name, p.Version, p.Command, p.Module, runtime, strings.Join(p.With, " ")}
	if p.Index != "" {
		parts = append(parts, p.Index)
	}
	return packagePrefix + ":" + digest.FromString(strings.Join(parts, "\x00")).Encoded()[:32]
}

// Install returns the image of a package. If there is none yet it is made: a
// container of the runtime installs the package, with network but without
// scripts of the package, and what it has written becomes a layer. Progress may
// be nil. The errors are [*Error], [*pull.Error] and that of an engine that
// cannot be asked.
func (i *Packages) Install(ctx context.Context, p Package, progress func(pull.Progress)) (pull.Resolved, error) {
	runtime, err := i.images.Resolve(ctx, p.Runtime, progress)
	if err != nil {
		return pull.Resolved{}, err
	}
	ref := p.reference(runtime.Pin.Digest)
	found, err := i.images.Resolve(ctx, i.localID(ctx, ref), nil)
	if err == nil {
		return found, nil
	}
	var missing *pull.Error
	if !errors.As(err, &missing) {
		return pull.Resolved{}, err
	}
	if progress != nil {
		progress(pull.Progress{Ref: p.String(), Status: "installing " + p.String()})
	}
	if err := i.install(ctx, p, runtime, ref); err != nil {
		return pull.Resolved{}, &Error{Package: p.String(), Runtime: p.Runtime, Err: i.books.Explain(err)}
	}
	return i.images.Resolve(ctx, i.localID(ctx, ref), nil)
}

// Renew installs a package anew, if its version may have moved on. It returns
// the image that was there if the version is the same.
func (i *Packages) Renew(ctx context.Context, p Package, progress func(pull.Progress)) (pull.Resolved, error) {
	before, err := i.Install(ctx, p, progress)
	if err != nil || p.Version != "" {
		return before, err
	}
	runtime, err := i.images.Resolve(ctx, p.Runtime, nil)
	if err != nil {
		return pull.Resolved{}, err
	}
	ref := p.reference(runtime.Pin.Digest)
	was, err := i.books.API.ImageInspect(ctx, before.Pin.Digest)
	if err != nil {
		return pull.Resolved{}, pull.Failed(i.books.Engine, ref, err)
	}
	if err := i.install(ctx, p, runtime, ref); err != nil {
		return pull.Resolved{}, &Error{Package: p.String(), Runtime: p.Runtime, Err: i.books.Explain(err)}
	}
	is, err := i.books.API.ImageInspect(ctx, ref)
	if err != nil {
		return pull.Resolved{}, pull.Failed(i.books.Engine, ref, err)
	}
	if was.Config == nil || is.Config == nil || was.Config.Labels[labelPackage] != is.Config.Labels[labelPackage] {
		return i.images.Resolve(ctx, is.ID, nil)
	}
	// The same again: the one that was approved stays.
	if _, err := i.books.API.ImageTag(ctx, client.ImageTagOptions{Source: was.ID, Target: ref}); err != nil {
		return pull.Resolved{}, pull.Failed(i.books.Engine, ref, err)
	}
	return before, i.Uninstall(ctx, is.ID)
}

// localID returns the id of an image of this engine, which a registry is never
// asked for, or a reference that is refused.
func (i *Packages) localID(ctx context.Context, ref string) string {
	found, err := i.books.API.ImageInspect(ctx, ref)
	if err != nil {
		return "sha256:" + strings.Repeat("0", 64)
	}
	return found.ID
}

func (i *Packages) install(ctx context.Context, p Package, runtime pull.Resolved, ref string) (err error) {
	by, end, err := i.books.Begin()
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("no end after %v", installTime))
	defer cancel()
	options, err := p.installation(runtime)
	if err != nil {
		return err
	}
	options.Name = "dockgate-install-" + strings.ToLower(rand.Text()[:10])
	options.Config.Labels = i.books.Labels(by, "install "+p.Name)
	lasting, stop := owner.Outlive(ctx)
	defer stop()
	created, err := i.books.API.ContainerCreate(lasting, options)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), owner.UndoTime)
		defer cancel()
		err = errors.Join(err, i.books.Remove(ctx, created.ID))
	}()
	if err := i.finish(ctx, created.ID); err != nil {
		return err
	}
	entrypoint, version, err := p.entry(ctx, i, created.ID)
	if err != nil {
		return err
	}
	config := container.Config{
		Entrypoint: entrypoint, User: installUser, WorkingDir: "/", Env: runtime.Config.Env,
		Labels: map[string]string{labelPackage: p.Name + "@" + version, labelRuntime: p.Runtime},
	}
	if p.Ecosystem == PyPI {
		config.Env = append(slices.Clone(config.Env), "PYTHONPATH="+installRoot, "PYTHONDONTWRITEBYTECODE=1")
	}
	_, err = i.books.API.ContainerCommit(ctx, created.ID, client.ContainerCommitOptions{Reference: ref, Config: &config, Changes: noLabels(options.Config.Labels)})
	return err
}

// noLabels takes the labels of the container out of the image: a container of
// another gateway must not inherit them.
func noLabels(labels map[string]string) []string {
	var changes []string
	for name := range labels {
		changes = append(changes, fmt.Sprintf("LABEL %s=\"\"", name))
	}
	slices.Sort(changes)
	return changes
}

// installation is the container that installs a package. Scripts of npm
// packages are not run, and Python packages must be built already, so nothing
// of the package runs.
func (p Package) installation(runtime pull.Resolved) (client.ContainerCreateOptions, error) {
	image, err := pull.Exactly(runtime.Image)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	for _, name := range append([]string{p.String()}, p.With...) {
		if strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\n") {
			return client.ContainerCreateOptions{}, fmt.Errorf("%q is not the name of a package", name)
		}
		if p.Ecosystem == PyPI && strings.Contains(name, "://") && !strings.HasSuffix(name, ".whl") {
			return client.ContainerCreateOptions{}, fmt.Errorf("%s would be built from its source, which runs it; name a published package or a wheel", name)
		}
	}
	env := []string{"HOME=/tmp", "NPM_CONFIG_CACHE=/tmp/npm", "NPM_CONFIG_UPDATE_NOTIFIER=false", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore"}
	var command []string
	switch p.Ecosystem {
	case NPM:
		command = []string{"npm", "install", "--prefix", installRoot, "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", p.String()}
	case PyPI:
		command = []string{"python3", "-m", "pip", "install", "--no-cache-dir", "--no-compile", "--only-binary", ":all:", "--target", installRoot, p.String()}
	default:
		return client.ContainerCreateOptions{}, fmt.Errorf("no packages are installed from %q", p.Ecosystem)
	}
	command = append(command, p.With...)
	yes, pids := true, int64(installPIDs)
	options := client.ContainerCreateOptions{
		Platform: pull.Platform(runtime.Pin.Platform),
		Config: &container.Config{
			Image: image, Entrypoint: command[:1], Cmd: command[1:], WorkingDir: "/", User: "0:0",
			Env: slices.Concat(env, p.settings()), Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &container.HostConfig{
			Init: &yes, NetworkMode: "bridge", IpcMode: container.IPCModePrivate,
			CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
			Tmpfs:     map[string]string{"/tmp": "rw,nosuid,nodev,size=1073741824"},
			LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}},
			Resources: container.Resources{Memory: installMemory, MemorySwap: installMemory, PidsLimit: &pids},
		},
	}
	if p.Certificates != "" {
		const at = "/etc/dockgate-certificates.pem"
		options.HostConfig.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: p.Certificates, Target: at, ReadOnly: true}}
		options.Config.Env = append(options.Config.Env, "NODE_EXTRA_CA_CERTS="+at, "PIP_CERT="+at, "SSL_CERT_FILE="+at)
	}
	return options, nil
}

// settings are the variables of the installation. The address of the package's
// own registry comes before that of the machine, and what pip reads before
// what only uvx would.
func (p Package) settings() []string {
	var settings []string
	add := func(name, value string) {
		there := func(v string) bool { return strings.EqualFold(v[:strings.IndexByte(v, '=')], name) }
		if !slices.ContainsFunc(settings, there) {
			settings = append(settings, name+"="+value)
		}
	}
	switch {
	case p.Index == "":
	case p.Ecosystem == NPM:
		add("NPM_CONFIG_REGISTRY", p.Index)
	case p.Ecosystem == PyPI:
		add("PIP_INDEX_URL", p.Index)
	}
	for _, v := range p.Env {
		name, value, _ := strings.Cut(v, "=")
		add(name, value)
	}
	if p.Ecosystem == PyPI {
		for _, same := range [][2]string{
			{"UV_DEFAULT_INDEX", "PIP_INDEX_URL"},
			{"UV_INDEX_URL", "PIP_INDEX_URL"},
			{"UV_INSECURE_HOST", "PIP_TRUSTED_HOST"},
			{"UV_INDEX", "PIP_EXTRA_INDEX_URL"},
			{"UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"},
		} {
			for _, v := range p.Env {
				if value, ok := strings.CutPrefix(v, same[0]+"="); ok {
					add(same[1], addresses(value))
				}
			}
		}
	}
	return settings
}

// addresses takes the names away that uvx lets indexes have: "name=address".
func addresses(indexes string) string {
	all := strings.Fields(indexes)
	for i, index := range all {
		if name, rest, named := strings.Cut(index, "="); named && !strings.ContainsAny(name, ":/") {
			all[i] = rest
		}
	}
	return strings.Join(all, " ")
}

// finish runs a container to its end, which must be a good one.
func (i *Packages) finish(ctx context.Context, id string) error {
	waiting := i.books.API.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := i.books.API.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return err
	}
	select {
	case err := <-waiting.Error:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case ended := <-waiting.Result:
		if ended.StatusCode == 0 {
			return nil
		}
		return fmt.Errorf("the installation ended with code %d: %s", ended.StatusCode, i.lastWords(ctx, id))
	}
}

// lastWords returns the end of what a container has said.
func (i *Packages) lastWords(ctx context.Context, id string) string {
	logs, err := i.books.API.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }()
	var said bytes.Buffer
	if _, err := stdcopy.StdCopy(&said, &said, io.LimitReader(logs, 64<<10)); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(said.String())
}

// An Error says why a package could not be installed. Nothing is left
// of it.
type Error struct {
	Package, Runtime string
	Err              error
}

// Error names the package and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("install %s in %s: %v", e.Package, e.Runtime, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *Error) Hint() string {
	return "check the package's name and version; behind a proxy of your company set install.env and install.certificates in the configuration"
}

// An Installed is the image of a package.
type Installed struct {
	// ID is the image's.
	ID string
	// Package is "NAME@VERSION".
	Package string
	// Runtime is the image that it was installed in.
	Runtime string
	// Size is in bytes, the runtime's layers included.
	Size    int64
	Created time.Time
}

// Installed returns the images of packages on this engine, newest first.
func (i *Packages) Installed(ctx context.Context) ([]Installed, error) {
	listed, err := i.books.API.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", labelPackage)})
	if err != nil {
		return nil, i.books.Explain(err)
	}
	var found []Installed
	for _, image := range listed.Items {
		found = append(found, Installed{
			ID: image.ID, Package: image.Labels[labelPackage], Runtime: image.Labels[labelRuntime],
			Size: image.Size, Created: time.Unix(image.Created, 0),
		})
	}
	slices.SortFunc(found, func(a, b Installed) int { return b.Created.Compare(a.Created) })
	return found, nil
}

// Uninstall removes the image of a package. A server that runs from it keeps
// it: the error says so.
func (i *Packages) Uninstall(ctx context.Context, id string) error {
	_, err := i.books.API.ImageRemove(ctx, id, client.ImageRemoveOptions{PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return i.books.Explain(err)
}
