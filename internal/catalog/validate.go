package catalog

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
)

const badName = "is not a name: 1 to 64 letters, digits, dots, underscores and hyphens, the first a letter or digit"

// Validate checks an entry of whatever format. The error is [Problems], whose
// fields are relative to the entry and whose lines are the entry's own.
func (s Server) Validate() error {
	if problems := s.problems(); len(problems) > 0 {
		problems.sort()
		return problems
	}
	return nil
}

func (s Server) problems() Problems {
	v := validator{Server: s}
	if !entryName.MatchString(s.Name) {
		v.report("", "%s", badName)
	}
	if s.Name == "mcp" {
		v.report("", "the name mcp is reserved for the gateway's own tools")
	}
	v.source()
	v.words()
	v.secrets()
	v.variables()
	v.network()
	v.limits()
	if s.User != "" && !userName.MatchString(s.User) {
		v.report("user", "is %q, want uid, uid:gid or a name", s.User)
	}
	if !slices.Contains([]Isolation{"", Shared, PerPrincipal, PerSession}, s.Isolation) {
		v.report("isolation", "is %q, want shared, principal or session", s.Isolation)
	}
	v.tools()
	v.templates()
	return v.found
}

// A validator gathers what is wrong with one entry.
type validator struct {
	Server
	found Problems
}

func (v *validator) report(field, format string, args ...any) {
	v.found = append(v.found, Problem{
		File: v.Origin.Catalog, Line: v.Origin.Line, Field: field, Text: fmt.Sprintf(format, args...),
	})
}

var (
	entryName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	secretName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	userName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	hostLabel    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
)

// imageProblem says what is wrong with an image reference; "" if nothing is.
func imageProblem(image string) string {
	if image == "" {
		return "names no image"
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return fmt.Sprintf("is %q, which is not an image: %v", image, err)
	}
	return ""
}

// source checks that the entry says in exactly one way what it runs.
func (v *validator) source() {
	var given []string
	if v.Image != "" {
		given = append(given, "image")
		if problem := imageProblem(v.Image); problem != "" {
			v.report("image", "%s", problem)
		}
	}
	if v.Remote != nil {
		given = append(given, "remote")
		v.remote()
	}
	if v.Unsupported != "" {
		given = append(given, "unsupported")
	}
	switch {
	case len(given) == 0:
		v.report("", "needs one of image, remote and unsupported")
	case len(given) > 1:
		v.report("", "has %s; only one of them may be", strings.Join(given, " and "))
	}
}

func (v *validator) remote() {
	u, err := url.Parse(v.Remote.URL)
	switch {
	case v.Remote.URL == "":
		v.report("remote.url", "is missing")
	case err != nil:
		v.report("remote.url", "is not a URL: %v", err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		v.report("remote.url", "is %q, want an https or http URL", v.Remote.URL)
	case u.User != nil:
		v.report("remote.url", "holds a user or password; put it into a secret and a header")
	case strings.Contains(u.Path, "${"), strings.Contains(u.Fragment, "${"):
		v.report("remote.url", "may use secrets only in its query")
	default:
		v.references("remote.url", u.RawQuery)
	}
	if v.Remote.Transport != StreamableHTTP && v.Remote.Transport != SSE {
		v.report("remote.transport", "is %q, want %s or %s", v.Remote.Transport, StreamableHTTP, SSE)
	}
	for name, header := range v.Remote.Headers {
		field := "remote.headers." + name
		if !headerName.MatchString(name) {
			v.report(field, "is not the name of a header")
		}
		if strings.ContainsAny(header, "\r\n\x00") {
			v.report(field, "holds a line break")
		}
		v.references(field, header)
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"entrypoint", v.Entrypoint != nil},
		{"command", v.Command != nil},
		{"user", v.User != ""},
		{"env", v.Env != nil},
		{"network", v.Network.Mode != "" && v.Network.Mode != NetworkNone},
		{"mounts", v.Mounts != nil},
		{"limits", v.Limits != Limits{}},
	} {
		if field.given {
			v.report(field.name, "is for containers, and this server is remote")
		}
	}
}

// references checks that each ${ENV} is the variable of a secret.
func (v *validator) references(field, text string) {
	for _, after := range strings.Split(text, "${")[1:] {
		name, _, closed := strings.Cut(after, "}")
		switch {
		case !closed || !variableName.MatchString(name):
			v.report(field, "has a ${ that begins no ${VARIABLE}")
		case !slices.ContainsFunc(v.Secrets, func(s Secret) bool { return s.Env == name }):
			v.report(field, "uses ${%s}, which is the variable of no secret", name)
		}
	}
}

// words checks that nothing in the lists for search is empty.
func (v *validator) words() {
	for field, words := range map[string][]string{"keywords": v.Keywords, "tags": v.Tags} {
		for i, word := range words {
			if strings.TrimSpace(word) == "" {
				v.report(fmt.Sprintf("%s[%d]", field, i), "is empty")
			}
		}
	}
}

func (v *validator) secrets() {
	names, variables := make(map[string]bool), make(map[string]bool)
	for i, s := range v.Secrets {
		field := fmt.Sprintf("secrets[%d]", i)
		switch {
		case s.Name == "":
			v.report(field, "has no name")
		case !secretName.MatchString(s.Name):
			v.report(field+".name", "is %q, which is not the name of a secret", s.Name)
		case names[s.Name]:
			v.report(field+".name", "%q is asked for twice", s.Name)
		}
		switch {
		case s.Env == "":
			v.report(field, "has no env, the variable that the server reads")
		case !variableName.MatchString(s.Env):
			v.report(field+".env", "is %q, which is not the name of a variable", s.Env)
		case variables[s.Env]:
			v.report(field+".env", "%s is filled twice", s.Env)
		}
		if s.From != "" && !variableName.MatchString(s.From) {
			v.report(field+".from", "is %q, which is not the name of a variable", s.From)
		}
		names[s.Name], variables[s.Env] = true, true
	}
}

func (v *validator) variables() {
	seen := make(map[string]bool)
	for _, e := range v.Env {
		field := "env." + e.Name
		isSecret := slices.ContainsFunc(v.Secrets, func(s Secret) bool { return s.Env == e.Name })
		switch {
		case !variableName.MatchString(e.Name):
			v.report(field, "is not the name of a variable")
		case seen[e.Name]:
			v.report(field, "is set twice")
		case isSecret:
			v.report(field, "is also filled by a secret")
		}
		seen[e.Name] = true
	}
}

func (v *validator) network() {
	modes := []NetworkMode{"", NetworkNone, NetworkAllow, NetworkPublic, NetworkFull}
	switch {
	case !slices.Contains(modes, v.Network.Mode):
		v.report("network", "is %q, want none, public, full or a list", v.Network.Mode)
	case v.Network.Mode == NetworkAllow && len(v.Network.Allow) == 0:
		v.report("network.allow", "is empty; want network: none, or hosts such as api.example.com:443")
	case v.Network.Mode != NetworkAllow && len(v.Network.Allow) > 0:
		v.report("network.allow", "has hosts, but the network is %s", v.Network.Mode)
	}
	for i, allowed := range v.Network.Allow {
		if !validHostPort(allowed) {
			v.report(fmt.Sprintf("network.allow[%d]", i), "is %q, want host:port, such as api.example.com:443", allowed)
		}
	}
}

func validHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return false
	}
	if net.ParseIP(host) != nil {
		return true
	}
	for _, label := range strings.Split(strings.TrimSuffix(host, "."), ".") {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return len(host) <= 253
}

// The engine refuses containers with less.
const (
	leastMemory = 6 << 20
	leastCPUs   = 0.01
)

func (v *validator) limits() {
	l := v.Limits
	if l.Memory != 0 && l.Memory < leastMemory {
		v.report("limits.memory", "is less than 6MB, the least that an engine takes")
	}
	if l.CPUs != 0 && !(l.CPUs >= leastCPUs && l.CPUs <= 1<<16) {
		v.report("limits.cpus", "is %v, want 0.01 or more", l.CPUs)
	}
	for field, limit := range map[string]int64{"limits.pids": l.PIDs, "limits.shm": l.Shm, "limits.tmp": l.Tmp} {
		if limit < 0 {
			v.report(field, "is negative")
		}
	}
	t := v.Timeouts
	if min(t.Start, t.Call, t.CallMax, t.List, t.Idle, t.Stop) < 0 {
		v.report("timeouts", "has a negative duration")
	}
	if t.Stop > MaxStop {
		v.report("timeouts.stop", "is %s, want %s at most", t.Stop, MaxStop)
	}
	if t.CallMax != 0 && t.CallMax < t.Call {
		v.report("timeouts.call_max", "is %s, which is less than call, %s", t.CallMax, t.Call)
	}
}

func (v *validator) tools() {
	seen := make(map[string]bool)
	for i, tool := range v.Tools {
		field := fmt.Sprintf("tools[%d]", i)
		switch {
		case tool.Name == "":
			v.report(field, "has no name")
		case seen[tool.Name]:
			v.report(field+".name", "%q is listed twice", tool.Name)
		}
		seen[tool.Name] = true
	}
}

// templates checks every template of the entry against its config.
func (v *validator) templates() {
	config, problems := compileSchema(v.Config)
	for _, problem := range problems {
		v.report(problem.Field, "%s", problem.Text)
	}
	if problems != nil {
		config, _ = compileSchema(openConfig())
	}
	check := func(field, template string) { v.template(config, field, template) }
	for i, template := range v.Entrypoint {
		check(fmt.Sprintf("entrypoint[%d]", i), template)
	}
	for i, template := range v.Command {
		check(fmt.Sprintf("command[%d]", i), template)
	}
	for _, e := range v.Env {
		check("env."+e.Name, e.Value)
	}
	if v.Remote != nil {
		for name, header := range v.Remote.Headers {
			check("remote.headers."+name, header)
		}
		if strings.Contains(v.Remote.URL, "{{") {
			v.report("remote.url", "takes no templates")
		}
	}
	for i, m := range v.Mounts {
		field := fmt.Sprintf("mounts[%d]", i)
		v.mount(field, m)
		check(field+".source", m.Source)
		check(field+".target", m.Target)
	}
}

// mount checks what can be known before the settings are.
func (v *validator) mount(field string, m Mount) {
	if m.Source == "" {
		v.report(field, "has no source")
	}
	switch literal := !strings.Contains(m.Target, "{{"); {
	case m.Target == "":
		v.report(field, "has no target")
	case strings.HasPrefix(m.Target, "{{"):
	case !path.IsAbs(m.Target):
		v.report(field+".target", "is %q, want an absolute path", m.Target)
	case literal && path.Clean(m.Target) == "/":
		v.report(field+".target", "is the root of the container")
	case literal && slices.ContainsFunc(v.Mounts, func(o Mount) bool { return o != m && o.Target == m.Target }):
		v.report(field+".target", "%s is mounted twice", m.Target)
	}
}

func (v *validator) template(config schema, field, template string) {
	if strings.ContainsRune(template, 0) {
		v.report(field, "holds a NUL character")
	}
	parts, err := parseTemplate(template)
	if err != nil {
		v.report(field, "%v", err)
		return
	}
	for _, p := range parts {
		if p.path == nil {
			continue
		}
		if p.path[0] != "config" || len(p.path) == 1 {
			v.report(field, "uses %q; the settings are below config, such as config.url", p.name())
			continue
		}
		setting, known := config.at(p.path[1:])
		kinds := kinds(setting)
		switch {
		case config.root == nil:
			v.report(field, "uses %s, but the entry has no config", p.name())
		case !known:
			v.report(field, "uses %s, which is not in the config%s", p.name(), suggestion(p.path[len(p.path)-1], config.names(p.path[1:len(p.path)-1])))
		case slices.Equal(kinds, []string{"object"}):
			v.report(field, "uses %s, which is an object", p.name())
		case slices.Equal(kinds, []string{"array"}) && len(parts) == 1 && !p.calls("into", "first", "last"):
			v.report(field, "uses %s, which is a list; add |into, |first or |last", p.name())
		case slices.Equal(kinds, []string{"array"}) && len(parts) > 1 && !p.calls("first", "last"):
			v.report(field, "uses %s, which is a list and must stand alone; or add |first or |last", p.name())
		}
	}
}
