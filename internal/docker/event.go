package docker

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// How long the watch waits before it asks an engine again that has hung up.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectMost  = 5 * time.Second
)

// An oomWatch listens to the engine for containers that passed their memory
// limit. There is one for all containers, from the first start on. The
// engine's state of a container would say it too, but a container that is
// removed on its exit may be gone before it is asked for.
type oomWatch struct {
	client *client.Client
	log    *slog.Logger

	mu       sync.Mutex
	watched  map[string]*oomSeen
	ready    chan struct{} // closed once the engine has been listened to, or could not be; nil before the first start
	stop     context.CancelFunc
	listener sync.WaitGroup
}

type oomSeen struct {
	seen chan struct{}
	once sync.Once
}

func newOOMWatch(api *client.Client, log *slog.Logger) *oomWatch {
	return &oomWatch{client: api, log: log, watched: make(map[string]*oomSeen)}
}

// start begins to listen, the first time, and returns a channel that is closed
// as soon as no event is missed any more.
func (w *oomWatch) start(ctx context.Context) <-chan struct{} {
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

// watch returns a channel that is closed when the container passes its limit.
func (w *oomWatch) watch(id string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := &oomSeen{seen: make(chan struct{})}
	w.watched[id] = seen
	return seen.seen
}

func (w *oomWatch) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, id)
}

func (w *oomWatch) close() {
	w.mu.Lock()
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.listener.Wait()
}

func (w *oomWatch) note(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.watched[id]; seen != nil {
		seen.once.Do(func() { close(seen.seen) })
	}
}

func (w *oomWatch) listen(ctx context.Context, ready chan struct{}) {
	filters := make(client.Filters).
		Add("type", string(events.ContainerEventType)).
		Add("event", string(events.ActionOOM)).
		Add("label", labelOwner)
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
				w.note(event.Actor.ID)
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
