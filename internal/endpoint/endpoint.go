// Package endpoint lets clients reach the gateway over HTTP (MCP:
// basic/transports, "Streamable HTTP"), in both eras of the protocol on one
// URL, on a TCP address or on a unix socket.
//
// It decides which requests come as far as the protocol: from which hosts and
// pages, by whom, how large, how many and for how long. It refuses the others
// with the status and the error code that the specification has for them, and
// never with a 500. It guarantees that a session is used by nobody but the
// principal who began it, that a client who leaves or floods costs the others
// nothing, and that at the end calls under way are waited for, within a bound,
// before anything else stops.
package endpoint

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/gateway"
)

// Path is where MCP is served.
const Path = "/mcp"

// Options are what an Endpoint needs.
type Options struct {
	Gateway *gateway.Gateway
	// Access says who makes a request.
	Access *access.Authenticator
	// Hosts are names under which clients may reach the gateway, on top of
	// those of this machine.
	Hosts []string
	// Origins are those of web pages that may use the gateway, as
	// "https://host:port". They need a proxy that answers CORS for them: the
	// gateway itself never does.
	Origins []string
	// SSE serves clients of MCP 2024-11-05 at [SSEPath].
	SSE    bool
	Limits Limits
	Logger *slog.Logger
}

// Limits bound what clients may do. Zero is the default.
type Limits struct {
	// Rate is how many messages a principal may send in a second, in the long
	// run, and Burst how many at once.
	Rate  float64
	Burst int
	// InFlight is how many requests of a principal are answered at a time.
	InFlight int
	// Sessions is how many sessions a principal may have open, Listens how many
	// streams that wait for news without a session.
	Sessions, Listens int
	// SessionTimeout is how long a session lives without a request.
	SessionTimeout time.Duration
	// KeepAlive is how often a stream without news says that it is there, so
	// that no proxy takes it for dead.
	KeepAlive time.Duration
	// Drain is how long calls under way may take at the end.
	Drain time.Duration
}

// The limits of an endpoint that is told none.
const (
	DefaultRate           = 500
	DefaultBurst          = 1000
	DefaultInFlight       = 256
	DefaultSessions       = 1000
	DefaultListens        = 100
	DefaultSessionTimeout = time.Hour
	DefaultKeepAlive      = 25 * time.Second
	DefaultDrain          = 10 * time.Second
)

func (l Limits) orDefaults() Limits {
	return Limits{
		Rate: cmp.Or(l.Rate, DefaultRate), Burst: cmp.Or(l.Burst, DefaultBurst),
		InFlight: cmp.Or(l.InFlight, DefaultInFlight),
		Sessions: cmp.Or(l.Sessions, DefaultSessions), Listens: cmp.Or(l.Listens, DefaultListens),
		SessionTimeout: cmp.Or(l.SessionTimeout, DefaultSessionTimeout),
		KeepAlive:      cmp.Or(l.KeepAlive, DefaultKeepAlive), Drain: cmp.Or(l.Drain, DefaultDrain),
	}
}

// An Endpoint is the gateway over HTTP. It is an [http.Handler].
type Endpoint struct {
	Options
	legacy, modern http.Handler
	served         atomic.Int64 // requests so far
	mux            http.ServeMux
	accounts       accounts

	mu       sync.Mutex
	draining bool
	ending   chan struct{} // closed when streams that wait for news are to end
	waiting  map[*answer]context.CancelFunc
	pairs    map[string]pair // by id
}

// New returns an Endpoint that listens nowhere yet.
func New(o Options) *Endpoint {
	o.Limits = o.Limits.orDefaults()
	e := &Endpoint{
		Options: o, accounts: accounts{limits: o.Limits},
		ending: make(chan struct{}), waiting: make(map[*answer]context.CancelFunc),
		pairs: make(map[string]pair),
	}
	server := func(*http.Request) *mcp.Server { return o.Gateway.Server() }
	e.legacy = carry(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: -1, DisableLocalhostProtection: true, // the gateway sees to timeouts, see [gateway.Visit]
	}))
	e.modern = carry(mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: -1, DisableLocalhostProtection: true,
	}))
	e.mux.HandleFunc(Path, e.serveMCP)
	if o.SSE {
		e.mux.HandleFunc(SSEPath, e.serveSSE)
	}
	e.mux.Handle(o.Access.MetadataPath(), o.Access.MetadataHandler())
	e.mux.HandleFunc("/healthz", e.health)
	e.mux.HandleFunc("/readyz", e.ready)
	return e
}

// carry hands the visit of a request on, which the SDK does with what it takes
// for a token.
func carry(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		visit, _ := ctx.Value(visitKey{}).(*gateway.Visit)
		return visit.TokenInfo(), nil
	}
	return auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
}

type visitKey struct{}

// ServeHTTP implements [http.Handler].
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.served.Add(1)
	e.mux.ServeHTTP(w, r)
}

// health says that the process lives.
func (e *Endpoint) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // who asked has left
}

// ready says whether new calls are taken.
func (e *Endpoint) ready(w http.ResponseWriter, r *http.Request) {
	if e.stopping() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	e.health(w, r)
}

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Serve serves the clients of a listener until ctx ends: then no call is taken
// any more, those under way end, at the latest with [Limits.Drain], and so do
// the sessions. The error is nil if ctx has ended it.
func (e *Endpoint) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: e, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(e.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	group, ctx := errgroup.WithContext(ctx)
	watching, watched := context.WithCancel(context.WithoutCancel(ctx)) // also while calls end
	group.Go(func() error { return e.Access.Run(watching) })
	group.Go(func() error { return e.rest(watching) })
	group.Go(func() error {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	group.Go(func() error {
		defer watched()
		<-ctx.Done()
		return e.stop(context.WithoutCancel(ctx), server)
	})
	return group.Wait()
}

// stop drains.
func (e *Endpoint) stop(ctx context.Context, server *http.Server) error {
	e.mu.Lock()
	if !e.draining {
		e.draining = true
		close(e.ending)
	}
	for _, cancel := range e.waiting {
		cancel()
	}
	e.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, e.Limits.Drain)
	defer cancel()
	err := server.Shutdown(bounded)
	if errors.Is(err, context.DeadlineExceeded) {
		e.Logger.Warn("calls under way were ended", "after", e.Limits.Drain)
		err = nil
	}
	return errors.Join(err, server.Close(), e.Gateway.Dismiss(ctx))
}

// restAfter is how long nobody has to ask for anything until memory is given
// back.
const restAfter = 5 * time.Second

// rest gives memory back to the machine when nobody asks for anything. The
// collector would keep several times what sessions need (see the command's
// settings of it), until it has a reason to run.
func (e *Endpoint) rest(ctx context.Context) error {
	ticker := time.NewTicker(restAfter)
	defer ticker.Stop()
	rested := int64(0)
	for seen := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := e.served.Load()
		if now == seen && now != rested {
			// Each collection halves the stacks of goroutines that only wait.
			runtime.GC()
			runtime.GC()
			debug.FreeOSMemory()
			rested = now
		}
		seen = now
	}
}

func (e *Endpoint) stopping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}
