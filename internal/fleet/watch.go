package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A Notice is a notification of a server that is not for one call alone.
type Notice struct {
	Server, Scope string
	// Owners are those who have ordered the server.
	Owners []string
	Method string
	// Params are as the server sent them.
	Params json.RawMessage
}

// heard passes on what a server notifies. A log message while it has calls of
// one client alone is that client's.
func (f *Fleet) heard(i *instance, method string, params json.RawMessage) {
	if method == "notifications/message" {
		fl, clients := i.attributed()
		if clients == 1 {
			if fl.log != nil {
				fl.log(params)
			}
			return
		}
	}
	if f.opts.Heard == nil {
		return
	}
	f.mu.Lock()
	owners := slices.Sorted(maps.Keys(i.users))
	f.mu.Unlock()
	f.opts.Heard(Notice{Server: i.order.Spec.Server, Scope: i.order.Scope, Owners: owners, Method: method, Params: params})
}

// tune asks a server with sessions for the log messages that a client wants,
// unless it was asked for more before. The others are kept from who does not
// want them where they arrive.
func (f *Fleet) tune(ctx context.Context, i *instance, level string) {
	if level == "" || i.session.Era() != upstream.Legacy || jsonrpc.Lookup(i.session.Info().Capabilities, "logging") == nil {
		return
	}
	i.flying.Lock()
	enough := i.level != "" && era.Severity(i.level) <= era.Severity(level)
	if !enough {
		i.level = level
	}
	i.flying.Unlock()
	if enough {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, subscribeTime)
	defer cancel()
	if _, err := i.session.Call(ctx, "logging/setLevel", json.RawMessage(`{"level":"`+level+`"}`), nil); err != nil {
		f.opts.Logger.DebugContext(ctx, "server takes no log level", "server", i.order.Spec.Server, "err", err)
	}
}

// A Subscription has a server tell when a resource changes. While there is one
// the server does not stop by itself; if it goes, it is subscribed to again at
// its next start.
type Subscription struct {
	Server, Scope, URI string

	fleet *Fleet
	key   key
	once  sync.Once
}

// Subscribe starts the ordered server if need be, and subscribes to a resource
// of it, in the way of its era. What it tells comes to Options.Heard. The error
// may be the server's own.
func (f *Fleet) Subscribe(ctx context.Context, order Order, uri string) (*Subscription, error) {
	order.From.Call = "" // it outlasts the call
	i, err := f.acquire(ctx, order)
	if err != nil {
		return nil, err
	}
	defer f.release(i)
	if err := i.wait(ctx); err != nil {
		return nil, err
	}
	s := &Subscription{Server: order.Spec.Server, Scope: order.Scope, URI: uri, fleet: f}
	f.mu.Lock()
	s.key = i.at
	if f.watched[s.key] == nil {
		f.watched[s.key] = make(map[string]int)
	}
	f.watched[s.key][uri]++
	first := f.watched[s.key][uri] == 1
	f.mu.Unlock()
	if !first {
		return s, nil
	}
	if err := f.watch(ctx, i, "resources/subscribe", uri); err != nil {
		s.forget()
		return nil, err
	}
	return s, nil
}

// Close ends the subscription. The server is told if it was the last one to
// the resource. It may be called more than once, and of nil.
func (s *Subscription) Close(ctx context.Context) {
	if s == nil {
		return
	}
	s.once.Do(func() {
		i := s.forget()
		if i == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, subscribeTime)
		defer cancel()
		if err := s.fleet.watch(ctx, i, "resources/unsubscribe", s.URI); err != nil {
			s.fleet.opts.Logger.DebugContext(ctx, "subscription was not ended at the server", "server", s.Server, "err", err)
		}
	})
}

// forget takes a subscription off those that are wanted. It returns the
// instance that has to be told, or nil.
func (s *Subscription) forget() *instance {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched[s.key][s.URI]--
	if f.watched[s.key][s.URI] > 0 {
		return nil
	}
	delete(f.watched[s.key], s.URI)
	if len(f.watched[s.key]) == 0 {
		delete(f.watched, s.key)
	}
	i := f.instances[s.key]
	if i == nil {
		return nil
	}
	f.settle(i)
	if !i.ready || i.leaving() {
		return nil
	}
	return i
}

// watch changes what a server is subscribed to, by the method of its era.
func (f *Fleet) watch(ctx context.Context, i *instance, method, uri string) error {
	if i.session.Era() == upstream.Modern {
		if !announces(i.session.Info().Capabilities).Resources.Subscribe {
			return refusal(jsonrpc.CodeMethodNotFound, "the server has no subscriptions to resources")
		}
		f.subscribe(ctx, i)
		return nil
	}
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	_, err = i.session.Call(ctx, method, params, nil)
	return err
}

// rewatch subscribes a server with sessions, just started, to all that is wanted.
func (f *Fleet) rewatch(ctx context.Context, i *instance) {
	if i.session.Era() == upstream.Modern {
		return // it was at once, see subscribe
	}
	for _, uri := range f.wanted(i) {
		if err := f.watch(ctx, i, "resources/subscribe", uri); err != nil {
			f.opts.Logger.WarnContext(ctx, "server was not subscribed to again", "server", i.order.Spec.Server, "err", err)
		}
	}
}

// wanted returns the resources that somebody has subscribed to.
func (f *Fleet) wanted(i *instance) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.watched[i.at]))
}
