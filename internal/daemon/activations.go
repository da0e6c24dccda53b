package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/store"
)

// Activations are the servers that callers have chosen, and those that this
// process was started for.
type Activations struct {
	Store *store.DB
	// Servers are active for everybody in this process.
	Servers []string
}

// Active implements [meta.Activations].
func (a *Activations) Active(ctx context.Context, who principal.Principal) ([]string, error) {
	chosen, err := a.Store.Activations(ctx, who)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(a.Servers)
	for _, activation := range chosen {
		names = append(names, activation.Server)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Settings implements [plan.Settings].
func (a *Activations) Settings(ctx context.Context, who principal.Principal, server string) (map[string]any, error) {
	activation, _, err := a.Store.Activation(ctx, who, server)
	return activation.Settings, err
}

// Activate implements [meta.Activations].
func (a *Activations) Activate(ctx context.Context, who principal.Principal, server string, settings map[string]any) error {
	return a.Store.PutActivation(ctx, store.Activation{
		Principal: who, Server: server, Settings: settings, By: store.Manual, At: time.Now(),
	})
}

// Deactivate implements [meta.Activations].
func (a *Activations) Deactivate(ctx context.Context, who principal.Principal, server string) (bool, error) {
	_, ok, err := a.Store.Activation(ctx, who, server)
	if err != nil || !ok {
		return false, err
	}
	return true, a.Store.DeleteActivation(ctx, who, server)
}
