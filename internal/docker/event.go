package docker

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/owner"
)

// How long the watch waits before it asks an engine again that has hung up.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 5 * time.Second
)

// An endWatch listens to the engine for what decides how the end of a container is
// to be read: that it passed its memory limit, or that somebody had the engine
// send it a signal. There is one for all containers, from the first start on. The
// engine's state of a container would say it too, but a container that is
// removed on its exit may be gone before it is asked for.
type endWatch struct {
	client *client.Client
	log    *slog.Logger

	mu       sync.Mutex
	watched  map[string]omens
	ready    chan struct{} // closed once the engine has been listened to, or could not be; nil before the first start
	stop     context.CancelFunc
	listener sync.WaitGroup
}

// The omens of a container's end. Each channel holds one token.
type omens struct {
	full   chan struct{} // it passed its memory limit
	signal chan struct{} // the engine was asked to send it a signal
}

func newEndWatch(api *client.Client, log *slog.Logger) *endWatch {
	return &endWatch{client: api, log: log, watched: make(map[string]omens)}
}

// start begins to listen, the first time, and returns a channel that is closed
// as soon as no event is missed any more.
func (w *endWatch) start(ctx context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ready == nil {
		w.ready = make(chan struct{})
		lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
		w.stop = stop
		w.listener.Go(func() { w.listen(lasting, w.ready) })
	}
	return w.ready
}

// watch returns what will be told of the container.
func (w *endWatch) watch(id string) omens {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := omens{full: make(chan struct{}, 1), signal: make(chan struct{}, 1)}
	w.watched[id] = seen
	return seen
}

func (w *endWatch) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, id)
}

func (w *endWatch) close() {
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.listener.Wait()
}

func (w *endWatch) note(id string, action events.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.watched[id]
	token := seen.full
	if action == events.ActionKill {
		token = seen.signal
	}
	select {
	case token <- struct{}{}:
	default: // it is there already, or nobody watches
	}
}

func (w *endWatch) listen(ctx context.Context, ready chan struct{}) {
	filters := make(client.Filters).
		Add("type", string(events.ContainerEventType)).
		Add("event", string(events.ActionOOM), string(events.ActionKill)).
		Add("label", owner.Label)
	since := time.Now()
	pause := reconnectFirst
	for {
		result := w.client.Events(ctx, client.EventsListOptions{
			Filters: filters,
			// What happened while the connection was down is told again.
			Since: strconv.FormatInt(since.Unix()-1, 10),
		})
		if ready != nil {
			close(ready)
			ready = nil
		}
		for ended := false; !ended; {
			select {
			case event := <-result.Messages:
				since, pause = time.Now(), reconnectFirst
				w.note(event.Actor.ID, event.Action)
			case err := <-result.Err:
				ended = true
				if ctx.Err() == nil {
					w.log.DebugContext(ctx, "engine's events ended", "err", err)
				}
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, reconnectMost)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
