package setup

import (
	"slices"

	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
)

// A Share is what holds for the callers of one role: what holds for everybody,
// with the role's own quotas, and narrowed by its rules.
type Share struct {
	Quotas policy.Quotas
	// Rules say which tools may be called.
	Rules rules.Rules
}

// sharesOf returns the shares of the roles. A role's own quotas take the place
// of those for everybody, and may be higher.
func sharesOf(a policy.Admission, general Share) map[string]Share {
	shares := make(map[string]Share, len(a.Roles.Each))
	for name, role := range a.Roles.Each {
		shares[name] = Share{Quotas: a.Quotas[name].Or(general.Quotas), Rules: general.Rules.Narrowed(role.Tools)}
	}
	return shares
}

// narrowed returns the share with what a project lowers and takes away.
func (s Share) narrowed(p policy.Project) Share {
	quotas, _ := s.Quotas.LoweredBy(p.Quotas)
	return Share{Quotas: quotas, Rules: s.Rules.Narrowed(p.Discovery.Rules)}
}

// Of returns what holds for a caller. Whoever has a role that there is not may
// use nothing, which [Setup.Permit] says.
func (s *Setup) Of(who principal.Principal) Share {
	if role, err := s.Config.Admission.Roles.Of(who); err == nil {
		if found, ok := s.shares[role.Name]; ok {
			return found
		}
	}
	return s.Share
}

// Permit refuses a server that a caller's role does not have.
func (s *Setup) Permit(who principal.Principal, server string) error {
	return s.Config.Admission.Roles.Permit(who, s.Catalog, server)
}

// MayApprove reports whether a caller may answer what a person is asked.
func (s *Setup) MayApprove(who principal.Principal) bool {
	role, err := s.Config.Admission.Roles.Of(who)
	return err == nil && role.Approve
}

// Bounds are what the configuration says of every server, for a caller.
func (s *Setup) Bounds(who principal.Principal) plan.Bounds {
	most := s.Of(who).Quotas.MaxMemoryPerServer
	return plan.Bounds{
		Limits: s.Config.Limits.Entry(), Timeouts: s.Config.Timeouts.Entry(), MaxMemory: most.Max, MaxMemoryPlace: most.Place,
	}
}

// Exposed returns the groups that are listed for callers whose role says
// nothing of it.
func (s *Setup) Exposed() []meta.Group {
	if len(s.Config.Expose) == 0 {
		return s.left(policy.DefaultExpose())
	}
	return s.left(s.Config.Expose)
}

// ExposedTo returns the groups that are listed for a caller.
func (s *Setup) ExposedTo(who principal.Principal) []meta.Group {
	role, err := s.Config.Admission.Roles.Of(who)
	if err != nil || role.Expose == nil {
		return s.Exposed()
	}
	groups := make([]meta.Group, len(role.Expose))
	for i, group := range role.Expose {
		groups[i] = meta.Group(group)
	}
	return s.left(groups)
}

// left narrows groups to those that the configuration and the project leave.
func (s *Setup) left(groups []meta.Group) []meta.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(group meta.Group) bool {
		return group == meta.Meta && s.DiscoveryOff() ||
			slices.ContainsFunc(s.projects, func(p policy.Project) bool { return p.Expose != nil && !slices.Contains(p.Expose, group) })
	})
}
