package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

const (
	resourceUpdated   = "notifications/resources/updated"
	elicitationDone   = "notifications/elicitation/complete"
	logged            = "notifications/message"
	subscriptionAcked = "notifications/subscriptions/acknowledged"
)

// A watcher is told of changes: a client with sessions for as long as it is
// there, or one without for as long as it listens.
type watcher struct {
	session *session
	to      *mcp.ServerSession
	ctx     context.Context //nolint:containedctx // of the request that listens; it says which stream the news go on
	// id is the JSON-RPC id of the request that listens, nil for a client with
	// sessions.
	id    json.RawMessage
	lists mcp.NotificationSubscriptions

	mu   sync.Mutex
	subs map[string]*fleet.Subscription // by URI
	// held are the news that wait until the client knows that it is listened
	// for; holds says that there may be more.
	held  []func()
	holds bool
}

// hold keeps news back, and reports whether it did.
func (w *watcher) hold(tell func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.holds {
		return false
	}
	if len(w.held) < maxLetters {
		w.held = append(w.held, tell)
	}
	return true
}

// release tells what was held back, and whatever comes from now on.
func (w *watcher) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tell := range w.held {
		tell()
	}
	w.held, w.holds = nil, false
}

// watches reports whether news of a server's resource are for the watcher. They
// may be of a part of what it subscribed to.
func (w *watcher) watches(server, scope, uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sub := range w.subs {
		if sub.Server == server && sub.Scope == scope && strings.HasPrefix(uri, sub.URI) {
			return true
		}
	}
	return false
}

// put keeps a subscription and returns the one that it replaces.
func (w *watcher) put(uri string, sub *fleet.Subscription) *fleet.Subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.subs[uri]
	if w.subs == nil {
		w.subs = make(map[string]*fleet.Subscription)
	}
	w.subs[uri] = sub
	if sub == nil {
		delete(w.subs, uri)
	}
	return before
}

func (w *watcher) close(ctx context.Context) {
	w.mu.Lock()
	subs := w.subs
	w.subs = nil
	w.mu.Unlock()
	for _, sub := range subs {
		sub.Close(ctx)
	}
}

// tell posts news to a watcher.
func (g *Gateway) tell(w *watcher, method string, params json.RawMessage) {
	if w.id != nil {
		addressed, err := era.WithMeta(params, era.MetaSubscription, w.id)
		if err != nil {
			g.Logger.Debug("news not delivered", "err", err)
			return
		}
		params = addressed
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if post := func() { g.post(w.ctx, w.session, w.to, method, params) }; !w.hold(post) {
		post()
	}
}

func (g *Gateway) watchers() []*watcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Collect(maps.Keys(g.listening))
	for _, s := range g.sessions {
		all = append(all, &s.watcher)
	}
	return all
}

// maxWatched is how many resources one client, or one request that listens,
// may subscribe to.
const maxWatched = 1000

// subscribe answers resources/subscribe of a client with sessions.
func (g *Gateway) subscribe(ctx context.Context, req *mcp.SubscribeRequest) (mcp.Result, error) {
	_, s := g.sessionOf(req)
	err := g.watch(ctx, req, &s.watcher, req.Params.URI, 0)
	if err != nil {
		return nil, failure(tool.Ref{Name: req.Params.URI}, err)
	}
	return &wire.Result{Body: json.RawMessage("{}")}, nil
}

// watch subscribes a watcher to a resource. The wait for a person is the
// usual one if it is zero.
func (g *Gateway) watch(ctx context.Context, req mcp.Request, w *watcher, uri string, wait time.Duration) error {
	server, err := g.holder(ctx, req, "resource", uri)
	if err != nil {
		return err
	}
	w.mu.Lock()
	full := len(w.subs) >= maxWatched
	w.mu.Unlock()
	if full {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many subscriptions"}
	}
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	client, _ := g.client(ctx, req, params)
	client.ApprovalWait = wait
	sub, err := g.Caller.Subscribe(ctx, call.Request{
		Client: client, Server: server, Method: "resources/subscribe", Item: uri, Params: params,
	})
	if err != nil {
		return err
	}
	w.put(uri, sub).Close(context.WithoutCancel(ctx))
	return nil
}

// unsubscribe answers resources/unsubscribe.
func (g *Gateway) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) (mcp.Result, error) {
	_, s := g.sessionOf(req)
	s.watcher.put(req.Params.URI, nil).Close(context.WithoutCancel(ctx))
	return &wire.Result{Body: json.RawMessage("{}")}, nil
}

type listenKey struct{}

// listen answers subscriptions/listen: it returns when the client, or the
// gateway, is done with it. The SDK has one such request for each session at
// most, so all it does here is to answer an empty one: that says the id, which
// it tells nobody else.
func (g *Gateway) listen(ctx context.Context, req *mcp.SubscriptionsListenRequest, next mcp.MethodHandler) (mcp.Result, error) {
	if req.Params.Notifications == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "missing required member notifications"}
	}
	to, s := g.sessionOf(req)
	wanted := *req.Params.Notifications
	w := &watcher{session: s, to: to, ctx: ctx, lists: wanted, holds: true}
	defer w.close(context.WithoutCancel(ctx))
	w.lists.ResourceSubscriptions = nil
	for _, uri := range wanted.ResourceSubscriptions {
		if err := g.watch(ctx, req, w, uri, time.Nanosecond); err != nil { // nobody waits for a person here
			g.Logger.DebugContext(ctx, "not subscribed", "session", s.id, "err", err)
			continue
		}
		w.lists.ResourceSubscriptions = append(w.lists.ResourceSubscriptions, uri)
	}
	empty := *req
	params := *req.Params
	params.Notifications = &mcp.NotificationSubscriptions{}
	empty.Params = &params
	result, err := next(context.WithValue(ctx, listenKey{}, func(id json.RawMessage) (json.RawMessage, error) {
		w.id = id
		g.mu.Lock()
		defer g.mu.Unlock()
		g.listening[w] = struct{}{}
		return json.Marshal(map[string]any{
			"notifications": w.lists, "_meta": map[string]json.RawMessage{era.MetaSubscription: id},
		})
	}), "subscriptions/listen", &empty)
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.listening, w)
	}()
	if err != nil {
		return nil, err
	}
	w.release() // the acknowledgement comes first
	if w.idle() {
		return result, nil
	}
	select {
	case <-ctx.Done():
	case <-s.ended.Done():
	}
	return result, nil
}

// idle reports that there is nothing to listen for.
func (w *watcher) idle() bool {
	return !w.lists.ToolsListChanged && !w.lists.PromptsListChanged && !w.lists.ResourcesListChanged &&
		len(w.lists.ResourceSubscriptions) == 0
}

// listens reports whether a watcher wants to know that a list has changed.
func (w *watcher) listens(method string) bool {
	switch method {
	case "notifications/tools/list_changed":
		return w.lists.ToolsListChanged
	case "notifications/prompts/list_changed":
		return w.lists.PromptsListChanged
	default:
		return w.lists.ResourcesListChanged
	}
}

// Heard passes on what servers notify outside of calls: to whom it is for, as
// far as that is known, and never beyond those who use the server.
func (g *Gateway) Heard(n fleet.Notice) {
	switch n.Method {
	case resourceUpdated:
		var uri string
		if json.Unmarshal(jsonrpc.Lookup(n.Params, "uri"), &uri) != nil {
			return
		}
		for _, w := range g.watchers() {
			if w.watches(n.Server, n.Scope, uri) {
				g.tell(w, n.Method, n.Params)
			}
		}
	case logged:
		for _, w := range g.watchers() {
			if w.id == nil && w.session.uses(n) && w.session.wants(n.Params) {
				g.tell(w, n.Method, n.Params)
			}
		}
	case elicitationDone:
		var id string
		if json.Unmarshal(jsonrpc.Lookup(n.Params, "elicitationId"), &id) != nil {
			return
		}
		for _, w := range g.watchers() {
			if w.id == nil && w.session.opened(n.Server, id) {
				g.tell(w, n.Method, n.Params)
			}
		}
	}
}

// uses reports whether a server is its principal's alone, so that what it says
// outside of calls can be theirs.
func (s *session) uses(n fleet.Notice) bool {
	if len(n.Owners) != 1 || n.Owners[0] != s.principal.ID {
		return false
	}
	own := call.Client{Principal: s.principal, Session: s.id}.SessionScope()
	return n.Scope == "" || n.Scope == s.principal.ID || n.Scope == own
}

// wants reports whether a log message is grave enough for the client.
func (s *session) wants(params json.RawMessage) bool {
	return graveEnough(params, s.logLevel())
}

func graveEnough(params json.RawMessage, level string) bool {
	var said string
	if level == "" || json.Unmarshal(jsonrpc.Lookup(params, "level"), &said) != nil {
		return false
	}
	return era.Severity(said) >= era.Severity(level)
}

func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// maxOpened is how many addresses of servers a client is remembered for, which
// say later that they are done with it.
const maxOpened = 100

// open remembers that a client was sent an address to open.
func (s *session) open(server, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.addresses) >= maxOpened {
		s.addresses = s.addresses[1:]
	}
	s.addresses = append(s.addresses, [2]string{server, id})
}

func (s *session) opened(server, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.addresses, [2]string{server, id})
}
