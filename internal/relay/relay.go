// Package relay carries TCP connections over one stream of bytes: from the
// gateway, over the stdio of a small container, to a server that listens in
// that container's network. No port is published, and it works without any
// network but the container's own loopback.
//
// It decides only which port is dialled: the one that the relay was started
// for. It refuses more than 128 connections at a time. It guarantees that
// whoever dials learns whether the server listens, and that when the stream
// ends every connection over it does.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

const (
	// maxConns is how many connections are carried at a time.
	maxConns = 128
	// dialTime is how long the server may take to accept one.
	dialTime = 10 * time.Second
	// maxReason is how long the reason of a refusal may be, in bytes.
	maxReason = 1 << 10
)

// The first byte of each connection, from the relay.
const (
	accepted = 0x01
	refused  = 0x00 // the reason follows
)

// config has no keep-alives: both ends see the end of the stream.
func config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.StreamCloseTimeout = dialTime
	c.LogOutput = io.Discard
	return c
}

// Serve carries connections to a port of this machine's loopback, until the
// stream ends or the context does. It closes the stream.
func Serve(ctx context.Context, stream io.ReadWriteCloser, port int) error {
	session, err := yamux.Server(stream, config())
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	defer func() { _ = session.Close() }()
	places := make(chan struct{}, maxConns)
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return ended(err)
		}
		conn := carried{stream}
		select {
		case places <- struct{}{}:
		default:
			refuse(conn, fmt.Errorf("more than %d connections", maxConns))
			continue
		}
		conns.Go(func() {
			defer func() { <-places }()
			carry(ctx, conn, port)
		})
	}
}

// A carried connection ends its reads when it is closed, as others do; those of
// yamux wait for the other end.
type carried struct{ *yamux.Stream }

func (c carried) Close() error {
	return errors.Join(c.SetReadDeadline(time.Unix(1, 0)), c.Stream.Close())
}

// ended returns nil for the end of a stream that was to be expected.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, yamux.ErrSessionShutdown) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("relay: %w", err)
}

// carry joins one connection with the server.
func carry(ctx context.Context, conn net.Conn, port int) {
	server, err := dial(ctx, port)
	if err != nil {
		refuse(conn, err)
		return
	}
	if _, err := conn.Write([]byte{accepted}); err != nil {
		_ = errors.Join(conn.Close(), server.Close()) // nobody is left to tell
		return
	}
	var both sync.WaitGroup
	both.Go(func() { join(server, conn) })
	both.Go(func() { join(conn, server) })
	both.Wait()
}

// dial connects to the server, over whichever of the two loopbacks it listens on.
func dial(ctx context.Context, port int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		return conn, nil
	}
	if six, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port))); err == nil {
		return six, nil
	}
	return nil, err
}

// join copies one way. The end of either way is the end of both: HTTP closes
// no connection by halves.
func join(to, from net.Conn) {
	_, _ = io.Copy(to, from) // how a connection breaks is for its two ends to see
	_ = errors.Join(to.Close(), from.Close())
}

// refuse tells why there is no connection.
func refuse(conn net.Conn, err error) {
	reason := err.Error()
	_, _ = conn.Write(append([]byte{refused}, reason[:min(len(reason), maxReason)]...)) // nobody may be left to tell
	_ = conn.Close()
}

// A Dialer makes connections through a relay at the other end of a stream. Its
// methods may be called from several goroutines.
type Dialer struct{ session *yamux.Session }

// NewDialer returns a Dialer over a stream, which is the Dialer's from then on.
func NewDialer(stream io.ReadWriteCloser) (*Dialer, error) {
	session, err := yamux.Client(stream, config())
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return &Dialer{session: session}, nil
}

// A RefusedError is a server that does not accept a connection, as the relay
// tells it: it does not listen yet, or not any more.
type RefusedError struct{ Reason string }

// Error gives the relay's reason.
func (e *RefusedError) Error() string { return e.Reason }

// DialContext connects to the port that the relay was started for; network and
// address are as for [net.Dialer], and not looked at. A [*RefusedError] means
// that the server does not listen.
func (d *Dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	stream, err := d.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	conn := carried{stream}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = await(conn)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// await reads the first byte, and the reason of a refusal.
func await(conn net.Conn) error {
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if first[0] == accepted {
		return nil
	}
	reason, err := io.ReadAll(io.LimitReader(conn, maxReason))
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return &RefusedError{Reason: string(reason)}
}

// Done is closed when the stream has ended.
func (d *Dialer) Done() <-chan struct{} { return d.session.CloseChan() }

// Close ends every connection and closes the stream.
func (d *Dialer) Close() error { return d.session.Close() }
