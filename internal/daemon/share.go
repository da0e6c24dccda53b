package daemon

import (
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
)

// A share is what holds for the callers of one role: what holds for everybody,
// with the role's own quotas, and narrowed by its rules.
type share struct {
	quotas policy.Quotas
	rules  rules.Rules
}

// sharesOf returns the shares of the roles. A role's own quotas take the place
// of those for everybody, and may be higher.
func sharesOf(a policy.Admission, general share) map[string]share {
	shares := make(map[string]share, len(a.Roles.Each))
	for name, role := range a.Roles.Each {
		shares[name] = share{quotas: a.Quotas[name].Or(general.quotas), rules: general.rules.Narrowed(role.Tools)}
	}
	return shares
}

// narrowed returns the share with what a project lowers and takes away.
func (s share) narrowed(p policy.Project) share {
	quotas, _ := s.quotas.LoweredBy(p.Quotas)
	return share{quotas: quotas, rules: s.rules.Narrowed(p.Discovery.Rules)}
}

// share returns what holds for a caller. Whoever has a role that there is not
// may use nothing, which is said elsewhere.
func (d *Daemon) share(who principal.Principal) share {
	now := d.now.Load()
	if role, err := now.config.Admission.Roles.Of(who); err == nil {
		if found, ok := now.shares[role.Name]; ok {
			return found
		}
	}
	return share{quotas: now.quotas, rules: now.rules}
}

// permit refuses a server that a caller's role does not have.
func (d *Daemon) permit(who principal.Principal, server string) error {
	now := d.now.Load()
	return now.config.Admission.Roles.Permit(who, now.catalog, server)
}

// mayApprove reports whether a caller may answer what a person is asked.
func (d *Daemon) mayApprove(who principal.Principal) bool {
	role, err := d.now.Load().config.Admission.Roles.Of(who)
	return err == nil && role.Approve
}

func (d *Daemon) rulesFor(who principal.Principal) rules.Rules { return d.share(who).rules }

func (d *Daemon) quotaFor(who principal.Principal) (quota fleet.Quota, maxCall time.Duration) {
	q := d.share(who).quotas
	return q.Fleet(), time.Duration(q.MaxCall.Max)
}

// bounds are what the configuration says of every server, for a caller.
func (d *Daemon) bounds(who principal.Principal) plan.Bounds {
	most, config := d.share(who).quotas.MaxMemoryPerServer, d.now.Load().config
	return plan.Bounds{
		Limits: config.Limits.Entry(), Timeouts: config.Timeouts.Entry(), MaxMemory: most.Max, MaxMemoryPlace: most.Place,
	}
}

// exposedTo returns the groups that are listed for a caller.
func (d *Daemon) exposedTo(who principal.Principal) []meta.Group {
	now := d.now.Load()
	role, err := now.config.Admission.Roles.Of(who)
	if err != nil || role.Expose == nil {
		return d.exposed()
	}
	groups := make([]meta.Group, len(role.Expose))
	for i, group := range role.Expose {
		groups[i] = meta.Group(group)
	}
	return now.exposed(groups)
}

// door returns what lets callers in over HTTP.
func (d *Daemon) door() *access.Authenticator {
	h := d.Config.HTTP
	return access.New(access.Options{
		Source: d.Store, Resource: h.URL, Issuers: d.Config.Admission.Issuers, Roles: d.Config.Admission.Roles,
		Current: func() access.Roles { return d.now.Load().config.Admission.Roles },
		Open:    h.AllowUnauthenticated,
	})
}
