package daemon

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/policy"
)

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
		Hosts:   h.Names(), Origins: h.Origins, SSE: h.SSE, Limits: limits(h), Logger: d.Logger,
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

func limits(h policy.HTTP) endpoint.Limits {
	return endpoint.Limits{
		Rate: h.Rate, Burst: h.Burst, InFlight: h.MaxInFlight, Sessions: h.MaxSessions, Listens: h.MaxListens,
		SessionTimeout: time.Duration(h.SessionTimeout), Drain: time.Duration(h.Drain),
	}
}

// door returns what lets callers in over HTTP.
func (d *Daemon) door() *access.Authenticator {
	h := d.Config.HTTP
	return access.New(access.Options{
		Source: d.Store, Resource: h.URL, Issuers: d.Config.Admission.Issuers, Roles: d.Config.Admission.Roles,
		Current: func() access.Roles { return d.Now().Config.Admission.Roles },
		Open:    h.AllowUnauthenticated,
	})
}
