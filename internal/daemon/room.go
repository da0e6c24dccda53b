package daemon

import (
	"context"
	"errors"
	"net"

	"github.com/dockgate/dockgate/internal/principal"
)

// A Room is a Daemon for several clients of one user, each over a connection
// of its own.
type Room struct{ *Daemon }

// Run does what a gateway does beside serving until ctx ends, and closes the
// Daemon.
func (r Room) Run(ctx context.Context) error {
	err := r.run(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	return errors.Join(err, r.Close())
}

// Serve serves one client until it leaves or ctx ends, and closes the connection.
func (r Room) Serve(ctx context.Context, connection net.Conn) error {
	return r.Gateway.Serve(ctx, connection, output{connection}, principal.Local)
}

// output is the other half of a connection, which is closed with the first.
type output struct{ net.Conn }

// Close implements [io.Closer].
func (output) Close() error { return nil }
