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
// says that its lists have changed (MCP 2026-07-28, subscriptions/listen), and
// waits until the server knows of it. There is one for each session, until the
// session ends, or life does. It is nobody's call: a server that only listens
// is idle.
func (f *Fleet) subscribe(ctx, life context.Context, i *instance) {
	params := subscription(i.session.Info())
	if params == nil {
		return
	}
	i.listening.Go(func() { f.listen(life, i, params) })
	timer := time.NewTimer(subscribeTime)
	defer timer.Stop()
	select {
	case <-i.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (f *Fleet) listen(ctx context.Context, i *instance, params json.RawMessage) {
	defer signal(i.subscribed)
	for {
		_, err := i.session.Call(ctx, "subscriptions/listen", params, nil)
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
		case <-i.session.Done():
			pause.Stop()
			return
		}
	}
}

// subscription returns the params that ask for every change that the server
// announces, or nil if it announces none or needs not be asked.
func subscription(info upstream.Info) json.RawMessage {
	type list struct {
		ListChanged bool `json:"listChanged"`
	}
	var announced struct {
		Tools     list `json:"tools"`
		Prompts   list `json:"prompts"`
		Resources list `json:"resources"`
	}
	if info.Era != upstream.Modern || json.Unmarshal(info.Capabilities, &announced) != nil {
		return nil
	}
	type wanted struct {
		Tools     bool `json:"toolsListChanged,omitempty"`
		Prompts   bool `json:"promptsListChanged,omitempty"`
		Resources bool `json:"resourcesListChanged,omitempty"`
	}
	wants := wanted{announced.Tools.ListChanged, announced.Prompts.ListChanged, announced.Resources.ListChanged}
	if wants == (wanted{}) {
		return nil
	}
	params, err := json.Marshal(map[string]wanted{"notifications": wants})
	if err != nil {
		return nil
	}
	return params
}
