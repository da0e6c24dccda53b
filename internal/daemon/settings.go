package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

// Configure makes a server active for a caller. Its settings are those it has,
// changed by assignments of the form "key=value"; a key without a value is
// unset. It refuses settings that the entry does not take, mounts that no
// server gets, and servers that cannot run; then nothing changes.
func (d *Daemon) Configure(ctx context.Context, who principal.Principal, server string, assignments []string) (map[string]any, error) {
	entry, err := d.Catalog().Server(server)
	if err != nil {
		return nil, err
	}
	before, err := d.Active.Settings(ctx, who, server)
	if err != nil {
		return nil, err
	}
	settings, err := entry.ChangeSettings(before, assignments)
	if err != nil {
		return nil, err
	}
	if err := d.try(ctx, who, entry, settings); err != nil {
		return nil, err
	}
	if err := d.Active.Activate(ctx, who, server, settings); err != nil {
		return nil, err
	}
	d.Planner.Forget(server)
	return settings, nil
}

// try plans a server with settings that it does not have yet. What cannot be
// told before the image is pulled is not refused.
func (d *Daemon) try(ctx context.Context, who principal.Principal, entry catalog.Server, settings map[string]any) error {
	planner := &plan.Planner{
		Catalog: d.Planner.Catalog, Settings: fixed(settings), Images: d.Images,
		Host: d.Planner.Host, Unenforced: d.Planner.Unenforced, Bounds: d.Planner.Bounds,
	}
	_, err := planner.Plan(ctx, who, entry.Name)
	if plan.Unresolved(err) {
		return entry.CheckSettings(settings)
	}
	return err
}

// fixed are settings that are not stored.
type fixed map[string]any

// Settings implements [plan.Settings].
func (f fixed) Settings(context.Context, principal.Principal, string) (map[string]any, error) {
	return f, nil
}

// Deactivate makes a server inactive for a caller. One that is not active is
// an [*InactiveError].
func (d *Daemon) Deactivate(ctx context.Context, who principal.Principal, server string) error {
	was, err := d.Active.Deactivate(ctx, who, server)
	if err != nil {
		return err
	}
	d.Planner.Forget(server)
	if was {
		return d.Book.Withdraw(ctx, server, who)
	}
	active, err := d.Active.Active(ctx, who)
	if err != nil {
		return err
	}
	return &InactiveError{Server: server, Active: active}
}

// An InactiveError says that a server is not active.
type InactiveError struct {
	Server string
	// Active are the servers that are.
	Active []string
}

// Error names the active servers that are most like it.
func (e *InactiveError) Error() string {
	if len(e.Active) == 0 {
		return fmt.Sprintf("server %q is not active; none is", e.Server)
	}
	return fmt.Sprintf("server %q is not active; nearest of those that are: %s",
		e.Server, strings.Join(catalog.Nearest(e.Server, e.Active), ", "))
}

// Hint says where the active ones are listed.
func (e *InactiveError) Hint() string { return "list what is active with: dockgate list" }
