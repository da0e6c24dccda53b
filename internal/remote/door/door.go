// Package door is the only way out to one remote server over HTTP.
//
// It decides which addresses may be connected to, what each request carries,
// and what of an answer is read. It refuses to send anything to another origin
// than the one that was approved, to follow a redirect there, to connect to an
// address that is not public unless the grant names it, and answers longer than
// the limit.
//
// It guarantees that secrets leave in the headers and the query of requests to
// the approved origin and nowhere else, that no error names them, and that what
// concerns one request does not end the session of the others.
package door

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/remote/mirror"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// Bounds of a connection.
const (
	dialTime  = 10 * time.Second
	idleTime  = 90 * time.Second
	maxHeader = 256 << 10
)

// A Door is the way out to one server. Every request passes it, redirects too;
// it adds what nobody else is to see, and keeps what comes back within bounds.
// Its methods may be called at the same time. Close it when done.
type Door struct {
	endpoint *url.URL // with its templates
	query    string   // the endpoint's, with secrets
	header   http.Header
	limit    int  // of a message, in bytes
	older    bool // the server speaks the older transport
	hosted   bool // the server is in a container of ours
	// oauth, if set, is asked about refusals: by the SDK, or here for the older
	// transport, because the SDK's does not know it.
	oauth auth.OAuthHandler
	base  *http.Transport
	// version is what the legacy handshake has agreed on; nil before.
	version atomic.Pointer[string]
	// reached reports that the server has answered something.
	reached atomic.Bool
}

// Options are the settings of doors. The zero value is usable.
type Options struct {
	// MaxMessage is the longest message accepted, in bytes;
	// [jsonrpc.DefaultLimit] if zero.
	MaxMessage int
	// Dial, if set, makes the connections, and the addresses are not checked. It
	// is for servers in our containers: their sessions end with them, unsaid.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OAuth, if set, gives requests their tokens, and gets new ones.
	OAuth auth.OAuthHandler
	// TLS, if set, is how certificates are checked; else by the system's roots.
	TLS *tls.Config
}

// New makes the door to a server. The secrets, by their variables, take the
// place of each ${VARIABLE} in its headers and in the query of its URL. What
// cannot be used is a [*FieldError]. Nothing is connected to before [Door.Connect].
func New(server sandbox.Remote, secrets map[string]secret.Value, options Options) (*Door, error) {
	granted, err := prefixes(server.Addresses)
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(server.URL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, &FieldError{"remote.url", "is not an http or https URL"}
	}
	endpoint.Fragment = ""
	d := &Door{endpoint: endpoint, limit: options.MaxMessage, oauth: options.OAuth, hosted: options.Dial != nil}
	if d.limit <= 0 {
		d.limit = jsonrpc.DefaultLimit
	}
	if d.header, err = headers(server.Headers, secrets); err != nil {
		return nil, err
	}
	if d.query, err = query(endpoint, secrets); err != nil {
		return nil, err
	}
	switch server.Transport {
	case catalog.SSE:
		d.older = true
	case catalog.StreamableHTTP:
	default:
		return nil, &FieldError{"remote.transport", fmt.Sprintf("is %q, want %s or %s", server.Transport, catalog.StreamableHTTP, catalog.SSE)}
	}
	d.base = transport(endpoint, granted, options)
	return d, nil
}

// transport makes connections to the server, and to no address that is not
// granted. There is no proxy: it would resolve names where nobody checks them.
func transport(endpoint *url.URL, granted []netip.Prefix, options Options) *http.Transport {
	guard := guard{granted: slices.Concat(named(endpoint), granted)}
	dial := options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime, KeepAlive: dialTime, Control: guard.control}).DialContext
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

// Host is the host of the server's URL, with its port if it names one.
func (d *Door) Host() string { return d.endpoint.Host }

// Older reports whether the server speaks the older transport, HTTP+SSE.
func (d *Door) Older() bool { return d.older }

// Hosted reports whether the server is in a container of ours.
func (d *Door) Hosted() bool { return d.hosted }

// Reached reports whether the server has answered anything yet.
func (d *Door) Reached() bool { return d.reached.Load() }

// Agree notes the version that a legacy handshake has agreed on: every later
// request names it. One that no header can hold is not noted.
func (d *Door) Agree(version string) {
	if mirror.IsToken(version) {
		d.version.Store(&version)
	}
}

// Agreed reports whether a legacy handshake has agreed on a version.
func (d *Door) Agreed() bool { return d.version.Load() != nil }

// Close closes the connections that nobody uses.
func (d *Door) Close() { d.base.CloseIdleConnections() }
