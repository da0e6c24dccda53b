package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"github.com/opencontainers/go-digest"
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
// be nil. The errors are [*InstallError], [*ImageError] and [*EngineError].
func (e *Engine) Install(ctx context.Context, p Package, progress func(PullProgress)) (Resolved, error) {
	runtime, err := e.Resolve(ctx, p.Runtime, progress)
	if err != nil {
		return Resolved{}, err
	}
	ref := p.reference(runtime.Pin.Digest)
	found, err := e.Resolve(ctx, e.localID(ctx, ref), nil)
	if err == nil {
		return found, nil
	}
	var missing *ImageError
	if !errors.As(err, &missing) {
		return Resolved{}, err
	}
	if progress != nil {
		progress(PullProgress{Ref: p.String(), Status: "installing " + p.String()})
	}
	if err := e.install(ctx, p, runtime, ref); err != nil {
		return Resolved{}, &InstallError{Package: p.String(), Runtime: p.Runtime, Err: e.said(err)}
	}
	return e.Resolve(ctx, e.localID(ctx, ref), nil)
}

// Renew installs a package anew, if its version may have moved on. It returns
// the image that was there if the version is the same.
func (e *Engine) Renew(ctx context.Context, p Package, progress func(PullProgress)) (Resolved, error) {
	before, err := e.Install(ctx, p, progress)
	if err != nil || p.Version != "" {
		return before, err
	}
	runtime, err := e.Resolve(ctx, p.Runtime, nil)
	if err != nil {
		return Resolved{}, err
	}
	ref := p.reference(runtime.Pin.Digest)
	was, err := e.client.ImageInspect(ctx, before.Pin.Digest)
	if err != nil {
		return Resolved{}, e.imageError(ref, err)
	}
	if err := e.install(ctx, p, runtime, ref); err != nil {
		return Resolved{}, &InstallError{Package: p.String(), Runtime: p.Runtime, Err: e.said(err)}
	}
	is, err := e.client.ImageInspect(ctx, ref)
	if err != nil {
		return Resolved{}, e.imageError(ref, err)
	}
	if was.Config == nil || is.Config == nil || was.Config.Labels[labelPackage] != is.Config.Labels[labelPackage] {
		return e.Resolve(ctx, is.ID, nil)
	}
	// The same again: the one that was approved stays.
	if _, err := e.client.ImageTag(ctx, client.ImageTagOptions{Source: was.ID, Target: ref}); err != nil {
		return Resolved{}, e.imageError(ref, err)
	}
	return before, e.Uninstall(ctx, is.ID)
}

// localID returns the id of an image of this engine, which a registry is never
// asked for, or a reference that is refused.
func (e *Engine) localID(ctx context.Context, ref string) string {
	found, err := e.client.ImageInspect(ctx, ref)
	if err != nil {
		return "sha256:" + strings.Repeat("0", 64)
	}
	return found.ID
}

func (e *Engine) install(ctx context.Context, p Package, runtime Resolved, ref string) (err error) {
	owner, end, err := e.begin()
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
	options.Config.Labels = e.labels(owner, "install "+p.Name, time.Now())
	lasting, stop := outlive(ctx)
	defer stop()
	created, err := e.client.ContainerCreate(lasting, options)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		err = errors.Join(err, e.remove(ctx, created.ID))
	}()
	if err := e.finish(ctx, created.ID); err != nil {
		return err
	}
	entrypoint, version, err := p.entry(ctx, e, created.ID)
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
	_, err = e.client.ContainerCommit(ctx, created.ID, client.ContainerCommitOptions{Reference: ref, Config: &config, Changes: noLabels(options.Config.Labels)})
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
func (p Package) installation(runtime Resolved) (client.ContainerCreateOptions, error) {
	image, err := pinned(runtime.Image)
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
		Platform: platform(runtime.Pin.Platform),
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
func (e *Engine) finish(ctx context.Context, id string) error {
	waiting := e.client.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
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
		return fmt.Errorf("the installation ended with code %d: %s", ended.StatusCode, e.lastWords(ctx, id))
	}
}

// lastWords returns the end of what a container has said.
func (e *Engine) lastWords(ctx context.Context, id string) string {
	logs, err := e.client.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
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

// entry returns how a package that was installed is run, and its version.
func (p Package) entry(ctx context.Context, e *Engine, id string) (entrypoint []string, version string, err error) {
	if p.Ecosystem == NPM {
		root := path.Join(installRoot, "node_modules", p.Name)
		text, err := e.readFile(ctx, id, path.Join(root, "package.json"))
		if err != nil {
			return nil, "", err
		}
		script, version, err := npmCommand(text, p.Name, p.Command)
		return []string{"node", path.Join(root, script)}, version, err
	}
	names, err := e.list(ctx, id, installRoot)
	if err != nil {
		return nil, "", err
	}
	name, _, _ := strings.Cut(p.Name, "[") // without what it has extra
	version = cmp.Or(pythonVersion(names, name), p.Version)
	if p.Module != "" {
		return []string{"python3", "-m", p.Module}, version, nil
	}
	var commands []string
	for _, file := range names {
		if dir, command := path.Split(file); dir == "bin/" && command != "" {
			commands = append(commands, command)
		}
	}
	command, err := choose(commands, name, p.Command)
	// By way of the interpreter: the script's first line names the one of the
	// installation.
	return []string{"python3", path.Join(installRoot, "bin", command)}, version, err
}

// npmCommand reads a package.json: which script is the command, and the version.
func npmCommand(text []byte, name, command string) (script, version string, err error) {
	var manifest struct {
		Version string          `json:"version"`
		Bin     json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", "", fmt.Errorf("package.json of %s: %w", name, err)
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	var scripts map[string]string
	if json.Unmarshal(manifest.Bin, &script) == nil {
		scripts = map[string]string{base: script}
	} else if err := json.Unmarshal(manifest.Bin, &scripts); err != nil {
		return "", "", fmt.Errorf("package %s has no command", name)
	}
	var names []string
	for name := range scripts {
		names = append(names, name)
	}
	chosen, err := choose(names, base, command)
	return path.Clean("/" + scripts[chosen])[1:], manifest.Version, err
}

// choose picks the command that was asked for, or that of the package's name,
// or the only one.
func choose(commands []string, name, wanted string) (string, error) {
	slices.Sort(commands)
	for _, want := range []string{wanted, name} {
		if want != "" && slices.Contains(commands, want) {
			return want, nil
		}
		if want == wanted && want != "" {
			return "", fmt.Errorf("package %s has no command %q, but %s", name, want, strings.Join(commands, ", "))
		}
	}
	if len(commands) == 1 {
		return commands[0], nil
	}
	if len(commands) == 0 {
		return "", fmt.Errorf("package %s has no command", name)
	}
	return "", fmt.Errorf("package %s has several commands and none of its name: %s", name, strings.Join(commands, ", "))
}

// pythonVersion finds the version of a distribution among the names in a
// folder of packages: NAME-VERSION.dist-info, with the name's separators as
// underscores (Python packaging: recording installed projects).
func pythonVersion(names []string, name string) string {
	normal := strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(name))
	for _, entry := range names {
		info, ok := strings.CutSuffix(strings.TrimSuffix(entry, "/"), ".dist-info")
		at := strings.LastIndexByte(info, '-')
		if ok && at > 0 && strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(info[:at])) == normal {
			return info[at+1:]
		}
	}
	return ""
}

// readFile returns a file of a container.
func (e *Engine) readFile(ctx context.Context, id, file string) ([]byte, error) {
	var content []byte
	err := e.walk(ctx, id, file, func(header *tar.Header, in io.Reader) (err error) {
		if header.Typeflag == tar.TypeReg && content == nil {
			content, err = io.ReadAll(io.LimitReader(in, maxManifest))
		}
		return err
	})
	if err == nil && content == nil {
		err = fmt.Errorf("%s is not a file", file)
	}
	return content, err
}

// list returns the paths in a folder of a container, relative to it; those of
// folders end with a slash.
func (e *Engine) list(ctx context.Context, id, folder string) ([]string, error) {
	var names []string
	err := e.walk(ctx, id, folder, func(header *tar.Header, _ io.Reader) error {
		if _, name, ok := strings.Cut(header.Name, "/"); ok && name != "" && strings.Count(strings.TrimSuffix(name, "/"), "/") <= 1 {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func (e *Engine) walk(ctx context.Context, id, from string, visit func(*tar.Header, io.Reader) error) error {
	copied, err := e.client.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: from})
	if cerrdefs.IsNotFound(err) {
		return fmt.Errorf("the installation has left no %s", from)
	}
	if err != nil {
		return err
	}
	defer func() { _ = copied.Content.Close() }()
	archive := tar.NewReader(copied.Content)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(header, archive); err != nil {
			return err
		}
	}
}

// An InstallError says why a package could not be installed. Nothing is left
// of it.
type InstallError struct {
	Package, Runtime string
	Err              error
}

// Error names the package and the cause.
func (e *InstallError) Error() string {
	return fmt.Sprintf("install %s in %s: %v", e.Package, e.Runtime, e.Err)
}

// Unwrap returns the cause.
func (e *InstallError) Unwrap() error { return e.Err }

// Hint says what the user can do.
func (e *InstallError) Hint() string {
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
func (e *Engine) Installed(ctx context.Context) ([]Installed, error) {
	listed, err := e.client.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", labelPackage)})
	if err != nil {
		return nil, e.said(err)
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
func (e *Engine) Uninstall(ctx context.Context, id string) error {
	_, err := e.client.ImageRemove(ctx, id, client.ImageRemoveOptions{PruneChildren: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.said(err)
}
