package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// menus are the menus of the principals who have asked for one. They stay as
// they are until something changes.
type menus struct {
	mu   sync.Mutex
	each recent[*menu.Menu]
	// warned are the things of which it was said that they are left out. What
	// is left out stays so in each menu that is written.
	warned map[string]bool
}

// maxWarned bounds what a server that changes its tools all the time can fill
// the memory and the log with.
const maxWarned = 10_000

// Bounds are what one client sees at most.
type Bounds struct {
	// Servers is how many servers' tools are listed; [DefaultServers] if zero.
	Servers int
	// Tools is how many tools of servers are listed; [DefaultTools] if zero.
	Tools int
}

// The bounds of a gateway that is told none.
const (
	DefaultServers = 1000
	DefaultTools   = 10_000
)

// menu returns what the sender of a request sees.
func (g *Gateway) menu(ctx context.Context, req mcp.Request) (*menu.Menu, error) {
	_, s := g.sessionOf(req)
	return g.menuOf(ctx, s.principal)
}

// menuOf returns what a principal sees.
func (g *Gateway) menuOf(ctx context.Context, who principal.Principal) (*menu.Menu, error) {
	g.menus.mu.Lock()
	defer g.menus.mu.Unlock()
	if found, ok := g.menus.each.get(who); ok {
		return found, nil
	}
	made, err := g.write(ctx, who)
	if err != nil {
		return nil, err
	}
	g.menus.each.put(who, made, maxMenus, func(other principal.Principal, _ *menu.Menu) bool { return g.hears(other) })
	return made, nil
}

// hears reports whether a principal has a client that is told of changes: what
// they see must be known to see that it changes.
func (g *Gateway) hears(who principal.Principal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.principal == who {
			return true
		}
	}
	for w := range g.listening {
		if w.session.principal == who {
			return true
		}
	}
	return false
}

// refresh writes every menu anew and returns the list methods whose answer is
// another one for anybody.
func (g *Gateway) refresh(ctx context.Context) (map[string]bool, error) {
	g.Desk.Refresh(ctx)
	g.menus.mu.Lock()
	defer g.menus.mu.Unlock()
	changed := make(map[string]bool)
	for who, kept := range g.menus.each.each {
		now, err := g.write(ctx, who)
		if err != nil {
			return changed, err
		}
		for _, method := range now.Changed(kept.value) {
			changed[method] = true
		}
		kept.value = now
	}
	return changed, nil
}

// write makes the menu of a principal from what is known: it starts nothing
// and asks no engine.
func (g *Gateway) write(ctx context.Context, who principal.Principal) (*menu.Menu, error) {
	w := menu.NewWriter(g.Prefix)
	own, err := g.Desk.Described(ctx, who, g.ownTools(who))
	if err != nil {
		return nil, err
	}
	for _, t := range own {
		w.Own(t.Name, t.JSON)
	}
	names, err := g.listed(ctx, who)
	if err != nil {
		return nil, err
	}
	if most := cmp.Or(g.Bounds.Servers, DefaultServers); len(names) > most {
		g.leaveOut(ctx, "servers", most)
		names = names[:most]
	}
	plans := make(map[string]plan.Plan, len(names))
	for _, name := range names {
		made, err := g.Desk.Planner.Plan(ctx, who, name)
		if err != nil { // said where it matters: mcp_active, the call itself
			g.Logger.DebugContext(ctx, "server cannot be planned", "server", name, "err", err)
			continue
		}
		plans[name] = made
	}
	if err := g.Caller.Preload(ctx, plans); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := g.writeServer(ctx, w, who, name, plans); err != nil {
			return nil, err
		}
	}
	return w.Menu(), nil
}

// full reports that no more tools are to be listed.
func (g *Gateway) full(ctx context.Context, w *menu.Writer) bool {
	most := cmp.Or(g.Bounds.Tools, DefaultTools)
	if w.Tools() < most {
		return false
	}
	g.leaveOut(ctx, "tools", most)
	return true
}

// leaveOut says once that more than a bound allows was to be listed. The menus
// are locked.
func (g *Gateway) leaveOut(ctx context.Context, what string, most int) {
	if g.menus.first(what) {
		g.Logger.WarnContext(ctx, "too many to list, the rest is left out", "kind", what, "most", most)
	}
}

// first reports whether something is left out for the first time. m.mu is held.
func (m *menus) first(what string) bool {
	if m.warned[what] || len(m.warned) >= maxWarned {
		return false
	}
	if m.warned == nil {
		m.warned = make(map[string]bool)
	}
	m.warned[what] = true
	return true
}

// listed returns the servers whose tools a principal sees, sorted.
func (g *Gateway) listed(ctx context.Context, who principal.Principal) (names []string, err error) {
	switch {
	case g.exposes(who, Direct):
		names = g.Approved()
	case g.exposes(who, Active):
		names, err = g.Desk.Activations.Active(ctx, who)
	}
	return slices.DeleteFunc(names, func(name string) bool { return g.Caller.MayUse(who, name) != nil }), err
}

// writeServer lists what an approved server offered last, and of others the
// catalog's snapshot. Nothing that nobody approved is shown to a model.
func (g *Gateway) writeServer(ctx context.Context, w *menu.Writer, who principal.Principal, name string, plans map[string]plan.Plan) error {
	made, planned := plans[name]
	if !planned || !g.Caller.Approved(made) {
		entry, err := g.Desk.Catalog().Server(name)
		if err != nil { // it was in a catalog when it was chosen
			g.Logger.DebugContext(ctx, "server is in no catalog", "server", name, "err", err)
			return nil
		}
		return g.writeSnapshot(ctx, w, who, entry)
	}
	offer, ok, err := g.Caller.Offer(ctx, made)
	if err != nil {
		return err
	}
	if !ok {
		return g.writeUnlisted(ctx, w, who, made)
	}
	skip := func(kind, entry string, err error) {
		if err != nil && g.menus.first(fmt.Sprint(name, kind, entry, err)) {
			g.Logger.WarnContext(ctx, "entry cannot be listed", "server", name, "kind", kind, "name", entry, "err", err)
		}
	}
	for _, t := range offer.Tools {
		if g.full(ctx, w) {
			break
		}
		definition := g.approvedDefinition(made, t)
		if definition != nil && g.Caller.Decide(who, name, tool.Definition{Name: t.Name, JSON: definition}).Enabled() {
			skip("tool", t.Name, w.Tool(tool.Ref{Server: name, Name: t.Name}, definition))
		}
	}
	for _, entry := range offer.Prompts {
		skip("prompt", "", w.Prompt(name, entry))
	}
	for _, entry := range offer.Resources {
		skip("resource", "", w.Resource(name, entry))
	}
	for _, entry := range offer.Templates {
		skip("template", "", w.Template(name, entry))
	}
	return nil
}

// writeUnlisted lists what is known of an approved server of which no offer is
// kept: its tools as they were approved, else the catalog's snapshot.
func (g *Gateway) writeUnlisted(ctx context.Context, w *menu.Writer, who principal.Principal, made plan.Plan) error {
	name, pinned := made.Entry.Name, false
	key := approval.Key{Server: name, GrantDigest: made.GrantDigest}
	for _, item := range g.Caller.Book.PinnedNames(key) {
		definition := g.Caller.Book.Pinned(key, item)
		if definition == nil || g.full(ctx, w) {
			continue
		}
		pinned = true
		if !g.Caller.Decide(who, name, tool.Definition{Name: item, JSON: definition}).Enabled() {
			continue
		}
		if err := w.Tool(tool.Ref{Server: name, Name: item}, definition); err != nil && g.menus.first(fmt.Sprint(name, "tool", item, err)) {
			g.Logger.WarnContext(ctx, "entry cannot be listed", "server", name, "kind", "tool", "name", item, "err", err)
		}
	}
	if pinned {
		return nil
	}
	return g.writeSnapshot(ctx, w, who, made.Entry)
}

// approvedDefinition returns a tool as it was approved: the pinned definition
// if the server offers another one by now, nil if there is none.
func (g *Gateway) approvedDefinition(made plan.Plan, t inventory.Tool) json.RawMessage {
	key := approval.Key{Server: made.Entry.Name, GrantDigest: made.GrantDigest}
	if g.Caller.Book.CheckTool(key, t.Name, t.Pin).State == approval.Approved {
		return t.JSON
	}
	return g.Caller.Book.Pinned(key, t.Name)
}

func (g *Gateway) writeSnapshot(ctx context.Context, w *menu.Writer, who principal.Principal, entry catalog.Server) error {
	for _, t := range entry.Tools {
		if g.full(ctx, w) {
			break
		}
		definition, err := meta.Promised(t)
		if err != nil {
			return fmt.Errorf("snapshot of %q: %w", entry.Name, err)
		}
		if !g.Caller.Decide(who, entry.Name, definition).Enabled() {
			continue
		}
		if err := w.Tool(tool.Ref{Server: entry.Name, Name: t.Name}, definition.JSON); err != nil {
			g.Logger.WarnContext(ctx, "entry cannot be listed", "server", entry.Name, "tool", t.Name, "err", err)
		}
	}
	return nil
}

// Name returns the name under which clients see a tool, as it is listed now,
// or else as it would be if nothing else were.
func (g *Gateway) Name(ref tool.Ref) string {
	g.menus.mu.Lock()
	defer g.menus.mu.Unlock()
	for _, kept := range g.menus.each.each {
		if name, ok := kept.value.Name(ref); ok {
			return name
		}
	}
	return g.Prefix.Name(ref, func(name string) bool { _, own := g.ownTool(principal.Principal{}, name); return own })
}

// instructions tell a model what is behind the gateway, and how to get more.
func (g *Gateway) instructions(ctx context.Context, req mcp.Request) string {
	_, s := g.sessionOf(req)
	names, err := g.listed(ctx, s.principal)
	if err != nil {
		g.Logger.ErrorContext(ctx, "read active servers", "err", err)
	}
	text := "dockgate runs MCP servers as isolated containers."
	if _, ok := g.ownTool(s.principal, "search_tools"); ok {
		enabled, err := g.Desk.Enabled(ctx, s.principal)
		if err != nil {
			g.Logger.ErrorContext(ctx, "read servers", "err", err)
		}
		if len(enabled) > 0 {
			text += " You can use these servers, which start on use: " + meta.Names(enabled) +
				". Find their tools with search_tools; execute_tool calls any, listed or not."
		}
	} else if len(names) > 0 {
		text += " Servers whose tools are listed: " + strings.Join(names, ", ") + "."
	}
	if _, ok := g.ownTool(s.principal, "mcp_find"); ok {
		text += " Find others with mcp_find and activate them with mcp_add; the user approves each on first use."
	}
	return text
}

// scopePrivate says that nobody but its client may keep an answer: what a
// client sees depends on who it is (MCP 2026-07-28: server/utilities/caching).
const scopePrivate = "private"

// list answers the list methods, in one page: what a client asked for is here
// already, and some never ask for the second page.
func (g *Gateway) list(ctx context.Context, method string, req mcp.Request) (*wire.Result, error) {
	seen, err := g.menu(ctx, req)
	if err != nil {
		return nil, err
	}
	member := strings.TrimSuffix(method, "/list")
	if member == "resources/templates" {
		member = "resourceTemplates"
	}
	if !modern(req) {
		return &wire.Result{Body: slices.Concat([]byte(`{"`+member+`":`), seen.ListForSessions(method), []byte("}"))}, nil
	}
	body := slices.Concat([]byte(`{"`+member+`":`), seen.List(method))
	return &wire.Result{Body: fmt.Appendf(body, `,"resultType":"complete","ttlMs":%d,"cacheScope":%q}`, g.Fresh.Milliseconds(), scopePrivate)}, nil
}

// Mirrored compares the headers of a request with the parameters that they
// must repeat, if the request is a call of a tool with such parameters. Values
// returns those of a header. The error says what differs.
func (g *Gateway) Mirrored(ctx context.Context, v *Visit, values func(header string) []string) error {
	if v.Batch() || len(v.Messages()) != 1 || v.Messages()[0].Method != "tools/call" {
		return nil
	}
	seen, err := g.menuOf(ctx, v.Principal)
	if err != nil {
		g.Logger.ErrorContext(ctx, "list of tools cannot be made", "err", err)
		return nil // the call finds the same
	}
	if !seen.Mirrors() {
		return nil
	}
	params := v.Messages()[0].Params
	var name string
	named := json.Unmarshal(jsonrpc.Lookup(params, "name"), &name) == nil
	ref, ok := seen.Tool(name, g.Desk.Catalog())
	if !named || !ok { // refused for that
		return nil
	}
	return seen.Mirrored(ref, jsonrpc.Lookup(params, "arguments"), values)
}
