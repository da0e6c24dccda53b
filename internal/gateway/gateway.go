// Package gateway is the one endpoint: it meets MCP clients of both eras,
// lists for them what the servers behind it offer, and hands their requests
// to the way of a call.
//
// It decides which names clients see and which server a name belongs to. It
// starts nothing to answer a list. It guarantees that definitions, arguments,
// results and progress pass as the bytes they are.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/gateway/menu"
	"github.com/dockgate/dockgate/internal/gateway/park"
	"github.com/dockgate/dockgate/internal/gateway/wire"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

// A Group is a part of the list that can be switched off; see [meta.Group] for
// those of the gateway's own tools.
const (
	// Active are the tools of the servers that are active for the client.
	Active meta.Group = "active"
	// Direct lists the tools of every approved server in place of Active.
	Direct meta.Group = "direct"
)

// Options are what a Gateway needs; all but Bounds, Exposed and Phrase are
// required.
type Options struct {
	Version string
	Caller  *call.Caller
	Desk    *meta.Desk
	Fleet   *fleet.Fleet
	// Expose are the groups that are listed.
	Expose []meta.Group
	// Exposed returns the groups that are listed for a caller in place of these;
	// nil is these for everybody.
	Exposed func(who principal.Principal) []meta.Group
	Prefix  menu.Prefix
	// Bounds are what one client sees at most.
	Bounds Bounds
	// Fresh is how long a client without a session may use a list without
	// asking again; zero is not at all. One that listens hears of changes anyhow.
	Fresh time.Duration
	// Approved returns the names of the servers that are approved.
	Approved func() []string
	// Phrase returns the text of a failure of ours with the commands in it as
	// they are typed where the gateway runs; nil leaves them as they are.
	Phrase func(text string) string
	Logger *slog.Logger
}

// A Gateway serves any number of clients.
type Gateway struct {
	Options
	server *mcp.Server
	own    []meta.Tool
	menus  menus
	parked park.Lot[*rider]
	seal   park.Seal
	// implementation is what the gateway calls itself.
	implementation json.RawMessage

	mu       sync.Mutex
	sessions map[*mcp.ServerSession]*session
	// visiting are those over HTTP, by the ids that their requests name.
	visiting map[string]*session
	// listening are the requests of clients without sessions that listen.
	listening map[*watcher]struct{}
	// visitors are the principals over HTTP who use the protocol without sessions.
	visitors recent[*session]
	visits   sync.WaitGroup // of sessions over HTTP
}

// New returns a Gateway that serves nobody yet.
func New(o Options) (*Gateway, error) {
	own, err := meta.Tools()
	if err != nil {
		return nil, err
	}
	impl := &mcp.Implementation{Name: "dockgate", Title: "dockgate", Version: o.Version}
	implementation, err := json.Marshal(impl)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		Options: o, own: own, implementation: implementation, seal: park.NewSeal(), listening: map[*watcher]struct{}{},
		sessions: map[*mcp.ServerSession]*session{},
		visiting: map[string]*session{},
	}
	g.server = mcp.NewServer(
		impl,
		&mcp.ServerOptions{
			Logger:       slog.New(quietHandler{o.Logger.Handler()}),
			Capabilities: capabilities(),
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) {
				c.CacheScope, c.TTLMs = scopePrivate, int(o.Fresh.Milliseconds())
			},
		},
	)
	g.server.AddReceivingMiddleware(g.receive)
	g.server.AddSendingMiddleware(wire.Send(acknowledgement))
	return g, nil
}

func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Tools:       &mcp.ToolCapabilities{ListChanged: true},
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Logging:     &mcp.LoggingCapabilities{}, //nolint:staticcheck // deprecated, and in use
		Completions: &mcp.CompletionCapabilities{},
	}
}

// Serve serves one client over a pair of streams (MCP: basic/transports/stdio)
// until it leaves or ctx ends, and closes them. Servers that belong to this
// client's session alone end with it.
func (g *Gateway) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, who principal.Principal) error {
	return g.ServeVisit(ctx, in, out, &Visit{Principal: who})
}

// ServeVisit is Serve for the client of a [Visit] without a body, whose Begun is
// told of each call.
func (g *Gateway) ServeVisit(ctx context.Context, in io.ReadCloser, out io.WriteCloser, v *Visit) error {
	connection, s, err := g.connect(ctx, wire.NewStdio(in, out), v)
	if err != nil {
		return fmt.Errorf("serve client: %w", err)
	}
	defer g.leave(context.WithoutCancel(ctx), connection, s)
	ended := make(chan error, 1)
	go func() { ended <- connection.Wait() }()
	select {
	case err := <-ended:
		return unlessLeft(err)
	case <-ctx.Done():
		s.end() // the SDK would wait for calls under way
		return unlessLeft(errors.Join(connection.Close(), <-ended))
	}
}

// codeClosing is how the SDK ends requests that are open when a connection closes.
const codeClosing = -32004

// unlessLeft drops the errors with which a client's leaving shows, or our own.
func unlessLeft(err error) error {
	var closing *sdkjsonrpc.Error
	switch {
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe): // by us, while a read or a write was under way
		return nil
	case errors.As(err, &closing) && closing.Code == codeClosing:
		return nil
	}
	return err
}

// A quietHandler keeps the SDK's tale of each session for those who ask for it.
type quietHandler struct{ slog.Handler }

// Enabled lets warnings pass, and everything if the logger says everything.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || h.Handler.Enabled(ctx, slog.LevelDebug))
}

// Changed looks whether what clients see has changed, and tells them if so.
func (g *Gateway) Changed(ctx context.Context) {
	changed, err := g.refresh(ctx)
	if err != nil {
		g.Logger.ErrorContext(ctx, "list of tools cannot be made", "err", err)
	}
	// The SDK tells its clients with sessions of a change of its own features
	// only. Ours are answered in the middleware, so a feature nobody sees is
	// replaced by itself.
	news := map[string]bool{
		"notifications/tools/list_changed":     changed["tools/list"],
		"notifications/prompts/list_changed":   changed["prompts/list"],
		"notifications/resources/list_changed": changed["resources/list"] || changed["resources/templates/list"],
	}
	if news["notifications/tools/list_changed"] {
		g.server.AddTool(&mcp.Tool{Name: "dockgate", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	}
	if news["notifications/prompts/list_changed"] {
		g.server.AddPrompt(&mcp.Prompt{Name: "dockgate"}, nil)
	}
	if news["notifications/resources/list_changed"] {
		g.server.AddResource(&mcp.Resource{Name: "dockgate", URI: "dockgate:///"}, nil)
	}
	for _, w := range g.watchers() {
		for method, ok := range news {
			if ok && w.id != nil && w.listens(method) {
				g.tell(w, method, nil)
			}
		}
	}
}

// receive answers what is about servers and leaves the protocol to the SDK.
func (g *Gateway) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, done := g.during(ctx, method, req)
		defer done()
		answer, err := g.answer(ctx, method, req)
		if err != nil {
			return nil, wire.ToSDK(err)
		}
		if raw, ok := answer.(*wire.Result); ok {
			raw.Past = g.depository(req)
		}
		if answer != nil {
			return answer, nil
		}
		if err := g.meet(ctx, req); err != nil {
			return nil, wire.ToSDK(err)
		}
		if req, ok := req.(*mcp.SubscriptionsListenRequest); ok {
			result, err := g.listen(ctx, req, next)
			return result, wire.ToSDK(err)
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, wire.ToSDK(err)
		}
		g.introduce(ctx, req, result)
		return result, nil
	}
}

// answer returns nil for a method that is the SDK's.
func (g *Gateway) answer(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return g.list(ctx, method, req)
	case "tools/call":
		return g.callTool(ctx, req.(*mcp.CallToolRequest))
	case "prompts/get":
		return g.getPrompt(ctx, req.(*mcp.GetPromptRequest))
	case "resources/read":
		return g.readResource(ctx, req.(*mcp.ReadResourceRequest))
	case "completion/complete":
		return g.complete(ctx, req.(*mcp.CompleteRequest))
	case "resources/subscribe":
		return g.subscribe(ctx, req.(*mcp.SubscribeRequest))
	case "resources/unsubscribe":
		return g.unsubscribe(ctx, req.(*mcp.UnsubscribeRequest))
	}
	return nil, nil //nolint:nilnil // the two together say that the SDK answers
}

// meet remembers what a client says of itself before the SDK answers.
func (g *Gateway) meet(ctx context.Context, req mcp.Request) error {
	switch req := req.(type) {
	case *mcp.ServerRequest[*mcp.InitializeParams]:
		params, err := paramsOf(req)
		if err != nil {
			return err
		}
		connection, s := g.sessionOf(req)
		if connection.InitializeParams() != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session has begun already: initialize begins one"}
		}
		// There is no initialize in later versions. The SDK agrees on an older
		// one, but would take the client for a modern one all the same.
		if era.IsModern(req.Params.ProtocolVersion) {
			req.Params.ProtocolVersion = era.Legacy
		}
		s.declare(jsonrpc.Lookup(params, "capabilities"))
	case *mcp.ServerRequest[*mcp.SetLoggingLevelParams]: //nolint:staticcheck // deprecated, and in use
		level := string(req.Params.Level)
		if era.Severity(level) < 0 {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown log level " + level}
		}
		_, s := g.sessionOf(req)
		s.mu.Lock()
		s.level = level
		s.mu.Unlock()
	case *mcp.SubscriptionsListenRequest:
		if !modern(req) {
			return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "subscriptions/listen is of versions without sessions"}
		}
	case *mcp.ServerRequest[*mcp.CancelledParams]:
		params, err := paramsOf(req)
		if err != nil {
			return err
		}
		_, s := g.sessionOf(req)
		s.attendance.cancelled(params) // the SDK gives up those that it answers
	case *mcp.RootsListChangedRequest:
		params, err := paramsOf(req)
		if err != nil {
			return err
		}
		_, s := g.sessionOf(req)
		g.Fleet.RootsChanged(ctx, fleet.From{Principal: s.principal.ID, Session: s.id}, params)
	}
	return nil
}

// exposes reports whether a group is listed for a caller.
func (g *Gateway) exposes(who principal.Principal, group meta.Group) bool {
	groups := g.Expose
	if g.Exposed != nil {
		groups = g.Exposed(who)
	}
	return slices.Contains(groups, group)
}

// ownTool returns one of the gateway's own tools, if it is listed for a caller.
func (g *Gateway) ownTool(who principal.Principal, name string) (meta.Tool, bool) {
	for _, t := range g.own {
		if t.Name == name {
			return t, g.exposes(who, t.Group)
		}
	}
	return meta.Tool{}, false
}

// ownTools returns the gateway's own tools that are listed for a caller.
func (g *Gateway) ownTools(who principal.Principal) []meta.Tool {
	return slices.DeleteFunc(slices.Clone(g.own), func(t meta.Tool) bool { return !g.exposes(who, t.Group) })
}

// modern reports whether a request is of the era without sessions.
func modern(req mcp.Request) bool {
	versioned, ok := req.(interface{ ProtocolVersion() string })
	return ok && era.IsModern(versioned.ProtocolVersion())
}

// introduce writes what is behind the gateway into the handshake, as it is at
// that moment.
func (g *Gateway) introduce(ctx context.Context, req mcp.Request, result mcp.Result) {
	switch result := result.(type) {
	case *mcp.InitializeResult:
		result.Instructions = g.instructions(ctx, req)
	case *mcp.DiscoverResult:
		result.Instructions = g.instructions(ctx, req)
	}
}
