package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/relay"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// Containers starts containers; an engine does.
type Containers interface {
	Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error)
}

// A Runner starts whatever a Spec describes: a remote server as a stream to it,
// a server that listens on a port as a container with a stream through a relay
// beside it, and every other as the engine does. It keeps the contract of
// [sandbox.Process] for all of them.
type Runner struct {
	Containers Containers
	// Relay returns the image of the relay, which is then on the engine.
	Relay func(ctx context.Context) (sandbox.Image, error)
	// Logins, if set, returns the logins to a remote server, and what its own is
	// kept under. It is asked for servers whose entries have no Authorization.
	Logins func(server sandbox.Spec) (*login.Book, login.Server, error)
	// Logger receives what streams tolerate, at debug level; nil discards it.
	Logger *slog.Logger
}

// Start starts what the Spec describes. The errors of a container are its
// engine's; those of a remote server are as for [door.New] and [Open].
func (r *Runner) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	switch {
	case spec.Remote != nil:
		return r.dial(ctx, spec)
	case spec.HTTP != nil:
		return r.host(ctx, spec)
	}
	return r.Containers.Start(ctx, spec)
}

func (r *Runner) dial(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	secrets := make(map[string]secret.Value)
	for _, s := range spec.Secrets {
		secrets[s.Env] = s.Value
	}
	var options door.Options
	if r.Logins != nil && !slices.ContainsFunc(spec.Remote.Headers, isAuthorization) {
		book, server, err := r.Logins(spec)
		if err != nil {
			return nil, err
		}
		options.OAuth = book.Bearer(server)
	}
	d, err := door.New(*spec.Remote, secrets, options)
	if err != nil {
		return nil, err
	}
	return Open(ctx, d, r.Logger)
}

func isAuthorization(h sandbox.Header) bool { return strings.EqualFold(h.Name, "Authorization") }

// What the relay may use. It copies, and keeps little.
const (
	relayMemory = 64 << 20
	relayPIDs   = 64
	relayFiles  = 1024
	relayShares = 512
	relayCPUs   = 1_000_000_000
	relayShm    = 1 << 20
)

// relaySpec is the relay beside a container.
func relaySpec(server sandbox.Spec, image sandbox.Image, id string) sandbox.Spec {
	return sandbox.Spec{
		Server: server.Server, Image: image, Beside: id,
		Entrypoint: []string{"/relay"}, Command: []string{"-end", strconv.Itoa(server.HTTP.Port)},
		Env:     []sandbox.Variable{{Name: "DOCKGATE_RELAY", Value: "1"}},
		User:    "0:0", // with no capability but to end processes of other users
		Network: catalog.NetworkNone,
		Limits: sandbox.Limits{
			Memory: relayMemory, NanoCPUs: relayCPUs, CPUShares: relayShares,
			PIDs: relayPIDs, Shm: relayShm, Files: relayFiles,
		},
	}
}

// settling is how long the news of a server's exit may take.
const settling = time.Second

// The pauses between two attempts to reach a server that does not listen yet.
const (
	firstAttempt = 10 * time.Millisecond
	maxAttempt   = 250 * time.Millisecond
)

// host starts a server that listens on a port, and the relay to it. Once the
// server's container runs, what goes wrong with it is seen as of any other: by
// the end of its stream, its exit and its stderr.
func (r *Runner) host(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	image, err := r.Relay(ctx)
	if err != nil {
		return nil, fmt.Errorf("image of the relay: %w", err)
	}
	server, err := r.Containers.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	h := &hosted{Process: server, ended: make(chan struct{})}
	if err := h.join(ctx, r, spec, image); err != nil {
		// Of a server that has exited, or that took too long, the exit and the
		// last words say more.
		timer := time.NewTimer(settling)
		defer timer.Stop()
		select {
		case <-server.Done():
		case <-ctx.Done():
		case <-timer.C:
			return nil, errors.Join(err, h.Close())
		}
	}
	h.running.Go(h.watch)
	return h, nil
}

// A hosted server is a container that listens on a port, and the stream to it.
type hosted struct {
	sandbox.Process // the server's
	relay           sandbox.Process
	dialer          *relay.Dialer
	stream          *stream // nil if the server did not get to listen

	closing sync.Once
	ended   chan struct{} // closed by Close
	running sync.WaitGroup
	err     error
}

// join starts the relay and waits until the server listens.
func (h *hosted) join(ctx context.Context, r *Runner, spec sandbox.Spec, image sandbox.Image) (err error) {
	if h.relay, err = r.Containers.Start(ctx, relaySpec(spec, image, h.ID())); err != nil {
		return err
	}
	if h.dialer, err = relay.NewDialer(h.relay); err != nil {
		return err
	}
	if err := h.ready(ctx); err != nil {
		return err
	}
	// The name that servers which check it expect (MCP, basic/transports,
	// "Security Warning").
	host := net.JoinHostPort("localhost", strconv.Itoa(spec.HTTP.Port))
	at := sandbox.Remote{URL: "http://" + host + spec.HTTP.Path, Transport: spec.HTTP.Transport}
	d, err := door.New(at, nil, door.Options{Dial: h.dialer.DialContext})
	if err != nil {
		return err
	}
	h.stream, err = connect(ctx, d, r.Logger)
	return err
}

// ready returns nil when the server accepts a connection.
func (h *hosted) ready(ctx context.Context) error {
	pause := firstAttempt
	for {
		conn, err := h.dialer.DialContext(ctx, "tcp", "")
		if err == nil {
			return conn.Close()
		}
		var refused *relay.RefusedError
		if !errors.As(err, &refused) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, maxAttempt)
		case <-h.Done():
			timer.Stop()
			return errors.New("the server has exited")
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// watch ends the stream with the server, or with the relay.
func (h *hosted) watch() {
	var gone <-chan struct{}
	if h.dialer != nil {
		gone = h.dialer.Done()
	}
	select {
	case <-h.Done():
	case <-gone:
	case <-h.ended:
	}
	if h.stream != nil {
		h.stream.fail(io.EOF)
	}
}

// Read reads the server's messages as lines.
func (h *hosted) Read(p []byte) (int, error) {
	if h.stream != nil {
		return h.stream.Read(p)
	}
	select {
	case <-h.Done():
	case <-h.ended:
	}
	return 0, io.EOF
}

// Write takes our messages as lines.
func (h *hosted) Write(p []byte) (int, error) {
	if h.stream != nil {
		return h.stream.Write(p)
	}
	return 0, io.ErrClosedPipe
}

// Judge refuses a tool that cannot be called over HTTP.
func (h *hosted) Judge(tool json.RawMessage) error {
	if h.stream == nil {
		return nil
	}
	return h.stream.Judge(tool)
}

// Close ends the stream, then the server, then the relay: the server's end is
// the end of all the processes that the relay shares.
func (h *hosted) Close() error {
	h.closing.Do(func() {
		close(h.ended)
		if h.stream != nil {
			h.stream.shut()
		}
		errs := []error{h.Process.Close()}
		if h.dialer != nil {
			_ = h.dialer.Close() // its error is the relay's, which follows
		}
		if h.relay != nil {
			errs = append(errs, h.relay.Close())
		}
		h.running.Wait()
		h.err = errors.Join(errs...)
	})
	return h.err
}
