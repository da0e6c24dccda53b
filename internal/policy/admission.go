package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/rules"
)

// An Admission is what a configuration says of callers: its parts access and
// roles. A part that is there and empty is refused, because what it leaves out
// would be allowed.
type Admission struct {
	Roles   access.Roles
	Issuers []access.Issuer
	// Quotas are those that roles have of their own, by the role.
	Quotas map[string]Quotas
}

// readAdmission reads the parts; file is where they stand. The error is
// [rules.Problems].
func readAdmission(file string, admit, roles yaml.Node) (Admission, error) {
	r := admissionReader{file: file}
	if roles.Kind != 0 {
		r.out.Roles.Each, r.out.Quotas = map[string]*access.Role{}, map[string]Quotas{}
		r.mapping("roles", &roles, r.role)
		if len(r.out.Roles.Each) == 0 && len(r.problems) == 0 {
			r.report(&roles, "roles", "has no role")
		}
	}
	if admit.Kind != 0 {
		r.fields("access", &admit, map[string]func(string, *yaml.Node){
			"default_role": func(field string, n *yaml.Node) { r.out.Roles.Default = r.roleName(field, n) },
			"local_role":   func(field string, n *yaml.Node) { r.out.Roles.Local = r.roleName(field, n) },
			"issuers":      func(field string, n *yaml.Node) { r.list(field, n, r.issuer) },
		})
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b rules.Problem) int { return cmp.Compare(a.Line, b.Line) })
		return Admission{}, r.problems
	}
	return r.out, nil
}

// An admissionReader gathers what stands there, and what is wrong with it.
type admissionReader struct {
	file     string
	problems rules.Problems
	out      Admission
}

func (r *admissionReader) report(n *yaml.Node, field, format string, args ...any) {
	r.problems = append(r.problems, rules.Problem{File: r.file, Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// role reads one role. What it does not say anything of it leaves as it is.
func (r *admissionReader) role(field, name string, key, n *yaml.Node) {
	if err := access.CheckName(name); err != nil {
		r.report(key, field, "%v", err)
	}
	if name == access.Owner {
		r.report(key, field, "is always there, and may use everything")
	}
	role := &access.Role{
		Name: name, Catalogs: access.AnyName(), Servers: access.AnyName(), Place: fmt.Sprintf("%s:%d", r.file, key.Line),
	}
	r.out.Roles.Each[name] = role
	r.fields(field, n, map[string]func(string, *yaml.Node){
		"catalogs": func(field string, n *yaml.Node) { role.Catalogs = r.names(field, n) },
		"servers":  func(field string, n *yaml.Node) { role.Servers = r.names(field, n) },
		"tools":    func(field string, n *yaml.Node) { role.Tools = r.tools(field, n) },
		"approve":  func(field string, n *yaml.Node) { role.Approve = r.yes(field, n) },
		"expose":   func(field string, n *yaml.Node) { role.Expose = r.groups(field, n) },
		"quotas": func(field string, n *yaml.Node) {
			var quotas Quotas
			for _, problem := range quotas.read(field, n) {
				r.problems = append(r.problems, rules.Problem{File: r.file, Line: problem.line, Field: problem.key, Text: problem.text})
			}
			r.out.Quotas[name] = quotas.from(role.Place)
		},
	})
}

func (r *admissionReader) names(field string, n *yaml.Node) access.Names {
	names, err := access.CompileNames(r.texts(field, n))
	if err != nil {
		r.report(n, field, "%v", err)
	}
	return names
}

func (r *admissionReader) tools(field string, n *yaml.Node) rules.Rules {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.report(n, field, "is %s, want a list of tool rules", described(n))
		return rules.Rules{}
	}
	list, err := rules.Parse(r.file, field, *n)
	if err != nil {
		r.problems = append(r.problems, err.(rules.Problems)...) //nolint:errorlint // Parse says so
	}
	return list
}

func (r *admissionReader) groups(field string, n *yaml.Node) []string {
	groups := r.texts(field, n)
	for _, group := range groups {
		if !slices.Contains(knownGroups(), meta.Group(group)) {
			r.report(n, field, "unknown group %q; known: %s", group, join(knownGroups()))
		}
	}
	return append([]string{}, groups...)
}

func knownGroups() []meta.Group {
	return []meta.Group{meta.Meta, meta.Dynamic, gateway.Active, gateway.Direct}
}

// roleName reads the name of a role that there is.
func (r *admissionReader) roleName(field string, n *yaml.Node) string {
	name := r.text(field, n)
	if err := r.out.Roles.Check(name); name != "" && err != nil {
		r.report(n, field, "%v", err)
	}
	return name
}

func (r *admissionReader) issuer(field string, n *yaml.Node) {
	var issuer access.Issuer
	before := len(r.problems)
	r.fields(field, n, map[string]func(string, *yaml.Node){
		"name":     func(field string, n *yaml.Node) { issuer.Name = r.text(field, n) },
		"url":      func(field string, n *yaml.Node) { issuer.URL = r.text(field, n) },
		"audience": func(field string, n *yaml.Node) { issuer.Audience = r.text(field, n) },
		"scopes": func(field string, n *yaml.Node) {
			r.list(field, n, func(field string, n *yaml.Node) {
				var one access.ScopeRole
				r.fields(field, n, map[string]func(string, *yaml.Node){
					"scope": func(field string, n *yaml.Node) { one.Scope = r.text(field, n) },
					"role":  func(field string, n *yaml.Node) { one.Role = r.roleName(field, n) },
				})
				issuer.Scopes = append(issuer.Scopes, one)
			})
		},
	})
	if err := issuer.Check(); err != nil && len(r.problems) == before {
		r.report(n, field, "%v", err)
	}
	for _, other := range r.out.Issuers {
		if other.Name == issuer.Name || other.URL == issuer.URL {
			r.report(n, field, "has the name or the URL of another issuer")
		}
	}
	r.out.Issuers = append(r.out.Issuers, issuer)
}

// fields reads a mapping of known fields.
func (r *admissionReader) fields(field string, n *yaml.Node, known map[string]func(field string, n *yaml.Node)) {
	r.mapping(field, n, func(field, name string, key, value *yaml.Node) {
		read, ok := known[name]
		if !ok {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			r.report(key, field, "unknown field; known: %s", strings.Join(names, ", "))
			return
		}
		read(field, value)
	})
}

// described says what there is, where something with content is wanted.
func described(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
		return "empty"
	}
	return document.Describe(n)
}

// mapping reads a mapping, each key once.
func (r *admissionReader) mapping(field string, n *yaml.Node, entry func(field, name string, key, value *yaml.Node)) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.report(n, field, "is %s, want a mapping with something in it", described(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, path := n.Content[i], field+"."+n.Content[i].Value
		if line, again := first[key.Value]; again {
			r.report(key, path, "is here again; it was on line %d already", line)
			continue
		}
		first[key.Value] = key.Line
		entry(path, key.Value, key, resolved(n.Content[i+1]))
	}
}

func (r *admissionReader) list(field string, n *yaml.Node, element func(field string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.report(n, field, "is %s, want a list", document.Describe(n))
		return
	}
	for i, item := range n.Content {
		element(fmt.Sprintf("%s[%d]", field, i), resolved(item))
	}
}

func (r *admissionReader) texts(field string, n *yaml.Node) (texts []string) {
	r.list(field, n, func(field string, n *yaml.Node) { texts = append(texts, r.text(field, n)) })
	return texts
}

func (r *admissionReader) text(field string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "" {
		r.report(n, field, "is %s, want text", document.Describe(n))
		return ""
	}
	return n.Value
}

func (r *admissionReader) yes(field string, n *yaml.Node) (yes bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&yes) != nil {
		r.report(n, field, "is %s, want true or false", document.Describe(n))
	}
	return yes
}

// resolved follows an alias to what it stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
