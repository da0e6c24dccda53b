package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const entries = `version: 1
servers:
  one: {image: test/one, title: One, description: The first server}
  two: {image: test/two, title: Two, tools: [{name: promised, description: From the catalog}]}
  alone: {image: test/one, isolation: session}
`

// A house is a gateway with everything below it: real but for the engine.
type house struct {
	*gateway.Gateway
	fake  *sandboxtest.Fake
	book  *approval.Book
	fleet *fleet.Fleet
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

type options struct {
	mode   approval.Mode
	wait   time.Duration
	expose []meta.Group
	prefix gateway.Prefix
	active []string
}

// build makes a house whose images run the servers.
func build(t testing.TB, o options, servers map[string]sandboxtest.Server) *house {
	t.Helper()
	ctx := t.Context()
	logger := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db, err := store.Open(ctx, t.TempDir())
	check(t, err)
	record, err := audit.Open(audit.Options{Dir: t.TempDir(), Gateway: "test"})
	check(t, err)
	book, err := approval.Open(ctx, db, approval.Options{
		Mode: o.mode, Record: func(context.Context, approval.Event) error { return nil }, Logger: logger,
	})
	check(t, err)
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(entries))
	check(t, err)
	merged, _ := catalog.Merge(file)
	servedCatalog := func() *catalog.Catalog { return merged }
	chosen := &activations{settings: map[string]map[string]any{}}
	for _, name := range o.active {
		chosen.settings[name] = nil
	}
	h := &house{fake: &sandboxtest.Fake{Servers: servers}, book: book}
	offers := inventory.New(db, db)
	h.fleet = fleet.New(fleet.Options{
		Runner: h.fake, Client: upstream.Implementation{Name: "dockgate", Version: "test"}, Eras: offers, Logger: logger,
		Unlock: func(_ context.Context, spec sandbox.Spec) (sandbox.Spec, error) { return spec, nil },
		Record: func(fleet.Event) error { return nil },
	})
	planner := &plan.Planner{
		Catalog: servedCatalog, Settings: chosen, Images: images{}, Unenforced: func() []string { return nil },
	}
	caller := call.New(call.Options{
		Planner: planner, Book: book, Record: record, Fleet: h.fleet, Offers: offers,
		ApprovalWait: o.wait, Logger: logger,
	})
	if o.expose == nil {
		o.expose = []meta.Group{meta.Meta, meta.Dynamic, gateway.Active}
	}
	h.Gateway, err = gateway.New(gateway.Options{
		Version: "test", Caller: caller, Fleet: h.fleet, Expose: o.expose, Prefix: o.prefix, Logger: logger,
		Approved: func() []string {
			var names []string
			for _, a := range book.Approvals() {
				names = append(names, a.Server)
			}
			return names
		},
		Desk: &meta.Desk{
			Catalog: servedCatalog, Activations: chosen, Planner: planner, Caller: caller, Fleet: h.fleet, Logger: logger,
			Find:    func(string, int) []string { return []string{"one", "two"} },
			Changed: func(ctx context.Context) { h.Changed(ctx) },
			Names:   func(ref tool.Ref) string { return h.Name(ref) },
		},
	})
	check(t, err)
	t.Cleanup(func() {
		for _, closer := range []func() error{caller.Close, h.fleet.Close, book.Close, record.Close, db.Close} {
			if err := closer(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if running := h.fake.Running(); len(running) > 0 {
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

// join connects a client of the official SDK over pipes, as over stdio.
func (h *house) join(t *testing.T, client *mcp.Client, versions ...string) *mcp.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { served <- h.Serve(ctx, toServer, fromServer, principal.Local) }()
	var hello *mcp.ClientSessionOptions
	if len(versions) > 0 {
		hello = &mcp.ClientSessionOptions{ProtocolVersion: versions[0]}
	}
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: toClient, Writer: fromClient}, hello)
	check(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		_ = fromClient.Close()
		cancel()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Serve = %v", err)
		}
	})
	return session
}

// sdkServer is a container that runs a server of the official SDK.
func sdkServer(build func(s *mcp.Server)) sandboxtest.Server {
	return func(ctx context.Context, c sandboxtest.Container) int {
		s := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, nil)
		build(s)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-c.Killed:
				cancel()
			case <-ctx.Done():
			}
		}()
		_ = s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(c.Stdin), Writer: nopCloser{c.Stdout}})
		return 0
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func echo(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "echo", Description: "Says it again", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
}

func names(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	check(t, err)
	var all []string
	for _, listed := range list.Tools {
		all = append(all, listed.Name)
	}
	return all
}

func text(result *mcp.CallToolResult) string {
	var all []string
	for _, content := range result.Content {
		if said, ok := content.(*mcp.TextContent); ok {
			all = append(all, said.Text)
		}
	}
	return strings.Join(all, "\n")
}

func invoke(t *testing.T, session *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	check(t, err)
	return result
}

// versions are the last of the legacy era and the first of the modern one.
func versions() []string { return []string{"2025-11-25", "2026-07-28"} }

func answering(decision string, asked *[]string) *mcp.Client {
	var mu sync.Mutex
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			*asked = append(*asked, req.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
		},
	})
}
