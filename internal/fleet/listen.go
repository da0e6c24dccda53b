package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// relisten is how long after the orderly end of a subscription the next begins.
const relisten = 10 * time.Second

// acknowledged is the first message of a subscription.
const acknowledged = "notifications/subscriptions/acknowledged"

// subscribeTime is how long a subscription may take to begin. A server that does
// not acknowledge it is listed all the same.
const subscribeTime = 250 * time.Millisecond

// subscribe begins the subscription through which a server of the modern era
// says that its lists have changed, or resources (MCP 2026-07-28,
// subscriptions/listen), and waits until the server knows of it. There is one
// for each session, until the session ends or another takes its place: two at a
// time end each other at servers that know only one. It is nobody's call: a
// server that only listens is idle.
func (f *Fleet) subscribe(ctx context.Context, i *instance) {
	i.hearing.Lock()
	defer i.hearing.Unlock()
	params := subscription(i.session.Info(), f.wanted(i))
	if i.unhear != nil {
		i.unhear()
		i.unhear = nil
		defer signal(i.relist) // a list may have changed meanwhile
	}
	if params == nil {
		return
	}
	//nolint:contextcheck // it lasts as long as the session, which ends it
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	select {
	case <-i.subscribed: // of the one before
	default:
	}
	i.awaiting.Store(true)
	defer i.awaiting.Store(false)
	ended := make(chan struct{})
	i.unhear = func() { cancel(); <-ended }
	if !f.attach(i, func() { defer close(ended); defer cancel(); f.listen(life, i, params) }) {
		cancel()
		close(ended)
		return
	}
	timer := time.NewTimer(subscribeTime)
	defer timer.Stop()
	select {
	case <-i.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attach runs a function that the end of an instance waits for, unless it has
// come already.
func (f *Fleet) attach(i *instance, run func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i.ending {
		return false
	}
	i.listening.Go(run)
	return true
}

func (f *Fleet) listen(ctx context.Context, i *instance, params json.RawMessage) {
	defer signal(i.subscribed)
	for {
		err := i.session.Listen(ctx, params)
		var answer *jsonrpc.Error
		if errors.As(err, &answer) {
			f.opts.Logger.WarnContext(ctx, "server reports no changes of its lists", "server", i.order.Spec.Server, "err", err)
		}
		if err != nil {
			return
		}
		pause := time.NewTimer(relisten)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		case <-i.session.Done():
			pause.Stop()
			return
		}
	}
}

// An announcement is what a server says that it tells changes of.
type announcement struct {
	Tools     listAnnouncement `json:"tools"`
	Prompts   listAnnouncement `json:"prompts"`
	Resources listAnnouncement `json:"resources"`
}

type listAnnouncement struct {
	ListChanged bool `json:"listChanged"`
	Subscribe   bool `json:"subscribe"`
}

func announces(capabilities json.RawMessage) announcement {
	var announced announcement
	if json.Unmarshal(capabilities, &announced) != nil {
		return announcement{}
	}
	return announced
}

// subscription returns the params that ask for every change of a list that the
// server announces, and for those of the resources; nil if there is nothing to
// ask for, or the server needs not be asked.
func subscription(info upstream.Info, resources []string) json.RawMessage {
	if info.Era != upstream.Modern {
		return nil
	}
	announced := announces(info.Capabilities)
	wants := struct {
		Tools     bool     `json:"toolsListChanged,omitempty"`
		Prompts   bool     `json:"promptsListChanged,omitempty"`
		Resources bool     `json:"resourcesListChanged,omitempty"`
		URIs      []string `json:"resourceSubscriptions,omitempty"`
	}{Tools: announced.Tools.ListChanged, Prompts: announced.Prompts.ListChanged, Resources: announced.Resources.ListChanged}
	if announced.Resources.Subscribe {
		wants.URIs = resources
	}
	if !wants.Tools && !wants.Prompts && !wants.Resources && len(wants.URIs) == 0 {
		return nil
	}
	params, err := json.Marshal(map[string]any{"notifications": wants})
	if err != nil {
		return nil
	}
	return params
}
