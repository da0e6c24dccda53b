// Package plan decides what a server of the catalog would be, here and for
// this caller: it joins the entry, the caller's settings and the resolved
// image, and compiles them.
//
// Planning needs no engine once an image has been resolved, so lists and
// explanations come at once and offline. It starts nothing and approves nothing.
package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// A Plan is everything about one server for one caller.
type Plan struct {
	Entry catalog.Server
	Spec  sandbox.Spec
	Grant sandbox.Grant
	// Digest is the Spec's: what the server offers is kept under it.
	Digest string
	// GrantDigest is the Grant's: what was approved is kept under it.
	GrantDigest string
}

// Images finds images. Both methods may be called from several goroutines.
type Images interface {
	// Known returns what a reference was last resolved to, without an engine.
	Known(ctx context.Context, ref string) (sandbox.Image, bool, error)
	// Ensure makes the image present on the engine and remembers what it is. An
	// image that is known by its registry's digest stays that one, whatever the
	// reference stands for by now; others are resolved anew.
	Ensure(ctx context.Context, ref string, progress func(Progress)) (sandbox.Image, error)
}

// Progress is how far the pull of an image is.
type Progress struct {
	// Status is the engine's word for what it does, such as "Downloading".
	Status string
	// Done and Total are bytes; Total is 0 while it is not known.
	Done, Total int64
}

// Settings yields what a caller has set for a server; nil if nothing.
type Settings interface {
	Settings(ctx context.Context, who principal.Principal, server string) (map[string]any, error)
}

// A Planner makes plans. All fields but Bounds are required.
type Planner struct {
	// Catalog returns the catalog as it is now.
	Catalog  func() *catalog.Catalog
	Settings Settings
	Images   Images
	Host     sandbox.Host
	// Unenforced returns the engine's words for limits that it cannot enforce.
	Unenforced func() []string
	// Bounds returns what the configuration says of every server, for a caller;
	// nil is that it says nothing.
	Bounds func(who principal.Principal) Bounds

	mu   sync.Mutex
	kept map[cacheKey]kept
	// forgotten counts the calls of Forget and ForgetAll: a plan that was begun
	// before one of them is not kept.
	forgotten int
}

// A cacheKey has the caller with the role: bounds depend on it.
type cacheKey struct {
	who    principal.Principal
	server string
}

type kept struct {
	plan  Plan
	until time.Time
}

// fresh is how long a plan is used again without compiling it anew. It spares
// warm calls the work, and is short enough for changes from outside: of the
// catalog, of settings, of links on the host.
const fresh = 2 * time.Second

// maxKept is how many plans are kept before old ones are looked for.
const maxKept = 1024

// An UnresolvedError is a plan that needs an image nobody has resolved yet.
type UnresolvedError struct{ Server, Image string }

// Error names the image.
func (e *UnresolvedError) Error() string {
	return fmt.Sprintf("server %q: image %s has not been resolved yet", e.Server, e.Image)
}

// Hint says how it is resolved.
func (e *UnresolvedError) Hint() string {
	return "resolve it, and pull it if it is not on the engine, with: dockgate update " + e.Server
}

// An UnsupportedError is an entry that cannot run.
type UnsupportedError struct{ Server, Reason string }

// Error gives the entry's reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("server %q cannot be run: %s", e.Server, e.Reason)
}

// Plan returns the plan of a server from what is known, without an engine. It
// returns a [*catalog.UnknownServerError], an [*UnsupportedError], an
// [*UnresolvedError] or the compiler's error.
func (p *Planner) Plan(ctx context.Context, who principal.Principal, server string) (Plan, error) {
	found, ok, forgotten := p.recent(who, server)
	if ok {
		return found, nil
	}
	entry, err := p.entry(who, server)
	if err != nil {
		return Plan{}, err
	}
	images := make(map[string]sandbox.Image)
	for _, source := range p.Sources(entry) {
		image, ok, err := p.Images.Known(ctx, source)
		if err != nil {
			return Plan{}, err
		}
		if !ok {
			return Plan{}, &UnresolvedError{Server: server, Image: described(source)}
		}
		images[source] = image
	}
	return p.compile(ctx, who, entry, images, forgotten)
}

// Prepare returns the plan of a server whose images are present on the
// engine, pulling them if need be. Progress may be nil.
func (p *Planner) Prepare(ctx context.Context, who principal.Principal, server string, progress func(Progress)) (Plan, error) {
	_, _, forgotten := p.recent(who, server)
	entry, err := p.entry(who, server)
	if err != nil {
		return Plan{}, err
	}
	// The settings are checked before megabytes are pulled for nothing.
	settings, err := p.Settings.Settings(ctx, who, server)
	if err != nil {
		return Plan{}, err
	}
	if err := entry.CheckSettings(settings); err != nil {
		return Plan{}, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	images := make(map[string]sandbox.Image)
	for _, source := range p.Sources(entry) {
		if images[source], err = p.Images.Ensure(ctx, source, progress); err != nil {
			return Plan{}, fmt.Errorf("server %q: %w", server, err)
		}
	}
	return p.compile(ctx, who, entry, images, forgotten)
}

func (p *Planner) entry(who principal.Principal, server string) (catalog.Server, error) {
	entry, err := p.Catalog().Server(server)
	if err == nil {
		err = Supported(entry)
	}
	if err != nil {
		return catalog.Server{}, err
	}
	if p.Bounds == nil {
		return Bounds{}.apply(entry)
	}
	return p.Bounds(who).apply(entry)
}

// Supported returns nil if an entry can be run, else an [*UnsupportedError].
func Supported(entry catalog.Server) error {
	reason := ""
	switch entry.Runs() {
	case catalog.KindUnsupported:
		reason = entry.Unsupported
	case catalog.KindContainer, catalog.KindRemote, catalog.KindProgram, catalog.KindExec:
	case catalog.KindTools:
		reason = refused(entry)
		if len(entry.Helpers) > 0 {
			reason = "containers for each call cannot have helpers"
		}
	}
	if reason == "" {
		return nil
	}
	return &UnsupportedError{Server: entry.Name, Reason: reason}
}

// refused says why none of an entry's tools can be run, if none can.
func refused(entry catalog.Server) string {
	var reasons []string
	for _, t := range entry.Tools {
		if t.Run == nil {
			continue
		}
		reason := t.Run.Refusal()
		if reason == "" {
			return ""
		}
		reasons = append(reasons, fmt.Sprintf("its tool %q is not run: %s", t.Name, reason))
	}
	return strings.Join(reasons, "; ")
}

func (p *Planner) compile(ctx context.Context, who principal.Principal, entry catalog.Server, images map[string]sandbox.Image, forgotten int) (Plan, error) {
	settings, err := p.Settings.Settings(ctx, who, entry.Name)
	if err != nil {
		return Plan{}, err
	}
	var spec sandbox.Spec
	switch entry.Runs() {
	case catalog.KindRemote:
		spec, err = sandbox.CompileRemote(entry, settings, who.ID)
	case catalog.KindTools:
		spec, err = sandbox.CompileTools(entry, settings, images, p.Host)
	default:
		spec, err = sandbox.Compile(entry, settings, images[p.Sources(entry)[0]], p.Host)
		if err == nil {
			spec.Helpers, err = sandbox.CompileHelpers(entry, settings, images, p.Host)
		}
	}
	if err != nil {
		return Plan{}, err
	}
	grant := sandbox.NewGrant(entry, spec, p.Unenforced())
	made := Plan{Entry: entry, Spec: spec, Grant: grant, Digest: spec.Digest(), GrantDigest: grant.Digest()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if forgotten != p.forgotten {
		return made, nil
	}
	if p.kept == nil {
		p.kept = make(map[cacheKey]kept)
	}
	if len(p.kept) >= maxKept { // there may be any number of callers
		now := time.Now()
		maps.DeleteFunc(p.kept, func(_ cacheKey, k kept) bool { return now.After(k.until) })
	}
	p.kept[cacheKey{who, entry.Name}] = kept{plan: made, until: time.Now().Add(fresh)}
	return made, nil
}

// recent returns a plan that is fresh still, and the count of Forget by now.
func (p *Planner) recent(who principal.Principal, server string) (recent Plan, ok bool, forgotten int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.kept[cacheKey{who, server}]
	return found.plan, ok && time.Now().Before(found.until), p.forgotten
}

// Forget makes the next plan of a server new, because its settings or its
// image have changed.
func (p *Planner) Forget(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten++
	maps.DeleteFunc(p.kept, func(k cacheKey, _ kept) bool { return k.server == server })
}

// ForgetAll makes every next plan new.
func (p *Planner) ForgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten++
	clear(p.kept)
}

// Unresolved reports whether err is that an image has not been resolved yet.
func Unresolved(err error) bool {
	var unresolved *UnresolvedError
	return errors.As(err, &unresolved)
}
