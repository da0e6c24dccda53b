package door

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/sandbox"
)

const (
	// maxRedirects is how often one request may be sent on.
	maxRedirects = 5
	// loginTime bounds a request of a login.
	loginTime = 30 * time.Second
)

// errMethod is a redirect that would lose the message.
var errMethod = errors.New("the server redirects a POST in a way that makes it a GET")

// errDowngrade is a redirect that gives up encryption.
var errDowngrade = errors.New("the server redirects to a connection that is not encrypted")

// Connect makes the SDK's connection through the door. It reaches out to a
// server of the older transport; to others with the first message. The
// connection outlives ctx, which bounds only how long connecting may take.
func (d *Door) Connect(ctx context.Context) (mcp.Connection, error) {
	if d.older {
		return d.connectSSE(ctx)
	}
	return (&mcp.StreamableClientTransport{
		Endpoint: d.endpoint.String(), HTTPClient: d.client(), MaxEventSize: d.limit, OAuthHandler: d.oauth,
	}).Connect(ctx)
}

// connectSSE opens the one stream of the older transport.
func (d *Door) connectSSE(ctx context.Context) (mcp.Connection, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	conn, err := (&mcp.SSEClientTransport{Endpoint: d.endpoint.String(), HTTPClient: d.client(), MaxEventSize: d.limit}).Connect(lasting)
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

// client returns an HTTP client whose requests pass the door.
func (d *Door) client() *http.Client {
	return &http.Client{
		Transport: d,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case req.Method != via[0].Method:
				return errMethod
			}
			return nil
		},
	}
}

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
