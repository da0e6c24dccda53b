package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/daemon/daemontest"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/presence"
	"github.com/dockgate/dockgate/internal/principal"
)

// A reloading is a gateway that runs, with a remote server of two tools: hold
// returns when it is let go, and quick at once.
type reloading struct {
	*daemon.Daemon
	t       *testing.T
	file    string
	url     string
	add     func(tool string, wait func(context.Context))
	said    chan string // by the log, about reloads
	holding chan struct{}
	let     chan struct{}
	end     func()
}

// tale passes on what the log says about reloads.
type tale struct {
	slog.Handler
	said chan string
}

func (h tale) Enabled(context.Context, slog.Level) bool { return true }

func (h tale) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "configuration ") {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "err" {
				text += ": " + a.Value.String()
			}
			return true
		})
		select {
		case h.said <- text:
		default:
		}
	}
	return nil
}

func (h tale) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h tale) WithGroup(string) slog.Handler      { return h }

func newReloading(t *testing.T, content string) *reloading {
	t.Helper()
	r := &reloading{t: t, said: make(chan string, 64), holding: make(chan struct{}), let: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	add := func(name string, wait func(context.Context)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			wait(ctx)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	r.add = add
	add("quick", func(context.Context) {})
	add("hold", func(ctx context.Context) {
		r.holding <- struct{}{}
		select {
		case <-r.let:
		case <-ctx.Done():
		}
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.url = server.URL

	o := daemontest.Options(t, entries)
	o.Config.Catalogs = nil
	o.Logger = slog.New(tale{slog.DiscardHandler, r.said})
	r.file = filepath.Join(o.Dir, "user", "config.yaml")
	r.write(content)
	o.ConfigFile = r.file
	o.Load = func() (policy.Config, error) { return policy.LoadConfig(r.file) }
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	r.Daemon = daemontest.Open(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	var done sync.WaitGroup
	done.Go(func() {
		if err := r.Serve(ctx, in, nowhere{}); err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	r.end = sync.OnceFunc(func() {
		cancel()
		_ = out.Close()
		done.Wait()
	})
	t.Cleanup(r.end)
	r.running()
	return r
}

// write replaces the configuration as editors do.
func (r *reloading) write(content string) {
	r.t.Helper()
	whole := fmt.Sprintf("approval: {mode: all}\n%s\n", strings.ReplaceAll(content, "WEB", fmt.Sprintf("{remote: {url: %q}}", r.url)))
	write(r.t, r.file+"~", whole)
	if err := os.Rename(r.file+"~", r.file); err != nil {
		r.t.Fatal(err)
	}
}

// hear waits until the log says how a reload went.
func (r *reloading) hear(want string) {
	r.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case said := <-r.said:
			if strings.HasPrefix(said, want) {
				return
			}
			r.t.Logf("log: %s", said)
		case <-late:
			r.t.Fatalf("the log did not say %q", want)
		}
	}
}

// running waits until the gateway has said that it runs.
func (r *reloading) running() presence.Presence {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		gateways, err := presence.Running(ctx, r.Store)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(gateways) == 1 {
			return gateways[0]
		}
		<-ticker.C
	}
}

func (r *reloading) call(tool string) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	client := call.Client{Principal: principal.Local, Session: "s", Via: "direct", Person: consent.Person{}, Waiting: func(string) {}}
	result, err := r.Caller.CallTool(ctx, client, "web", tool, nil)
	if err == nil && !strings.Contains(string(result), "done") {
		err = fmt.Errorf("result %s", result)
	}
	return err
}

// TestReload holds that a change of the file holds at once, that no call is
// dropped by it, and that a broken file changes nothing.
func TestReload(t *testing.T) {
	r := newReloading(t, "discovery: {servers: {web: WEB}}")
	r.write("discovery: {servers: {web: WEB}}") // the URL is known by now
	r.hear("configuration reloaded")
	if err := r.call("quick"); err != nil {
		t.Fatalf("quick before = %v", err)
	}
	held := make(chan error, 1)
	go func() { held <- r.call("hold") }()
	<-r.holding

	// The server is another one now, and one of its tools is gone: who has begun
	// goes on.
	r.write("quotas: {max_running: 3}\nexpose: [active]\ntimeouts: {call: 7s}\ndiscovery:\n  servers: {web: WEB, more: {image: a/b}}\n  toolRules: [{pattern: [quick], enabled: false}]")
	r.hear("configuration reloaded")
	var disabled *call.DisabledError
	if err := r.call("quick"); !errors.As(err, &disabled) {
		t.Errorf("quick after it was disabled = %v, want a DisabledError", err)
	}
	if _, err := r.Catalog().Server("more"); err != nil || r.Now().Quotas.MaxRunning.Max != 3 || len(r.Gateway.Exposed(principal.Local)) != 1 {
		t.Errorf("after the reload: %v, quotas %+v, exposed %v", err, r.Now().Quotas, r.Gateway.Exposed(principal.Local))
	}

	before := r.Now().Rules
	r.write("discovery: {toolRules: [{pattern: ['/(/'], enabled: true}]}")
	r.hear("configuration not reloaded, the earlier one holds: " + r.file + ":2: discovery.toolRules[0]")
	if !r.Now().Rules.Equal(before) {
		t.Error("the rules are other ones after a broken reload")
	}
	if got := r.running(); !strings.Contains(got.Problem, "toolRules[0].pattern[0]") {
		t.Errorf("Problem = %q, want what is wrong", got.Problem)
	}

	// The server is gone from the configuration. How long the cache holds counts
	// at once.
	r.write("patience: 9s\ndiscovery: {cache: {ttl: 5}}")
	r.hear("configuration reloaded")
	if got := r.running(); got.Problem != "" || !cmp.Equal(got.Restart, []string{"patience"}) {
		t.Errorf("after another reload: problem %q, restart %q, want none and patience", got.Problem, got.Restart)
	}
	select {
	case err := <-held:
		t.Errorf("the call under way ended by a reload: %v", err)
	default:
	}
	close(r.let)
	if err := <-held; err != nil {
		t.Errorf("the call under way = %v, want its result", err)
	}
}

// TestReloadProject holds that a project's file is seen when it comes and when
// it goes.
func TestReloadProject(t *testing.T) {
	r := newReloading(t, "")
	path := filepath.Join(r.Dir, "dockgate.yaml")
	write(t, path, "quotas: {max_running: 1}")
	r.hear("configuration reloaded")
	if got := r.Now().Quotas.MaxRunning.Max; got != 1 {
		t.Errorf("max_running = %d with the project's file, want 1", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.hear("configuration reloaded")
	if got := r.Now().Quotas.MaxRunning.Max; got != policy.DefaultMaxRunning {
		t.Errorf("max_running = %d without the project's file, want %d", got, policy.DefaultMaxRunning)
	}
}

// TestAskReload holds that another process can have a gateway reload, and drop
// what it keeps; what was approved and what runs stays.
func TestAskReload(t *testing.T) {
	r := newReloading(t, "")
	r.write("discovery: {servers: {web: WEB}}")
	r.hear("configuration reloaded")
	o := r.Options
	o.Logger = slog.New(slog.DiscardHandler)
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	other := daemontest.Open(t, o)
	met := func(asked string, err error) presence.Presence {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for {
			r.hear("configuration reloaded")
			if p := r.running(); p.Asked == asked {
				return p
			}
		}
	}
	if got := met(presence.AskReload(t.Context(), other.Store)); got.Took <= 0 {
		t.Errorf("Took = %v, want how long it took", got.Took)
	}
	if err := r.call("quick"); err != nil {
		t.Fatal(err)
	}
	met(other.Flush(t.Context(), ""))
	if err := r.call("quick"); err != nil {
		t.Errorf("a call of what runs, after a flush = %v", err)
	}
	if _, err := r.Fleet.Stop(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	met(other.Flush(t.Context(), "web"))
	stock, err := r.Desk.Stock(t.Context(), principal.Local, "web")
	var names []string
	for _, item := range stock.Items {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"hold", "quick"}, names); err != nil || stock.Listed || diff != "" {
		t.Errorf("Stock after a flush = listed %v, %v, want the approved tools (-want +got):\n%s", stock.Listed, err, diff)
	}
	if err := r.call("quick"); err != nil {
		t.Errorf("a call after a flush = %v", err)
	}
	if stock, err = r.Desk.Stock(t.Context(), principal.Local, "web"); err != nil || !stock.Listed {
		t.Errorf("Stock after it was used again = listed %v, %v, want it listed", stock.Listed, err)
	}
	r.end()
	if gateways, err := presence.Running(t.Context(), other.Store); err != nil || len(gateways) != 0 {
		t.Errorf("Gateways() = %v, %v after the end, want none", gateways, err)
	}
	if uses, err := other.Uses(t.Context()); err != nil || uses.Hits == 0 || uses.Misses == 0 {
		t.Errorf("Uses() = %+v, %v, want hits and misses", uses, err)
	}
	if _, err := other.Flush(t.Context(), "nobody"); err == nil {
		t.Error("Flush(nobody) = nil, want that there is no such server")
	}
}

// TestCacheOff holds that nothing is kept of what servers offered, but what
// was approved.
func TestCacheOff(t *testing.T) {
	r := newReloading(t, "")
	r.write("discovery: {cache: {enabled: false}, servers: {web: WEB}}")
	r.hear("configuration reloaded")
	if got := r.running().Restart; !cmp.Equal(got, []string{"discovery.cache.enabled"}) {
		t.Errorf("Restart = %q, want the cache", got)
	}
	r.end()
	o := r.Options
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	first := daemontest.Open(t, o)
	if err := first.Audit.Open(); err != nil {
		t.Fatal(err)
	}
	used := reloading{Daemon: first, t: t}
	if err := used.call("quick"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	stock, err := daemontest.Open(t, o).Desk.Stock(t.Context(), principal.Local, "web")
	if err != nil || stock.Listed || len(stock.Items) != 2 {
		t.Errorf("Stock = listed %v, %d tools, %v, want the approved ones alone", stock.Listed, len(stock.Items), err)
	}
}

// TestRemoteTTL holds that a remote server that does not run is asked again
// what it offers, when it was asked too long ago.
func TestRemoteTTL(t *testing.T) {
	r := newReloading(t, "")
	r.write("discovery: {cache: {ttl: 1}, servers: {web: WEB}}")
	r.hear("configuration reloaded")
	if err := r.call("quick"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Fleet.Stop(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	r.add("later", func(context.Context) {})
	late := time.After(time.Minute)
	for {
		changed := r.Caller.Offers.Changed()
		made, err := r.Planner.Plan(t.Context(), principal.Local, "web")
		if err != nil {
			t.Fatal(err)
		}
		offer, _, err := r.Caller.Offer(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := offer.Tool("later"); ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatal("the server was not asked again")
		}
	}
}

func TestReloadFixed(t *testing.T) {
	if _, err := daemontest.Open(t, daemontest.Options(t, entries)).Reload(t.Context()); !errors.Is(err, daemon.ErrFixed) {
		t.Errorf("Reload() = %v, want ErrFixed", err)
	}
}

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		uses inventory.Uses
		want float64
	}{{inventory.Uses{}, 0}, {inventory.Uses{Hits: 3, Misses: 1}, 0.75}} {
		if got := tt.uses.Rate(); got != tt.want {
			t.Errorf("%+v.Rate() = %v, want %v", tt.uses, got, tt.want)
		}
	}
}
