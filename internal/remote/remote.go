// Package remote reaches MCP servers over HTTP: those that somebody else runs,
// and those that listen on a port in a container of ours. What it opens is a
// stream of JSON-RPC lines like that of a container, so that whoever holds the
// conversation need not know the difference.
//
// It decides which addresses a server may have, what each request carries, and
// when a lost stream is opened again. It refuses to send anything to another
// origin than the one that was approved, to follow a redirect there, to
// connect to an address that is not public unless the grant names it, and
// messages longer than the limit.
//
// It guarantees that secrets leave in the headers and the query of requests to
// the approved origin and nowhere else, that no error names them, that one
// request that fails costs the others nothing, and that after Close nothing of
// a stream is left. The messages are the SDK's transport's, untouched within
// their envelope.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// Bounds of a connection.
const (
	dialTime  = 10 * time.Second
	idleTime  = 90 * time.Second
	maxHeader = 256 << 10
)

// An Address is where a server is reached and what its requests carry.
type Address struct {
	// URL is http or https. ${ENV} in its query stands for a secret.
	URL string
	// Transport is [catalog.StreamableHTTP] or [catalog.SSE].
	Transport string
	// Headers are templates; ${ENV} stands for a secret.
	Headers map[string]string
	// Secrets are the values by their variables.
	Secrets map[string]secret.Value
	// Granted are addresses that are not public and may be connected to, apart
	// from those that the URL names itself.
	Granted []netip.Prefix
}

// Options are the settings of streams. The zero value is usable.
type Options struct {
	// MaxMessage is the longest message accepted, in bytes;
	// [jsonrpc.DefaultLimit] if zero.
	MaxMessage int
	// Dial, if set, makes the connections, and the addresses are not checked:
	// it is for servers that are not reached over a network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OAuth, if set, gives requests their tokens, and gets new ones.
	OAuth auth.OAuthHandler
	// TLS, if set, is how certificates are checked; else by the system's roots.
	TLS *tls.Config
	// Logger receives what is tolerated, at debug level; nil discards it.
	Logger *slog.Logger

	noFarewell bool // the session ends with its server
}

// Open makes a stream to a server. It connects to a server of the older
// transport; to others with the first message. An address that cannot be used
// is a [*FieldError]. The stream ends with an [*AddressError], an
// [*OriginError] or a [*StatusError] if the first message does not get
// through; what keeps a later request from the server is that request's error.
func Open(ctx context.Context, address Address, options Options) (sandbox.Process, error) {
	p, err := dial(ctx, address, options)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func dial(ctx context.Context, address Address, options Options) (*process, error) {
	endpoint, err := url.Parse(address.URL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, &FieldError{"remote.url", "is not an http or https URL"}
	}
	endpoint.Fragment = ""
	d := &door{endpoint: endpoint, limit: options.MaxMessage, oauth: options.OAuth, farewell: !options.noFarewell}
	if d.limit <= 0 {
		d.limit = jsonrpc.DefaultLimit
	}
	if d.header, err = headers(address.Headers, address.Secrets); err != nil {
		return nil, err
	}
	if d.query, err = query(endpoint, address.Secrets); err != nil {
		return nil, err
	}
	d.base = transport(endpoint, address.Granted, options)
	var conn mcp.Connection
	oldSSE := address.Transport == catalog.SSE
	d.signs = oldSSE
	switch {
	case oldSSE:
		conn, err = connectSSE(ctx, d)
	case address.Transport == catalog.StreamableHTTP:
		conn, err = (&mcp.StreamableClientTransport{
			Endpoint: endpoint.String(), HTTPClient: client(d), MaxEventSize: d.limit, OAuthHandler: options.OAuth,
		}).Connect(ctx)
	default:
		return nil, &FieldError{"remote.transport", fmt.Sprintf("is %q, want %s or %s", address.Transport, catalog.StreamableHTTP, catalog.SSE)}
	}
	if err != nil {
		d.base.CloseIdleConnections()
		return nil, plain(err)
	}
	return &process{stream: open(ctx, conn, d, oldSSE, logged(options.Logger)), id: endpoint.Host}, nil
}

// loginTime bounds a request of a login.
const loginTime = 30 * time.Second

// NewClient returns a client for the requests of a login to a remote server: to
// its own origin, and to the issuers that it names, at public addresses or
// those that its grant names.
func NewClient(server sandbox.Remote) (*http.Client, error) {
	endpoint, err := url.Parse(server.URL)
	if err != nil {
		return nil, &FieldError{"remote.url", "is not a URL"}
	}
	granted, err := prefixes(server.Addresses)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: transport(endpoint, granted, Options{}),
		Timeout:   loginTime,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case via[0].Method != http.MethodGet: // what it carries is for nobody else
				return http.ErrUseLastResponse
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
				return errDowngrade
			}
			return nil
		},
	}, nil
}

// errDowngrade is a redirect that gives up encryption.
var errDowngrade = errors.New("the server redirects to a connection that is not encrypted")

// connectSSE opens the one stream of the older transport. It outlives ctx,
// which bounds only how long the server may take to begin it.
func connectSSE(ctx context.Context, d *door) (mcp.Connection, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	conn, err := (&mcp.SSEClientTransport{Endpoint: d.endpoint.String(), HTTPClient: client(d), MaxEventSize: d.limit}).Connect(lasting)
	if !stop() && err == nil { // ctx has ended
		_ = conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &lastingConn{Connection: conn, cancel: cancel}, nil
}

// A lastingConn ends the request that it lives on.
type lastingConn struct {
	mcp.Connection
	cancel context.CancelFunc
}

func (c *lastingConn) Close() error {
	defer c.cancel()
	return c.Connection.Close()
}

// transport makes connections to the server, and to no address that is not
// granted. There is no proxy: it would resolve names where nobody checks them.
func transport(endpoint *url.URL, granted []netip.Prefix, options Options) *http.Transport {
	guard := Guard{Granted: slices.Concat(Granted(endpoint), granted)}
	dial := options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, KeepAlive: dialTime, Control: guard.Control}).DialContext
	}
	config := options.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTime,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
	}
}

// A process is a stream in the place of a container.
type process struct {
	*stream
	id string
}

// ID returns the server's host.
func (p *process) ID() string { return p.id }

// Done is closed when the connection has ended.
func (p *process) Done() <-chan struct{} { return p.done }

// Exit says that there is no exit code.
func (p *process) Exit() sandbox.Exit { return sandbox.Exit{Reason: p.err.Error()} }

// Stderr is empty: a remote server writes none that is seen here.
func (p *process) Stderr() string { return "" }

// Close ends the session on the server and the connections to it.
func (p *process) Close() error {
	p.shut()
	return nil
}
