package access

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// Owner is the role that may use whatever is approved. It is always there, and
// no configuration describes it.
const Owner = "owner"

// A Role says what its callers may use, of what a person has approved. The
// zero Role may use nothing.
type Role struct {
	Name string
	// Catalogs and Servers are those that it may use: a server must be of both.
	Catalogs, Servers Names
	// Tools narrow the tools of these servers.
	Tools rules.Rules
	// Expose are the groups that it is listed; nil is what everybody is.
	Expose []string
	// Approve reports that its callers may answer, through their client, what a
	// person is asked: what a server may do is for everybody.
	Approve bool
	// Place is where it was written.
	Place string
}

// owner returns the role that may use everything.
func owner() *Role { return &Role{Name: Owner, Catalogs: AnyName(), Servers: AnyName(), Approve: true} }

// Has reports whether the role may use a server.
func (r *Role) Has(entry catalog.Server) bool {
	return r.Servers.Has(entry.Name) && r.Catalogs.Has(entry.Origin.Catalog)
}

// Names are patterns of names. The zero value has no name.
type Names struct {
	any   bool
	rules rules.Rules
}

// AnyName has every name.
func AnyName() Names { return Names{any: true} }

// CompileNames makes Names of patterns as [rules.Compile] has them. No pattern
// at all is no name.
func CompileNames(patterns []string) (Names, error) {
	yes := true
	if len(patterns) == 0 {
		return Names{}, nil
	}
	compiled, err := rules.Compile([]rules.Rule{{Pattern: patterns, Enabled: &yes}}, rules.Default{Verdict: rules.Deny})
	var bad *rules.PatternError
	if errors.As(err, &bad) {
		return Names{}, fmt.Errorf("%q %w", bad.Text, bad.Err)
	}
	return Names{rules: compiled}, err
}

// Has reports whether a name is one of them.
func (n Names) Has(name string) bool {
	return n.any || !n.rules.Empty() && n.rules.Decide("", tool.Definition{Name: name}).Enabled()
}

// Roles are those of a configuration. Where there are none everybody is an
// [Owner].
type Roles struct {
	// Each are the roles by name.
	Each map[string]*Role
	// Default is the role of callers whose token gives them none; if it is
	// empty, and there are roles, they are refused.
	Default string
	// Local is the role of [principal.Local]; empty is [Owner].
	Local string
}

// Of returns the role of a caller, or a [*RoleError].
func (r Roles) Of(who principal.Principal) (*Role, error) {
	name := who.Role
	switch {
	case name != "":
	case who == principal.Local:
		name = cmp.Or(r.Local, Owner)
	case len(r.Each) == 0:
		name = cmp.Or(r.Default, Owner)
	default:
		name = r.Default
	}
	if name == Owner {
		return owner(), nil
	}
	if found := r.Each[name]; found != nil {
		return found, nil
	}
	return nil, &RoleError{Caller: who.ID, Role: name, Known: r.Names()}
}

// Check returns a [*RoleError] if there is no role of a name.
func (r Roles) Check(name string) error {
	if name == Owner || r.Each[name] != nil {
		return nil
	}
	return &RoleError{Role: name, Known: r.Names()}
}

// Names returns the names of the roles, sorted.
func (r Roles) Names() []string {
	names := slices.AppendSeq([]string{Owner}, maps.Keys(r.Each))
	slices.Sort(names)
	return names
}

// CodeDenied is what a caller's role does not allow.
const CodeDenied = "ACCESS_DENIED"

// A RoleError is a caller with a role that does not exist, or with none.
type RoleError struct {
	// Caller is empty if the role is asked for by name.
	Caller string
	Role   string
	Known  []string
}

// Error names the role.
func (e *RoleError) Error() string {
	switch {
	case e.Role == "":
		return fmt.Sprintf("%q has no role, and there is no default one", e.Caller)
	case e.Caller == "":
		return fmt.Sprintf("there is no role %q; there are: %s", e.Role, strings.Join(e.Known, ", "))
	}
	return fmt.Sprintf("%q has the role %q, which is not configured", e.Caller, e.Role)
}

// Code says what kind of failure it is.
func (e *RoleError) Code() string { return CodeDenied }

// Hint says what the user can do.
func (e *RoleError) Hint() string {
	if e.Role == "" {
		return "make a token with --role, or set access.default_role in the configuration"
	}
	return "describe the role in the configuration, under roles"
}

// A DeniedError is a server that a caller's role does not have.
type DeniedError struct {
	Caller, Role, Server string
	// Place is where the role was written.
	Place string
}

// Error names all three.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("server %q is not among those that %q may use with the role %q", e.Server, e.Caller, e.Role)
}

// Code says what kind of failure it is.
func (e *DeniedError) Code() string { return CodeDenied }

// Hint says who can change that.
func (e *DeniedError) Hint() string {
	return fmt.Sprintf("whoever runs the gateway can widen roles.%s in %s", e.Role, e.Place)
}

// Permit returns nil if a caller may use a server, else a [*DeniedError] or a
// [*RoleError]. Whoever may not use everything does not learn from it which
// other servers there are.
func (r Roles) Permit(who principal.Principal, servers *catalog.Catalog, server string) error {
	role, err := r.Of(who)
	if err != nil {
		return err
	}
	if role.Name == Owner {
		return nil
	}
	entry, err := servers.Server(server)
	if err != nil || !role.Has(entry) {
		return &DeniedError{Caller: who.ID, Role: role.Name, Server: server, Place: role.Place}
	}
	return nil
}
