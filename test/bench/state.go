package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A state is a state folder whose servers are approved and active, and whose
// tools are kept, as if each had run before.
type state struct {
	dir     string
	catalog string
	// id is on the containers of its gateways.
	id string
	// tools is how many tools of servers its gateways list.
	tools int
	// token is for its gateways over HTTP; empty before the first of them.
	token string
}

// An image is what a real container of an image said, and how it was created.
type image struct {
	template template
	info     upstream.Info
	offer    upstream.Offer
}

// makeState fills a new state folder. It does what a gateway does that runs
// with the approval mode "all", but starts one server of each image only: what
// that one offers is kept for all of the image.
func (w *world) makeState(ctx context.Context, name string, entries []entry) (_ *state, err error) {
	dir := filepath.Join(w.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := writeCatalog(dir, entries)
	if err != nil {
		return nil, err
	}
	s := &state{dir: filepath.Join(dir, "state"), catalog: file}
	if err := os.WriteFile(s.config(), nil, 0o600); err != nil {
		return nil, err
	}
	d, err := daemon.Open(ctx, daemon.Options{
		Inputs: setup.Inputs{
			Config: policy.Config{Catalogs: []string{file}, Approval: policy.Approval{Mode: approval.ModeAll}},
			Home:   w.dir,
			Dir:    w.dir,
			Env:    os.LookupEnv,
		},
		State:   s.dir,
		Engine:  reach.Options{Host: os.Getenv("DOCKER_HOST"), Context: os.Getenv("DOCKER_CONTEXT"), ConfigDir: os.Getenv("DOCKER_CONFIG")},
		Version: "bench",
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s.id = d.Store.StateID()
	for _, e := range entries {
		count, err := w.approve(ctx, d, e)
		if err != nil {
			return nil, fmt.Errorf("approve %s: %w", e.name, err)
		}
		s.tools += count
	}
	return s, nil
}

// approve makes a server approved and active, with its tools, and returns how
// many it has.
func (w *world) approve(ctx context.Context, d *daemon.Daemon, e entry) (int, error) {
	made, err := d.Planner.Prepare(ctx, principal.Local, e.name, nil)
	if err != nil {
		return 0, err
	}
	real, err := w.look(ctx, d, made)
	if err != nil {
		return 0, err
	}
	offer := real.offer
	if e.tools > 0 {
		if offer.Tools, err = wideTools(e.name, e.tools); err != nil {
			return 0, err
		}
	}
	question := approval.Request{
		Server: e.name, Grant: made.Grant, GrantDigest: made.GrantDigest, Principal: principal.Local,
		Details: approval.Details{Title: made.Entry.Title, Description: made.Entry.Description, Origin: made.Entry.Origin},
	}
	if _, err := d.Book.Ask(ctx, question); err != nil {
		return 0, err
	}
	if _, err := d.Book.Pin(ctx, question, offer.Tools); err != nil {
		return 0, err
	}
	if err := w.keep(ctx, d, made, real.info, offer); err != nil {
		return 0, err
	}
	return len(offer.Tools), d.Active.Activate(ctx, principal.Local, e.name, nil)
}

// keep keeps an offer where the gateway looks for it.
func (w *world) keep(ctx context.Context, d *daemon.Daemon, made plan.Plan, info upstream.Info, offer upstream.Offer) error {
	spoken := fleet.Spoken(info, "")
	if err := d.Caller.Offers.PutEra(ctx, made.Spec.Program(), spoken); err != nil {
		return err
	}
	instructions, err := json.Marshal(info.Instructions)
	if err != nil {
		return err
	}
	_, err = d.Caller.Offers.Put(ctx, call.OfferKey(made, spoken), inventory.Offer{
		Tools:   inventory.NewTools(offer.Tools),
		Prompts: offer.Prompts, Resources: offer.Resources, Templates: offer.Templates,
		Capabilities: info.Capabilities, Info: info.Server, Instructions: instructions,
		Taken: time.Now(),
	})
	if err != nil {
		return err
	}
	found, ok, err := d.Caller.Offer(ctx, made)
	if err == nil && (!ok || len(found.Tools) != len(offer.Tools)) {
		err = errors.New("the gateway keeps offers under another key by now")
	}
	return err
}

// look starts a server's container the first time its image is asked for, and
// returns what was seen.
func (w *world) look(ctx context.Context, d *daemon.Daemon, made plan.Plan) (_ image, err error) {
	ref := made.Entry.Image
	if known, ok := w.images[ref]; ok {
		return known, nil
	}
	process, err := d.Engine.Start(ctx, made.Spec)
	if err != nil {
		return image{}, err
	}
	defer func() { err = errors.Join(err, process.Close()) }()
	created, err := w.engine.ContainerInspect(ctx, process.ID(), client.ContainerInspectOptions{})
	if err != nil {
		return image{}, err
	}
	seen := image{template: template{config: *created.Container.Config, host: *created.Container.HostConfig}}
	// The engine has set a name of its own there.
	seen.template.config.Hostname = ""
	session, err := upstream.Connect(ctx, process, upstream.Options{Client: upstream.Implementation{Name: "bench", Version: "1"}})
	if err != nil {
		return image{}, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	seen.info = session.Info()
	if seen.offer, err = session.Offer(ctx); err != nil {
		return image{}, err
	}
	w.images[ref] = seen
	return seen, nil
}
