// Package remote reaches MCP servers over HTTP: those that somebody else runs,
// and those that listen on a port in a container of ours. What it opens is a
// stream of JSON-RPC lines like that of a container, so that whoever holds the
// conversation need not know the difference.
//
// It decides which server is reached how, when a lost stream is opened again,
// and which requests a lost session leaves undone. It refuses tools that cannot
// be called over HTTP. What leaves, and where to, is decided by package door.
//
// It guarantees that one request that fails costs the others nothing, and that
// after Close nothing of a stream is left. The messages are the SDK's
// transport's, untouched within their envelope.
package remote

import (
	"context"
	"log/slog"

	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Open makes a stream to the server behind a door, which it closes at its end.
// It connects to a server of the older transport; to others with the first
// message. The stream ends with a [*door.AddressError], a [*door.OriginError] or
// a [*door.StatusError] if the first message does not get through; what keeps a
// later request from the server is that request's error. The logger receives
// what is tolerated, at debug level; nil discards it.
func Open(ctx context.Context, d *door.Door, log *slog.Logger) (sandbox.Process, error) {
	s, err := connect(ctx, d, log)
	if err != nil {
		return nil, err
	}
	return &process{stream: s, id: d.Host()}, nil
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
