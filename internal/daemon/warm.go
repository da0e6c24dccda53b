package daemon

import (
	"context"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

// warm starts the active servers whose entry says auto_start in the
// background, each once in this process: one that was idle and stopped waits
// for its next call like any other. Those that nobody has approved yet are
// looked at again when something has changed. Started are the names of those
// for which it is done.
func (d *Daemon) warm(ctx context.Context, who principal.Principal, started map[string]bool) {
	names, err := d.Active.Active(ctx, who)
	if err != nil {
		d.Logger.ErrorContext(ctx, "read active servers", "err", err)
		return
	}
	for _, name := range names {
		entry, err := d.Catalog().Server(name)
		// A session of which each has its own server is not known before its call.
		if err != nil || !entry.AutoStart || entry.Isolation == catalog.PerSession || started[name] || plan.Supported(entry) != nil {
			continue
		}
		made, err := d.Planner.Plan(ctx, who, name)
		if err != nil || !d.Caller.Approved(made) {
			continue
		}
		started[name] = true
		d.Caller.Warm(ctx, call.Client{Principal: who}, name)
	}
}
