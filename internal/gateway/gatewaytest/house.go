// Package gatewaytest makes a gateway with everything below it, real but for
// the engine, for the tests of whatever clients reach it through.
package gatewaytest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

// Entries is the catalog of a House.
const Entries = `version: 1
servers:
  one: {image: test/one, title: One, description: The first server}
  two: {image: test/two, title: Two, tools: [{name: promised, description: From the catalog}]}
  alone: {image: test/one, isolation: session}
`

// A House is a gateway with everything below it: real but for the engine.
type House struct {
	*gateway.Gateway
	Fake  *sandboxtest.Fake
	Book  *approval.Book
	Fleet *fleet.Fleet
}

type images struct{}

func (images) Known(_ context.Context, ref string) (sandbox.Image, bool, error) {
	digest := fmt.Sprintf("sha256:%064x", ref)[:71]
	return sandbox.Image{
		Ref: ref, Pin: sandbox.Pin{Kind: sandbox.LocalID, Digest: digest, Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{Entrypoint: []string{"/server"}},
	}, true, nil
}

func (i images) Ensure(ctx context.Context, ref string, _ func(plan.Progress)) (sandbox.Image, error) {
	image, _, err := i.Known(ctx, ref)
	return image, err
}

type activations struct {
	mu       sync.Mutex
	settings map[string]map[string]any
}

func (a *activations) Active(context.Context, principal.Principal) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := []string{}
	for name := range a.settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (a *activations) Settings(_ context.Context, _ principal.Principal, server string) (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings[server], nil
}

func (a *activations) Activate(_ context.Context, _ principal.Principal, server string, settings map[string]any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings[server] = settings
	return nil
}

func (a *activations) Deactivate(_ context.Context, _ principal.Principal, server string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, was := a.settings[server]
	delete(a.settings, server)
	return was, nil
}

// Options say what a House is like. The zero value asks for every approval.
type Options struct {
	Mode approval.Mode
	// Wait is how long a call waits for a person.
	Wait   time.Duration
	Expose []meta.Group
	Prefix menu.Prefix
	// Active are the servers that are active from the start: of one, two and alone.
	Active []string
	// Catalog is in place of [Entries].
	Catalog string
	// Rules say which tools may be called.
	Rules rules.Rules
	// Roles say who may use what; by default everybody may use everything.
	Roles access.Roles
	// Fresh is how long lists may be kept.
	Fresh time.Duration
	// Phrase is how commands are typed, in texts of ours; nil is as they are.
	Phrase func(text string) string
	// Logger is the test's log if nil, which a fuzz test has none of.
	Logger *slog.Logger
}

// rules are those for a caller.
func (o Options) rules(who principal.Principal) rules.Rules {
	role, err := o.Roles.Of(who)
	if err != nil {
		return o.Rules
	}
	return o.Rules.Narrowed(role.Tools)
}

// exposed are the groups that are listed for a caller.
func (o Options) exposed(who principal.Principal) []meta.Group {
	groups := o.Expose
	if role, err := o.Roles.Of(who); err == nil && role.Expose != nil {
		groups = nil
		for _, group := range role.Expose {
			groups = append(groups, meta.Group(group))
		}
	}
	return groups
}

// Build makes a House whose images, test/one and test/two, run the servers.
// It ends with the test, and fails it if a container is left.
func Build(t testing.TB, o Options, servers map[string]sandboxtest.Server) *House {
	t.Helper()
	ctx := t.Context()
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	db, err := store.Open(ctx, t.TempDir())
	check(t, err)
	record, err := audit.Open(audit.Options{Dir: t.TempDir(), Gateway: "test"})
	check(t, err)
	book, err := approval.Open(ctx, db, approval.Options{
		Mode: o.Mode, Record: func(context.Context, approval.Event) error { return nil }, Logger: logger,
	})
	check(t, err)
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(cmp.Or(o.Catalog, Entries)))
	check(t, err)
	merged, _ := catalog.Merge(file)
	servedCatalog := func() *catalog.Catalog { return merged }
	chosen := &activations{settings: map[string]map[string]any{}}
	for _, name := range o.Active {
		chosen.settings[name] = nil
	}
	h := &House{Fake: &sandboxtest.Fake{Servers: servers}, Book: book}
	offers := inventory.New(db, db)
	h.Fleet = fleet.New(fleet.Options{
		Runner: h.Fake, Client: upstream.Implementation{Name: "dockgate", Version: "test"}, Eras: offers, Logger: logger,
		Unlock: func(_ context.Context, spec sandbox.Spec) (sandbox.Spec, error) { return spec, nil },
		Record: func(fleet.Event) error { return nil },
		Heard:  func(n fleet.Notice) { h.Heard(n) },
	})
	planner := &plan.Planner{
		Catalog: servedCatalog, Settings: chosen, Images: images{}, Unenforced: func() []string { return nil },
	}
	caller := call.New(call.Options{
		Planner: planner, Book: book, Record: record, Fleet: h.Fleet, Offers: offers,
		ApprovalWait: o.Wait, Logger: logger, Rules: o.rules,
		Permit: func(who principal.Principal, server string) error { return o.Roles.Permit(who, merged, server) },
	})
	if o.Expose == nil {
		o.Expose = []meta.Group{meta.Meta, meta.Dynamic, gateway.Active}
	}
	h.Gateway, err = gateway.New(gateway.Options{
		Version: "test", Fresh: o.Fresh, Caller: caller, Fleet: h.Fleet, Expose: o.Expose, Exposed: o.exposed, Prefix: o.Prefix, Phrase: o.Phrase, Logger: logger,
		Approved: func() []string {
			var names []string
			for _, a := range book.Approvals() {
				names = append(names, a.Server)
			}
			return names
		},
		Desk: &meta.Desk{
			Catalog: servedCatalog, Activations: chosen, Planner: planner, Caller: caller, Fleet: h.Fleet, Logger: logger,
			Find:    func(string, int) []string { return []string{"one", "two"} },
			Changed: func(ctx context.Context) { h.Changed(ctx) },
			Names:   func(ref tool.Ref) string { return h.Name(ref) },
			Phrase:  o.Phrase,
		},
	})
	check(t, err)
	t.Cleanup(func() {
		for _, closer := range []func() error{caller.Close, h.Fleet.Close, record.Close, db.Close} {
			if err := closer(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if running := h.Fake.Running(); len(running) > 0 {
			t.Errorf("still running: %v", running)
		}
	})
	return h
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// SDKServer is a container that runs a server of the official SDK.
func SDKServer(build func(s *mcp.Server)) sandboxtest.Server {
	return SDKServerWith(mcp.ServerOptions{}, build)
}

// SDKServerWith is an SDKServer with options. Each container has a server of
// its own.
func SDKServerWith(options mcp.ServerOptions, build func(s *mcp.Server)) sandboxtest.Server {
	return func(ctx context.Context, c sandboxtest.Container) int {
		options := options
		s := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, &options)
		build(s)
		// Of the context nothing but its end may come into another process: the
		// gateway's SDK keeps values there that the server's would take for its own.
		own, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-c.Killed:
			case <-ctx.Done():
			case <-own.Done():
			}
			cancel()
		}()
		_ = s.Run(own, &mcp.IOTransport{Reader: io.NopCloser(c.Stdin), Writer: nopCloser{c.Stdout}})
		return 0
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
