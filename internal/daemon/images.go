package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
)

// Images joins the engine, which has images, and the store, which remembers
// what references stood for.
type Images struct {
	Store   *store.DB
	Engine  *docker.Engine
	Install policy.Install
	Logger  *slog.Logger

	mu         sync.Mutex
	asked      bool // the engine was asked what it cannot enforce
	unenforced []string
}

const factUnenforced = "engine.unenforced"

func (i *Images) load(ctx context.Context) error {
	return i.Store.Fact(ctx, factUnenforced, &i.unenforced)
}

// Unenforced returns what the engine said last that it cannot enforce.
func (i *Images) Unenforced() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.unenforced
}

// Known implements [plan.Images].
func (i *Images) Known(ctx context.Context, ref string) (sandbox.Image, bool, error) {
	image, ok, err := i.Store.Image(ctx, ref)
	if p, installed := plan.ParsePackage(ref); installed {
		image.Ref = p.String()
	}
	return image.Image, ok, err
}

// Ensure implements [plan.Images].
func (i *Images) Ensure(ctx context.Context, ref string, progress func(plan.Progress)) (sandbox.Image, error) {
	if err := i.ask(ctx); err != nil {
		return sandbox.Image{}, err
	}
	if name, ok := plan.ParseContainer(ref); ok {
		return i.inside(ctx, ref, name)
	}
	known, ok, err := i.Known(ctx, ref)
	if err != nil {
		return sandbox.Image{}, err
	}
	if p, installed := plan.ParsePackage(ref); installed {
		return i.keep(ctx, ref, known, i.installer(p, i.Engine.Install), progress)
	}
	if !ok || known.Pin.Kind != sandbox.RepoDigest {
		return i.keep(ctx, ref, known, i.Engine.Resolve, progress)
	}
	exact, err := byDigest(known)
	if err != nil {
		return sandbox.Image{}, err
	}
	if _, err := i.Engine.Resolve(ctx, exact, adapt(progress)); err != nil {
		return sandbox.Image{}, err
	}
	return known, nil
}

// relay returns the image of the relay, and makes it present.
func (d *Daemon) relay(ctx context.Context) (sandbox.Image, error) {
	return d.Images.Ensure(ctx, cmp.Or(d.Config.Relay, policy.DefaultRelay), nil)
}

// Update resolves a reference anew, asking its registry, and remembers what it
// stands for now. Without a registry the engine's own image stands.
func (i *Images) Update(ctx context.Context, ref string, progress func(plan.Progress)) (before, after sandbox.Image, err error) {
	if err := i.ask(ctx); err != nil {
		return before, after, err
	}
	if before, _, err = i.Known(ctx, ref); err != nil {
		return before, after, err
	}
	if name, ok := plan.ParseContainer(ref); ok {
		after, err = i.inside(ctx, ref, name)
		return before, after, err
	}
	if p, installed := plan.ParsePackage(ref); installed {
		after, err = i.keep(ctx, ref, before, i.installer(p, i.Engine.Renew), progress)
		return before, after, err
	}
	latest := i.Engine.Latest
	if before.Pin.Kind != sandbox.RepoDigest {
		latest = i.latestOrLocal
	}
	after, err = i.keep(ctx, ref, before, latest, progress)
	return before, after, err
}

// latestOrLocal lets an image that was built here stand for itself where no
// registry has it.
func (i *Images) latestOrLocal(ctx context.Context, ref string, progress func(docker.PullProgress)) (docker.Resolved, error) {
	latest, err := i.Engine.Latest(ctx, ref, progress)
	if !errors.Is(err, docker.ErrImageNotFound) && !errors.Is(err, docker.ErrUnauthorized) {
		return latest, err
	}
	local, missing := i.Engine.Resolve(ctx, ref, progress)
	if missing != nil || local.Pin.Kind != sandbox.LocalID {
		return docker.Resolved{}, err
	}
	return local, nil
}

// inside looks what a container of the user is of. It may be another one each
// time.
func (i *Images) inside(ctx context.Context, ref, name string) (sandbox.Image, error) {
	image, err := i.Engine.Inside(ctx, name)
	if err != nil {
		return sandbox.Image{}, err
	}
	image.Ref = ref
	return image, i.Store.PutImage(ctx, store.ResolvedImage{Image: image, Resolved: time.Now()})
}

// installer finds the image of a package by installing it.
func (i *Images) installer(p plan.Package, install func(context.Context, docker.Package, func(docker.PullProgress)) (docker.Resolved, error)) resolver {
	ecosystem := docker.NPM
	if p.Program.Runtime == catalog.UVX {
		ecosystem = docker.PyPI
	}
	env := make([]string, 0, len(i.Install.Env))
	for name, value := range i.Install.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return func(ctx context.Context, _ string, progress func(docker.PullProgress)) (docker.Resolved, error) {
		return install(ctx, docker.Package{
			Ecosystem: ecosystem, Name: p.Program.Package, Version: p.Program.Version, With: p.Program.With,
			Command: p.Program.Binary, Module: p.Program.Module, Runtime: p.Runtime,
			Env: env, Certificates: i.Install.Certificates,
		}, progress)
	}
}

type resolver func(ctx context.Context, ref string, progress func(docker.PullProgress)) (docker.Resolved, error)

func (i *Images) keep(ctx context.Context, ref string, known sandbox.Image, resolve resolver, progress func(plan.Progress)) (sandbox.Image, error) {
	found, err := resolve(ctx, ref, adapt(progress))
	if err != nil {
		return sandbox.Image{}, err
	}
	if found.Offline != nil {
		i.Logger.WarnContext(ctx, "registry is not reachable, using the local image", "image", ref, "err", found.Offline)
	}
	if found.Pin == known.Pin {
		return known, nil
	}
	image := found.Image
	image.Ref = ref
	if err := i.Store.PutImage(ctx, store.ResolvedImage{Image: image, Resolved: time.Now()}); err != nil {
		return sandbox.Image{}, err
	}
	kept, _, err := i.Known(ctx, ref)
	return kept, err
}

// ask learns once in a process what the engine cannot enforce.
func (i *Images) ask(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked {
		return nil
	}
	info, err := i.Engine.Info(ctx)
	if err != nil {
		return err
	}
	i.asked = true
	if slices.Equal(info.Unenforced, i.unenforced) {
		return nil
	}
	i.unenforced = info.Unenforced
	return i.Store.SetFact(ctx, factUnenforced, info.Unenforced)
}

// byDigest returns the reference of exactly the image that was pinned.
func byDigest(image sandbox.Image) (string, error) {
	named, err := reference.ParseNormalizedNamed(image.Ref)
	if err != nil {
		return "", err
	}
	return reference.TrimNamed(named).Name() + "@" + image.Pin.Digest, nil
}

func adapt(progress func(plan.Progress)) func(docker.PullProgress) {
	if progress == nil {
		return nil
	}
	return func(p docker.PullProgress) {
		progress(plan.Progress{Status: p.Status, Done: p.Done, Total: p.Total})
	}
}
