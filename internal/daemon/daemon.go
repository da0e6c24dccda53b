// Package daemon puts the parts together: it opens the state folder, wires
// planner, approvals, fleet and gateway, and serves clients with them.
//
// It decides in which order the parts start and stop, and when what holds is
// worked out anew: a mistake in any file changes nothing, and calls under way go
// on as they began. It refuses to start without the audit record, and to let
// everybody in where other machines may reach it. Whatever it has started has
// ended when Close returns.
//
// The command line uses the same parts, without serving anybody.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/image"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/remote"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/host"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/setup"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/toolbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// Options say what a Daemon is made of.
type Options struct {
	setup.Inputs
	// State is the state folder.
	State string
	// ConfigFile is where the configuration would be, whether it is there or
	// not. Load reads it again; nil is that it does not change.
	ConfigFile string
	Load       func() (policy.Config, error)
	// Engine says which engine to use.
	Engine reach.Options
	// Outside is the host, if the gateway runs in a container; else nil.
	Outside *outside.Host
	// Phrase returns a text for a model or a person with the commands as they
	// are typed here; nil leaves it as it is.
	Phrase  func(text string) string
	Version string
	// Keychain keeps the key of what is kept sealed; nil is a file.
	Keychain login.Keychain
	Logger   *slog.Logger
}

// A Daemon is all the parts of a gateway.
type Daemon struct {
	Options
	Store   *store.DB
	Book    *approval.Book
	Audit   *audit.Journal
	Engine  *docker.Engine
	Images  *image.Resolver
	Active  *Activations
	Planner *plan.Planner
	Fleet   *fleet.Fleet
	Caller  *call.Caller
	Gateway *gateway.Gateway
	// Desk answers the gateway's own tools, and the commands that do the same.
	Desk *meta.Desk

	// now is what the configuration comes to; only a reload changes it. What
	// cannot be reloaded is as it was when the Daemon was started.
	now       atomic.Pointer[setup.Setup]
	started   *setup.Setup
	reloading sync.Mutex
	parsed    setup.Parsed
	closers   []func() error
}

// noState stands in for the id of a state folder that there is none of.
const noState = "none"

// EngineOptions are those of the engine for the state folder with an id, which
// is empty if it could not be opened.
func (o Options) EngineOptions(stateID string) owner.Options {
	return owner.Options{Options: o.Engine, State: cmp.Or(stateID, noState), Dir: o.State, Logger: o.Logger}
}

// EngineAddress returns the address of the engine that a gateway with these
// options uses. It does not connect.
func EngineAddress(ctx context.Context, o Options) (string, error) {
	engine, err := docker.Connect(ctx, o.EngineOptions(""))
	if err != nil {
		return "", err
	}
	address := engine.Host()
	return address, engine.Close() //nolint:contextcheck // it ends with its own time
}

// stat returns how paths of the host are looked at.
func (o Options) stat() func(path string) (sandbox.HostPath, error) {
	if o.Outside == nil {
		return host.Stat
	}
	return func(path string) (sandbox.HostPath, error) { return host.StatOutside(*o.Outside, path) }
}

// AuditDir is the folder of the audit record in a state folder.
func AuditDir(state string) string { return filepath.Join(state, "audit") }

// Open makes all parts and starts none of them. Close the Daemon when done.
func Open(ctx context.Context, o Options) (_ *Daemon, err error) {
	d := &Daemon{Options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.started, err = setup.Read(ctx, o.Inputs, &d.parsed); err != nil {
		return nil, err
	}
	d.started.Log(ctx, o.Logger)
	d.now.Store(d.started)
	if d.Store, err = store.Open(ctx, o.State); err != nil {
		return nil, err
	}
	d.closers = append(d.closers, d.Store.Close)
	if err := d.openRecord(ctx); err != nil {
		return nil, err
	}
	if err := d.openEngine(ctx); err != nil {
		return nil, err
	}
	d.wire()
	return d, d.openGateway()
}

// Now is what the configuration comes to now.
func (d *Daemon) Now() *setup.Setup { return d.now.Load() }

// Catalog is what all catalogs and sources together offer now.
func (d *Daemon) Catalog() *catalog.Catalog { return d.Now().Catalog }

// openRecord opens the approvals, and prepares the audit record.
func (d *Daemon) openRecord(ctx context.Context) error {
	d.Audit = &audit.Journal{Dir: AuditDir(d.State)}
	d.closers = append(d.closers, d.Audit.Close)
	var err error
	d.Book, err = approval.Open(ctx, d.Store, approval.Options{
		Mode: d.Config.Approval.Mode, Record: d.recordDecision, Logger: d.Logger,
	})
	return err
}

func (d *Daemon) openEngine(ctx context.Context) error {
	engine, err := docker.Connect(ctx, d.EngineOptions(d.Store.StateID()))
	if err != nil {
		return err
	}
	d.Engine = engine
	d.closers = append(d.closers, engine.Close)
	d.Images, err = image.Open(ctx, image.Options{Store: d.Store, Engine: engine, Install: d.Config.Install, Logger: d.Logger})
	return err
}

func (d *Daemon) wire() {
	d.Active = &Activations{Store: d.Store, Servers: d.Servers}
	d.Planner = &plan.Planner{
		Catalog:  d.Catalog,
		Settings: d.Active,
		Images:   d.Images,
		Host:     sandbox.Host{Home: d.Home, RemoteEngine: !d.Engine.Local(), Stat: d.stat()},
		Unenforced: func() []string {
			return d.Images.Unenforced()
		},
		Bounds: func(who principal.Principal) plan.Bounds { return d.Now().Bounds(who) },
	}
	var kept inventory.Store = d.Store
	if d.started.Cache().Off() {
		kept = nothing{}
	}
	offers := inventory.New(kept, d.Store)
	d.Fleet = fleet.New(fleet.Options{
		Runner: &toolbox.Runner{
			Containers: &remote.Runner{Containers: d.Engine, Relay: d.relay, Logins: d.book, Logger: d.Logger},
			Version:    d.Version,
		},
		Client: upstream.Implementation{Name: "dockgate", Version: d.Version},
		Eras:   offers,
		Unlock: d.unlock,
		Record: d.recordEvent,
		Heard: func(n fleet.Notice) {
			if d.Gateway != nil { // else nobody is served
				d.Gateway.Heard(n)
			}
		},
		Quota:  d.started.Quotas.Fleet(),
		Logger: d.Logger,

		MaxEntries: d.Config.Lists.ToolsPerServer,
	})
	d.closers = append(d.closers, d.Fleet.Close)
	wait := time.Duration(d.Config.Approval.Wait)
	if wait == 0 {
		wait = consent.DefaultWait
	}
	d.Caller = call.New(call.Options{
		Planner: d.Planner, Book: d.Book, Record: d.Audit, Fleet: d.Fleet, Offers: offers,
		ApprovalWait: wait, Logger: d.Logger,
		Patience: time.Duration(d.Config.Patience),
		Rules:    func(who principal.Principal) rules.Rules { return d.Now().Of(who).Rules },
		Permit:   func(who principal.Principal, server string) error { return d.Now().Permit(who, server) },
		Approver: func(who principal.Principal) bool { return d.Now().MayApprove(who) },
		Bound: func(who principal.Principal) (fleet.Quota, time.Duration) {
			quotas := d.Now().Of(who).Quotas
			return quotas.Fleet(), time.Duration(quotas.MaxCall.Max)
		},
	})
	d.closers = append(d.closers, d.Caller.Close)
}

// relay returns the image of the relay, and makes it present.
func (d *Daemon) relay(ctx context.Context) (sandbox.Image, error) {
	return d.Images.Ensure(ctx, cmp.Or(d.Config.Relay, policy.DefaultRelay), nil)
}

// nothing is a store of offers that keeps none.
type nothing struct{}

// Offers implements [inventory.Store].
func (nothing) Offers(context.Context, []inventory.Key) (map[inventory.Key]inventory.Offer, error) {
	return nil, nil
}

// PutOffer implements [inventory.Store].
func (nothing) PutOffer(context.Context, inventory.Key, inventory.Offer) error { return nil }

func (d *Daemon) openGateway() error {
	prefix := d.Config.Prefix
	if prefix == "" && d.single() {
		prefix = menu.PrefixNone
	}
	d.Desk = &meta.Desk{
		Catalog:     d.Catalog,
		Configured:  func() []string { return d.Now().Configured },
		Activations: d.Active,
		Planner:     d.Planner,
		Caller:      d.Caller,
		Fleet:       d.Fleet,
		Find:        func(query string, limit int) []string { return d.Now().Find(query, limit) },
		Anticipate:  d.started.Anticipates(),
		Changed:     func(ctx context.Context) { d.Gateway.Changed(ctx) },
		Names:       func(ref tool.Ref) string { return d.Gateway.Name(ref) },
		Phrase:      d.Phrase,
		Logger:      d.Logger,
	}
	var err error
	d.Gateway, err = gateway.New(gateway.Options{
		Version:  d.Version,
		Caller:   d.Caller,
		Fleet:    d.Fleet,
		Desk:     d.Desk,
		Expose:   d.started.Exposed(),
		Exposed:  func(who principal.Principal) []meta.Group { return d.Now().ExposedTo(who) },
		Prefix:   prefix,
		Bounds:   gateway.Bounds{Servers: d.Config.Lists.Servers, Tools: d.Config.Lists.Tools},
		Fresh:    time.Duration(d.Config.Lists.TTL),
		Approved: d.approved,
		Phrase:   d.Phrase,
		Logger:   d.Logger,
	})
	return err
}

// single reports that the gateway has one server and cannot get more, so that
// names need no prefix.
func (d *Daemon) single() bool {
	groups := slices.Clone(d.started.Exposed())
	for _, role := range d.Config.Admission.Roles.Each {
		for _, group := range role.Expose {
			groups = append(groups, meta.Group(group))
		}
	}
	return len(d.Servers) == 1 && !slices.Contains(groups, meta.Dynamic) && !slices.Contains(groups, gateway.Direct)
}

// approved returns the servers of the catalog that have an approval, sorted.
func (d *Daemon) approved() []string {
	var names []string
	for _, a := range d.Book.Approvals() {
		if _, err := d.Catalog().Server(a.Server); err == nil {
			names = append(names, a.Server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unlock fills in the secrets of a Spec, and of its helpers.
func (d *Daemon) unlock(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	spec.Helpers = slices.Clone(spec.Helpers)
	for i, h := range spec.Helpers {
		unlocked, err := d.unlock(ctx, h.Spec)
		if err != nil {
			return sandbox.Spec{}, err
		}
		spec.Helpers[i].Spec = unlocked
	}
	needs := make([]secret.Need, len(spec.Secrets))
	for i, s := range spec.Secrets {
		needs[i] = secret.Need{Ref: secret.Ref{Name: s.Name, Env: s.From}, Required: s.Required, Instructions: s.Instructions}
	}
	sources := secret.Sources{Env: d.Env, Dir: d.Dir}
	if d.Several {
		sources.Dir = ""
	}
	found, err := sources.Resolve(ctx, needs)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec.Secrets = slices.Clone(spec.Secrets)
	for i := range spec.Secrets {
		for _, f := range found {
			if f.Name != spec.Secrets[i].Name {
				continue
			}
			spec.Secrets[i].Value = f.Value
			if spec.Secrets[i].File {
				path, err := d.Planner.Host.SecretFile(spec.Server, spec.Secrets[i], f.Value.Reveal())
				if err != nil {
					return sandbox.Spec{}, err
				}
				spec.Secrets[i].Value = secret.NewValue(path)
			}
		}
	}
	return spec, nil
}

// Close stops the parts, in the reverse order of their making.
func (d *Daemon) Close() error {
	var failures []error
	for _, closer := range slices.Backward(d.closers) {
		failures = append(failures, closer())
	}
	d.closers = nil
	return errors.Join(failures...)
}
