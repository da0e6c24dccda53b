package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Room serves the clients that can share everything.
type Room interface {
	// Run does what a gateway does beside serving, until ctx ends, and then
	// stops all that the room has started.
	Run(ctx context.Context) error
	// Serve serves one client until it leaves or ctx ends, and closes the
	// connection.
	Serve(ctx context.Context, connection net.Conn) error
}

// A Host is the gateway process of many relays.
type Host struct {
	// Version is that of the program.
	Version string
	// Key says which clients can share a room: those with the same.
	Key func(context.Context, Hello) (string, error)
	// Open makes the room of a client.
	Open func(context.Context, Hello) (Room, error)
	// Idle is how long a room, and the process, stay without a client.
	Idle   time.Duration
	Logger *slog.Logger

	running sync.WaitGroup // of rooms

	mu    sync.Mutex
	rooms map[string]*tenancy
	// used is when the last client left, clients how many are there.
	used    time.Time
	clients int
}

// A tenancy is a room with those in it. The host's lock guards the counts.
type tenancy struct {
	opened  chan struct{} // closed when room and err are there
	room    Room
	err     error
	clients int
	used    time.Time
	// running ends with the room.
	running context.Context //nolint:containedctx // it is the room's own life, not a request's
	end     context.CancelFunc
}

// Run serves the relays that connect until ctx ends, or no client has been
// there for as long as Idle.
func (h *Host) Run(ctx context.Context, listener net.Listener) error {
	h.rooms, h.used = make(map[string]*tenancy), time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer cancel()
		return h.untilIdle(ctx)
	})
	group.Go(func() error {
		<-ctx.Done()
		return unlessClosed(listener.Close())
	})
	var clients sync.WaitGroup
	group.Go(func() error {
		defer cancel()
		for {
			connection, err := listener.Accept()
			if ctx.Err() != nil {
				if err == nil {
					err = connection.Close()
				}
				return unlessClosed(err)
			}
			if err != nil {
				return err
			}
			h.enter(1)
			clients.Go(func() {
				defer h.enter(-1)
				if err := h.serve(ctx, connection); err != nil {
					h.Logger.Warn("client not served", "err", err)
				}
			})
		}
	})
	err := group.Wait()
	clients.Wait()
	h.closeRooms()
	return err
}

func (h *Host) enter(clients int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients += clients
	h.used = time.Now()
}

// untilIdle ends rooms, and at last itself, that nobody has used for long.
func (h *Host) untilIdle(ctx context.Context) error {
	ticker := time.NewTicker(max(h.Idle/10, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if h.vacate() {
			return nil
		}
	}
}

// vacate ends the rooms that are idle, and reports whether the host is.
func (h *Host) vacate() (idle bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, t := range h.rooms {
		if t.clients == 0 && time.Since(t.used) >= h.Idle {
			t.end()
			delete(h.rooms, key)
		}
	}
	return h.clients == 0 && time.Since(h.used) >= h.Idle
}

func (h *Host) closeRooms() {
	h.mu.Lock()
	for _, t := range h.rooms {
		t.end()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// serve greets a relay and serves its client.
func (h *Host) serve(ctx context.Context, connection net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() }) // who is closed twice, was closed
	defer stop()
	hello, err := h.hear(connection)
	if err != nil {
		return errors.Join(err, unlessClosed(connection.Close()))
	}
	t, err := h.room(ctx, hello)
	if err != nil {
		return errors.Join(h.answer(connection, err), unlessClosed(connection.Close()))
	}
	defer h.checkOut(t)
	if err := h.answer(connection, nil); err != nil {
		return errors.Join(err, unlessClosed(connection.Close()))
	}
	if err := connection.SetDeadline(time.Time{}); err != nil {
		return errors.Join(err, unlessClosed(connection.Close()))
	}
	stop()
	serving, leave := context.WithCancel(ctx)
	defer leave()
	defer context.AfterFunc(t.running, leave)() //nolint:contextcheck // it ends the client with its room
	return t.room.Serve(serving, connection)
}

// hear reads a Hello.
func (h *Host) hear(connection net.Conn) (Hello, error) {
	var hello Hello
	if err := connection.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return hello, err
	}
	line, err := readLine(connection, maxHello)
	if err != nil {
		return hello, err
	}
	if err := json.Unmarshal(line, &hello); err != nil {
		return hello, fmt.Errorf("hello: %w", err)
	}
	return hello, nil
}

// answer welcomes a relay, or says why not.
func (h *Host) answer(connection net.Conn, refused error) error {
	var w welcome
	if refused != nil {
		w.Problem = refused.Error()
		var version *VersionError
		w.Version = errors.As(refused, &version)
		var hinted interface{ Hint() string }
		if errors.As(refused, &hinted) {
			w.Hint = hinted.Hint()
		}
	}
	return json.NewEncoder(connection).Encode(w)
}

// room returns the room of a client, and counts the client in.
func (h *Host) room(ctx context.Context, hello Hello) (*tenancy, error) {
	if hello.Version != h.Version {
		return nil, &VersionError{Ours: h.Version, Theirs: hello.Version}
	}
	key, err := h.Key(ctx, hello)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	t := h.rooms[key]
	first := t == nil
	if first {
		t = &tenancy{opened: make(chan struct{})}
		t.running, t.end = context.WithCancel(context.WithoutCancel(ctx))
		h.rooms[key] = t
	}
	t.clients++
	h.mu.Unlock()
	if first {
		h.open(hello, key, t)
	}
	<-t.opened
	return t, t.err
}

// open opens a room and runs it. It outlives the client that it is opened for.
func (h *Host) open(hello Hello, key string, t *tenancy) {
	defer close(t.opened)
	if t.room, t.err = h.Open(t.running, hello); t.err != nil {
		h.forget(key, t)
		return
	}
	h.running.Go(func() {
		defer h.forget(key, t)
		if err := t.room.Run(t.running); err != nil {
			h.Logger.Error("room has ended", "err", err)
		}
	})
}

// forget ends a room that serves nobody any more; the next client gets another.
func (h *Host) forget(key string, t *tenancy) {
	t.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rooms[key] == t {
		delete(h.rooms, key)
	}
}

// checkOut counts a client out.
func (h *Host) checkOut(t *tenancy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.clients--
	t.used = time.Now()
}

// A VersionError says that a relay and the gateway it has found are of
// different versions.
type VersionError struct{ Ours, Theirs string }

// Error names both.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the shared gateway that runs is of version %s, this is %s", e.Ours, e.Theirs)
}

// Hint says what can be done.
func (e *VersionError) Hint() string {
	return "end the clients of the other version; or serve without --share"
}
