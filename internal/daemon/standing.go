package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

// A State is how far a server is from being used.
type State string

// The states, as people read them.
const (
	StateUnknown     State = "in no catalog"
	StateUnsupported State = "unsupported"
	StateUnresolved  State = "not resolved"
	StateUnset       State = "needs settings"
	StateRefused     State = "refused"
	StateMissing     State = "not approved"
	StateChanged     State = "changed"
	StateExpired     State = "expired"
	StateDenied      State = "denied"
	StateApproved    State = "approved"
)

// A Standing is where a server stands for a caller.
type Standing struct {
	Active bool
	State  State
	// Reason is the error behind a State that needs work, else nil.
	Reason error
	// Stale is why the tools are those of an earlier listing, or empty.
	Stale string
}

// Standing returns where a server stands for a caller, without an engine. The
// server may be one that no catalog has any more.
func (d *Daemon) Standing(ctx context.Context, who principal.Principal, server string) (Standing, error) {
	active, err := d.Active.Active(ctx, who)
	if err != nil {
		return Standing{}, err
	}
	standing := Standing{Active: slices.Contains(active, server)}
	var (
		unknown     *catalog.UnknownServerError
		unsupported *plan.UnsupportedError
		settings    *catalog.SettingsError
	)
	made, err := d.Planner.Plan(ctx, who, server)
	standing.Reason = err
	switch {
	case err == nil:
		standing.State = stateOf(d.Book.Check(approval.Key{Server: server, GrantDigest: made.GrantDigest}))
		if standing.State == StateApproved {
			offer, _, err := d.Caller.Offer(ctx, made)
			if err != nil {
				return Standing{}, err
			}
			standing.Stale = offer.Stale
		}
	case errors.As(err, &unknown):
		standing.State = StateUnknown
	case errors.As(err, &unsupported):
		standing.State = StateUnsupported
	case plan.Unresolved(err):
		standing.State = StateUnresolved
	case errors.As(err, &settings):
		standing.State = StateUnset
	default:
		standing.State = StateRefused
	}
	return standing, nil
}

func stateOf(verdict approval.Verdict) State {
	switch verdict.State {
	case approval.Approved:
		return StateApproved
	case approval.Changed:
		return StateChanged
	case approval.Expired:
		return StateExpired
	case approval.Denied:
		return StateDenied
	case approval.Missing:
	}
	return StateMissing
}
