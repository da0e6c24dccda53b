// Package image tells which image a reference stands for, be it the reference of
// an image, of a package that is installed into one, or of a container of the
// user.
//
// It joins the engine, which has images, and the store, which remembers what
// references stood for. What was resolved once stands until somebody asks for
// an update, so that what was approved is what is started; where a registry is
// not reachable the engine's own image stands, and that is said.
package image

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/install"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
)

// Options are what a [Resolver] is made of.
type Options struct {
	Store  *store.DB
	Engine *docker.Engine
	// Install is what the installation of packages needs here.
	Install policy.Install
	Logger  *slog.Logger
}

// A Resolver finds what references stand for. It is safe for concurrent use.
type Resolver struct {
	Options

	mu         sync.Mutex
	asked      bool // the engine was asked what it cannot enforce
	unenforced []string
}

const factUnenforced = "engine.unenforced"

// Open returns a Resolver that knows what the engine said last.
func Open(ctx context.Context, o Options) (*Resolver, error) {
	r := &Resolver{Options: o}
	return r, r.Store.Fact(ctx, factUnenforced, &r.unenforced)
}

// Unenforced returns what the engine said last that it cannot enforce.
func (r *Resolver) Unenforced() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unenforced
}

// Known implements [plan.Images].
func (r *Resolver) Known(ctx context.Context, ref string) (sandbox.Image, bool, error) {
	image, ok, err := r.Store.Image(ctx, ref)
	if p, installed := plan.ParsePackage(ref); installed {
		image.Ref = p.String()
	}
	return image.Image, ok, err
}

// Ensure implements [plan.Images].
func (r *Resolver) Ensure(ctx context.Context, ref string, progress func(plan.Progress)) (sandbox.Image, error) {
	if err := r.ask(ctx); err != nil {
		return sandbox.Image{}, err
	}
	if name, ok := plan.ParseContainer(ref); ok {
		return r.inside(ctx, ref, name)
	}
	known, ok, err := r.Known(ctx, ref)
	if err != nil {
		return sandbox.Image{}, err
	}
	if p, installed := plan.ParsePackage(ref); installed {
		return r.keep(ctx, ref, known, r.installer(p, r.Engine.Install), progress)
	}
	if !ok || known.Pin.Kind != sandbox.RepoDigest {
		return r.keep(ctx, ref, known, r.Engine.Resolve, progress)
	}
	exact, err := byDigest(known)
	if err != nil {
		return sandbox.Image{}, err
	}
	if _, err := r.Engine.Resolve(ctx, exact, adapt(progress)); err != nil {
		return sandbox.Image{}, err
	}
	return known, nil
}

// Update resolves a reference anew, asking its registry, and remembers what it
// stands for now. Without a registry the engine's own image stands.
func (r *Resolver) Update(ctx context.Context, ref string, progress func(plan.Progress)) (before, after sandbox.Image, err error) {
	if err := r.ask(ctx); err != nil {
		return before, after, err
	}
	if before, _, err = r.Known(ctx, ref); err != nil {
		return before, after, err
	}
	if name, ok := plan.ParseContainer(ref); ok {
		after, err = r.inside(ctx, ref, name)
		return before, after, err
	}
	if p, installed := plan.ParsePackage(ref); installed {
		after, err = r.keep(ctx, ref, before, r.installer(p, r.Engine.Renew), progress)
		return before, after, err
	}
	latest := r.Engine.Latest
	if before.Pin.Kind != sandbox.RepoDigest {
		latest = r.latestOrLocal
	}
	after, err = r.keep(ctx, ref, before, latest, progress)
	return before, after, err
}

// latestOrLocal lets an image that was built here stand for itself where no
// registry has it.
func (r *Resolver) latestOrLocal(ctx context.Context, ref string, progress func(pull.Progress)) (pull.Resolved, error) {
	latest, err := r.Engine.Latest(ctx, ref, progress)
	if !errors.Is(err, pull.ErrNotFound) && !errors.Is(err, pull.ErrUnauthorized) {
		return latest, err
	}
	local, missing := r.Engine.Resolve(ctx, ref, progress)
	if missing != nil || local.Pin.Kind != sandbox.LocalID {
		return pull.Resolved{}, err
	}
	return local, nil
}

// inside looks what a container of the user is of. It may be another one each
// time.
func (r *Resolver) inside(ctx context.Context, ref, name string) (sandbox.Image, error) {
	image, err := r.Engine.Inside(ctx, name)
	if err != nil {
		return sandbox.Image{}, err
	}
	image.Ref = ref
	return image, r.Store.PutImage(ctx, store.ResolvedImage{Image: image, Resolved: time.Now()})
}

// installer finds the image of a package by installing it.
func (r *Resolver) installer(p plan.Package, by func(context.Context, install.Package, func(pull.Progress)) (pull.Resolved, error)) resolve {
	ecosystem := install.NPM
	if p.Program.Runtime == catalog.UVX {
		ecosystem = install.PyPI
	}
	env := make([]string, 0, len(r.Install.Env))
	for name, value := range r.Install.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return func(ctx context.Context, _ string, progress func(pull.Progress)) (pull.Resolved, error) {
		return by(ctx, install.Package{
			Ecosystem: ecosystem, Name: p.Program.Package, Version: p.Program.Version, With: p.Program.With,
			Command: p.Program.Binary, Module: p.Program.Module, Index: p.Program.Index, Runtime: p.Runtime,
			Env: env, Certificates: r.Install.Certificates,
		}, progress)
	}
}

// resolve finds what a reference stands for now.
type resolve func(ctx context.Context, ref string, progress func(pull.Progress)) (pull.Resolved, error)

func (r *Resolver) keep(ctx context.Context, ref string, known sandbox.Image, find resolve, progress func(plan.Progress)) (sandbox.Image, error) {
	found, err := find(ctx, ref, adapt(progress))
	if err != nil {
		return sandbox.Image{}, err
	}
	if found.Offline != nil {
		r.Logger.WarnContext(ctx, "registry is not reachable, using the local image", "image", ref, "err", found.Offline)
	}
	if found.Pin == known.Pin {
		return known, nil
	}
	image := found.Image
	image.Ref = ref
	if err := r.Store.PutImage(ctx, store.ResolvedImage{Image: image, Resolved: time.Now()}); err != nil {
		return sandbox.Image{}, err
	}
	kept, _, err := r.Known(ctx, ref)
	return kept, err
}

// ask learns once in a process what the engine cannot enforce.
func (r *Resolver) ask(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked {
		return nil
	}
	info, err := r.Engine.Info(ctx)
	if err != nil {
		return err
	}
	r.asked = true
	if slices.Equal(info.Unenforced, r.unenforced) {
		return nil
	}
	r.unenforced = info.Unenforced
	return r.Store.SetFact(ctx, factUnenforced, info.Unenforced)
}

// byDigest returns the reference of exactly the image that was pinned.
func byDigest(image sandbox.Image) (string, error) {
	named, err := reference.ParseNormalizedNamed(image.Ref)
	if err != nil {
		return "", err
	}
	return reference.TrimNamed(named).Name() + "@" + image.Pin.Digest, nil
}

func adapt(progress func(plan.Progress)) func(pull.Progress) {
	if progress == nil {
		return nil
	}
	return func(p pull.Progress) {
		progress(plan.Progress{Status: p.Status, Done: p.Done, Total: p.Total})
	}
}
