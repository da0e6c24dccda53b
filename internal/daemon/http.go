package daemon

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/endpoint"
)

// HTTP says how the gateway is reached over HTTP.
type HTTP struct {
	// Listen is "HOST:PORT" or "unix:PATH"; empty for none.
	// It is not read from files: what MCP clients start speaks on its standard
	// input and output.
	Listen string `yaml:"-"`
	// URL is the gateway's as its clients know it, if that is not where it listens.
	URL string `yaml:"url"`
	// Hosts are names of this gateway, on top of those of this machine, and
	// Origins those of web pages that may use it.
	Hosts   []string `yaml:"hosts"`
	Origins []string `yaml:"origins"`
	// SSE serves clients of MCP 2024-11-05 too.
	SSE bool `yaml:"sse"`
	// Rate is how many messages a caller may send in a second, Burst how many
	// at once; zero is 500 and 1,000.
	Rate  float64 `yaml:"rate"`
	Burst int     `yaml:"burst"`
	// MaxInFlight is how many requests of a caller are answered at a time;
	// MaxSessions how many sessions a caller may have; MaxListens how many
	// streams that wait for news. Zero is 256, 1,000 and 100.
	MaxInFlight int `yaml:"max_in_flight"`
	MaxSessions int `yaml:"max_sessions"`
	MaxListens  int `yaml:"max_listens"`
	// SessionTimeout is how long a session lives without a request; zero is 1 h.
	SessionTimeout Duration `yaml:"session_timeout"`
	// Drain is how long calls under way may take at the end; zero is 10 s.
	Drain Duration `yaml:"drain"`
	// AllowUnauthenticated lets everybody in who reaches the address, as the
	// local user. It is not read from files.
	AllowUnauthenticated bool `yaml:"-"`
}

func (h HTTP) limits() endpoint.Limits {
	return endpoint.Limits{
		Rate: h.Rate, Burst: h.Burst, InFlight: h.MaxInFlight, Sessions: h.MaxSessions, Listens: h.MaxListens,
		SessionTimeout: time.Duration(h.SessionTimeout), Drain: time.Duration(h.Drain),
	}
}

func (h HTTP) problem() string {
	if h.Rate < 0 || min(h.Burst, h.MaxInFlight, h.MaxSessions, h.MaxListens) < 0 {
		return "a negative number"
	}
	return ""
}

// ServeHTTP serves clients over HTTP until ctx ends. It calls listening with
// the address, "unix:PATH" or a URL, when clients can connect.
func (d *Daemon) ServeHTTP(ctx context.Context, listening func(address string) error) error {
	h := d.Config.HTTP
	listener, err := endpoint.Listen(ctx, h.Listen)
	if err != nil {
		return err
	}
	err = d.serveAt(ctx, listener, listening)
	return errors.Join(err, unlessClosed(listener.Close()))
}

func (d *Daemon) serveAt(ctx context.Context, listener net.Listener, listening func(address string) error) error {
	h, at := d.Config.HTTP, listener.Addr()
	if h.AllowUnauthenticated {
		if !access.MayOpen(at.Network(), at.String()) {
			return &OpenError{Address: h.Listen}
		}
		d.Logger.Warn("no token is asked for: whoever reaches this address is the local user", "address", h.Listen)
	}
	front := endpoint.New(endpoint.Options{
		Gateway: d.Gateway,
		Access:  d.door(),
		Hosts:   h.Hosts, Origins: h.Origins, SSE: h.SSE, Limits: h.limits(), Logger: d.Logger,
	})
	address := "http://" + at.String() + endpoint.Path
	if at.Network() == "unix" {
		address = h.Listen
	}
	if err := listening(address); err != nil {
		return err
	}
	return d.run(ctx, func(ctx context.Context) error { return front.Serve(ctx, listener) })
}

// An OpenError says that anybody who reaches an address could use the gateway.
type OpenError struct{ Address string }

// Error names the address.
func (e *OpenError) Error() string {
	return "--allow-unauthenticated: other machines may reach " + e.Address
}

// Hint says what is possible.
func (e *OpenError) Hint() string {
	return "make tokens with: dockgate token new NAME; or listen on 127.0.0.1, or on unix:PATH"
}

func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
