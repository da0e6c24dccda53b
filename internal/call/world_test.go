package call_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const entries = `
version: 1
servers:
  git: {image: raw, config: {type: object, properties: {mode: {type: string}}}, env: {MODE: "{{config.mode}}"}}
  sess: {image: raw, isolation: session}
  mine: {image: raw, isolation: principal}
  slow: {image: raw, timeouts: {start: 2m}}
  long: {image: raw, timeouts: {call: 5m}}
  sdk: {image: sdk}
  rude: {image: rude}
  locked:
    image: raw
    secrets: [{name: git.token, env: GIT_TOKEN, required: true, instructions: ask your mother}]
`

// A world is a caller with everything real but the engine.
type world struct {
	t      *testing.T
	caller *call.Caller
	fake   *sandboxtest.Fake
	fleet  *fleet.Fleet
	book   *approval.Book
	offers *inventory.Inventory
	writer *audit.Writer
	state  string // folder
	log    strings.Builder

	// append stands between the caller and the record, if it is set.
	append func(audit.Record) error
	// ensure is what making an image present takes, if it is set.
	ensure func(context.Context, func(plan.Progress)) error

	mu       sync.Mutex
	env      map[string]string
	settings map[string]any // of git
	present  map[string]bool
	ensured  int
	tools    []string // definitions that the raw servers list
	told     []string // the reasons of cancellations
	received []string // params of the tools/call and the methods of other requests that they got
}

// inWorld runs a test in a bubble with a world of its own, and checks that
// nothing is left of it. All images are present at first.
func inWorld(t *testing.T, mode approval.Mode, run func(*testing.T, *world)) {
	t.Helper()
	inWorldWith(t, mode, fleet.Quota{}, run)
}

// inBoundWorld is inWorld with a quota, where nobody is asked.
func inBoundWorld(t *testing.T, quota fleet.Quota, run func(*testing.T, *world)) {
	t.Helper()
	inWorldWith(t, approval.ModeAll, quota, run)
}

func inWorldWith(t *testing.T, mode approval.Mode, quota fleet.Quota, run func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, state: t.TempDir(), env: map[string]string{}, present: map[string]bool{"raw": true, "sdk": true, "rude": true},
			tools: []string{definition("echo", ""), definition("other", "")},
		}
		logger := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		db := w.openStore()
		var err error
		w.writer, err = audit.Open(audit.Options{Dir: filepath.Join(w.state, "audit"), Gateway: "test"})
		check(t, err)
		w.book = w.openBook(db, mode)
		file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(entries))
		check(t, err)
		servers, _ := catalog.Merge(file)
		w.fake = &sandboxtest.Fake{Servers: map[string]sandboxtest.Server{"raw": w.raw, "sdk": sdk, "rude": rude}}
		w.offers = inventory.New(db, db)
		w.fleet = fleet.New(fleet.Options{
			Runner: w.fake, Client: upstream.Implementation{Name: "dockgate", Version: "test"}, Eras: w.offers,
			Unlock: w.unlock, Quota: quota, Logger: logger,
			Record: func(e fleet.Event) error {
				record := audit.Record{Kind: audit.KindStart, Server: e.Server, Outcome: e.Kind, Detail: map[string]string{}}
				if e.Err != nil {
					record.Detail["reason"] = e.Err.Error()
				}
				return w.writer.Append(record)
			},
		})
		w.caller = call.New(call.Options{
			Planner: &plan.Planner{
				Catalog: func() *catalog.Catalog { return servers }, Settings: w, Images: w,
				Unenforced: func() []string { return nil },
			},
			Book: w.book, Record: w, Fleet: w.fleet, Offers: w.offers, ApprovalWait: consent.DefaultWait, Logger: logger,
		})
		run(t, w)
		check(t, w.caller.Close())
		check(t, w.fleet.Close())
		if left := w.fake.Running(); len(left) > 0 {
			t.Errorf("containers of %v are left", left)
		}
		check(t, w.writer.Close())
	})
}

func (w *world) openStore() *store.DB {
	db, err := store.Open(w.t.Context(), w.state)
	check(w.t, err)
	w.t.Cleanup(func() { check(w.t, db.Close()) })
	return db
}

// openBook opens a book. It does not look what other processes decide.
func (w *world) openBook(db *store.DB, mode approval.Mode) *approval.Book {
	book, err := approval.Open(w.t.Context(), db, approval.Options{
		Mode: mode, Record: func(_ context.Context, e approval.Event) error {
			return w.writer.Append(audit.Record{Kind: audit.KindApproval, Server: e.Server, Outcome: string(e.Action)})
		},
	})
	check(w.t, err)
	return book
}

// follow keeps the caller's book up to date until the test ends.
func (w *world) follow() {
	ctx, stop := context.WithCancel(w.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.book.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		check(w.t, <-ran)
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) Append(record audit.Record) error {
	if w.append != nil {
		if err := w.append(record); err != nil {
			return err
		}
	}
	return w.writer.Append(record)
}

func (w *world) Settings(_ context.Context, _ principal.Principal, server string) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if server != "git" {
		return nil, nil
	}
	return w.settings, nil
}

func (w *world) Known(_ context.Context, ref string) (sandbox.Image, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sandbox.Image{
		Ref: ref, Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + ref, Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{Entrypoint: []string{"/server"}},
	}, w.present[ref], nil
}

func (w *world) Ensure(ctx context.Context, ref string, progress func(plan.Progress)) (sandbox.Image, error) {
	w.mu.Lock()
	w.ensured++
	present := w.present[ref]
	w.mu.Unlock()
	if w.ensure != nil && !present {
		if err := w.ensure(ctx, progress); err != nil {
			return sandbox.Image{}, err
		}
	}
	w.mu.Lock()
	w.present[ref] = true
	w.mu.Unlock()
	image, _, err := w.Known(ctx, ref)
	return image, err
}

// pulls makes every image absent; a pull of one takes a while.
func (w *world) pulls(d time.Duration) {
	clear(w.present)
	w.ensure = func(ctx context.Context, progress func(plan.Progress)) error {
		progress(plan.Progress{Status: "Downloading"})
		select {
		case <-time.After(d):
			progress(plan.Progress{Status: "Extracting", Done: 5e6, Total: 10e6})
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) unlock(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error) {
	needs := make([]secret.Need, len(spec.Secrets))
	for i, s := range spec.Secrets {
		needs[i] = secret.Need{Ref: secret.Ref{Name: s.Name, Env: s.From}, Required: s.Required, Instructions: s.Instructions}
	}
	found, err := secret.Sources{Env: func(name string) (string, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		value, ok := w.env[name]
		return value, ok
	}}.Resolve(ctx, needs)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec.Secrets = slices.Clone(spec.Secrets)
	for i := range found {
		spec.Secrets[i].Value = found[i].Value
	}
	return spec, nil
}

// request is a call of a tool by the local user, who cannot be asked.
func request(server, tool string) call.Request {
	return call.Request{
		Client: call.Client{Principal: principal.Local, Session: "s1", Via: "direct"},
		Server: server, Method: "tools/call", Item: tool,
		Params:    json.RawMessage(`{"name":"` + tool + `", "arguments":{"n":9007199254740993}}`),
		Arguments: json.RawMessage(`{"n":9007199254740993}`),
	}
}

// answering returns a request whose person gives that answer.
func answering(r call.Request, answer approval.Answer) call.Request {
	r.Person.Ask = func(context.Context, approval.Question) (consent.Reply, error) {
		return consent.Reply{Answer: answer, Channel: "elicitation"}, nil
	}
	return r
}

const echoed = `{"content":[],  "n":9007199254740993}`

// answers makes a call that must succeed.
func (w *world) answers(r call.Request) {
	w.t.Helper()
	if got, err := w.caller.Do(w.t.Context(), r); err != nil || string(got) != echoed {
		w.t.Errorf("Do(%s %s) = %s, %v, want %s", r.Server, r.Item, got, err, echoed)
	}
}

// fails makes a call that must fail with a code.
func (w *world) fails(r call.Request, code string) {
	w.t.Helper()
	_ = w.failure(r, code)
}

// failure makes a call that must fail with a code, and returns the error.
func (w *world) failure(r call.Request, code string) error {
	w.t.Helper()
	got, err := w.caller.Do(w.t.Context(), r)
	if err == nil || call.Code(err) != code {
		w.t.Errorf("Do(%s %s) = %s, %v (code %q), want code %s", r.Server, r.Item, got, err, call.Code(err), code)
	}
	return err
}

// starts makes a call in the background.
func (w *world) starts(ctx context.Context, r call.Request) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := w.caller.Do(ctx, r)
		ended <- err
	}()
	synctest.Wait()
	return ended
}

// decide answers all pending questions from another process.
func (w *world) decide(answer approval.Answer) {
	w.t.Helper()
	other := w.openBook(w.openStore(), approval.ModeAsk)
	for _, q := range other.Questions(approval.ProgressPending) {
		check(w.t, other.Decide(w.t.Context(), q, approval.Decision{Answer: answer, Channel: "terminal", By: principal.Local}))
	}
}

// stop stops a server and forgets nothing else.
func (w *world) stop(server string) {
	w.t.Helper()
	_, err := w.fleet.Stop(w.t.Context(), server)
	check(w.t, err)
}

func (w *world) expectStarted(want int) {
	w.t.Helper()
	if got := w.fake.Started(); got != want {
		w.t.Errorf("%d containers were started, want %d", got, want)
	}
}

// calls returns the params of the calls that the raw servers got.
func (w *world) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

// reasons returns why servers were told that calls are cancelled.
func (w *world) reasons() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func (w *world) list(tools ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tools = tools
}

// records returns the audit record without what its opening says.
func (w *world) records() []audit.Record {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.state, "audit", "*.jsonl"))
	check(w.t, err)
	var records []audit.Record
	for _, path := range paths {
		data, err := os.ReadFile(path)
		check(w.t, err)
		for line := range strings.Lines(string(data)) {
			record, err := audit.ParseRecord([]byte(strings.TrimSuffix(line, "\n")))
			check(w.t, err)
			if record.Kind != audit.KindOpen {
				records = append(records, record)
			}
		}
	}
	return records
}

// history is the record in one word or three for each.
func (w *world) history() string {
	w.t.Helper()
	var words []string
	for _, r := range w.records() {
		words = append(words, strings.TrimSuffix(string(r.Kind)+":"+r.Outcome+":"+r.Code, ":"))
	}
	return strings.Join(words, " ")
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func definition(name, description string) string {
	return `{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object"}}`
}

// token is what every call gets on its way: the server is asked for progress.
var token = regexp.MustCompile(`,"_meta":\{"progressToken":\d+\}\}$`)

// raw is a legacy server that lists what the world says, and has the tools
// echo, fail, hang and crash, listed or not.
func (w *world) raw(_ context.Context, c sandboxtest.Container) int {
	in, out := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
	for {
		m, err := in.Read()
		if err != nil {
			return 0
		}
		answer := jsonrpc.Message{ID: m.ID}
		switch m.Method {
		case "initialize":
			answer.Result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"0"}}`)
		case "tools/list":
			w.mu.Lock()
			answer.Result = json.RawMessage(`{"tools":[` + strings.Join(w.tools, ",") + `]}`)
			w.mu.Unlock()
		case "tools/call":
			w.mu.Lock()
			w.received = append(w.received, token.ReplaceAllString(string(m.Params), "}"))
			w.mu.Unlock()
			switch strings.Trim(string(jsonrpc.Lookup(m.Params, "name")), `"`) {
			case "fail":
				answer.Error = &jsonrpc.Error{Code: -32042, Message: "no", Data: json.RawMessage(`{"why":9007199254740993}`)}
			case "crash":
				_, _ = io.WriteString(c.Stderr, "boom\n")
				return 3
			case "hang":
				continue
			default:
				answer.Result = json.RawMessage(echoed)
			}
		case "notifications/cancelled":
			var reason string
			_ = json.Unmarshal(jsonrpc.Lookup(m.Params, "reason"), &reason)
			w.mu.Lock()
			w.told = append(w.told, reason)
			w.mu.Unlock()
			continue
		case "ping":
			answer.Result = json.RawMessage(`{}`)
		case "resources/read":
			w.mu.Lock()
			w.received = append(w.received, m.Method)
			w.mu.Unlock()
			answer.Result = json.RawMessage(echoed)
		default:
			if m.ID == nil {
				continue
			}
			answer.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "what?"}
		}
		_ = out.Write(answer) // the client may be gone
	}
}

// rude refuses whatever it is asked.
func rude(_ context.Context, c sandboxtest.Container) int {
	in, out := jsonrpc.NewReader(c.Stdin, jsonrpc.ReaderOptions{}), jsonrpc.NewWriter(c.Stdout)
	for {
		m, err := in.Read()
		if err != nil {
			return 0
		}
		_ = out.Write(jsonrpc.Message{ID: m.ID, Error: &jsonrpc.Error{Code: -32001, Message: "go away"}})
	}
}

// sdk is a server of the official SDK whose tool counts to three.
func sdk(ctx context.Context, c sandboxtest.Container) int {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for n := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(n),
			}); err != nil {
				return nil, nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted"}}}, nil, nil
	})
	err := server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(c.Stdin), Writer: writeCloser{c.Stdout}})
	if err != nil {
		return 1
	}
	return 0
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }
