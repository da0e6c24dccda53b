package catalog

import (
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"

	"github.com/dockgate/dockgate/internal/catalog/setting"
	"github.com/dockgate/dockgate/internal/catalog/spelling"
	"github.com/dockgate/dockgate/internal/catalog/template"
)

const badName = "is not a name: 1 to 64 letters, digits, dots, underscores and hyphens, the first a letter or digit"

// Validate checks an entry of whatever format. The error is [Problems], whose
// fields are relative to the entry and whose lines are the entry's own.
func (s Server) Validate() error {
	if problems := s.problems(); len(problems) > 0 {
		problems.Sort()
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
	v.secrets("", s.Secrets)
	v.variables("", s.Env, s.Secrets)
	v.network()
	v.limits()
	v.user("user", s.User)
	if s.WorkingDir != "" && !path.IsAbs(s.WorkingDir) {
		v.report("working_dir", "is %q, want an absolute path", s.WorkingDir)
	}
	v.hosts()
	v.places("tmpfs", s.Tmpfs)
	if !slices.Contains([]Isolation{"", Shared, PerPrincipal, PerSession, PerCapabilities}, s.Isolation) {
		v.report("isolation", "is %q, want shared, principal, session or capabilities", s.Isolation)
	}
	v.helpers()
	v.templates()
	v.tools()
	return v.found
}

// A validator gathers what is wrong with one entry.
type validator struct {
	Server
	found Problems
	// settings are what templates may use; so are the arguments of a tool that
	// has a container of its own, while its templates are checked.
	settings  setting.Schema
	arguments *setting.Schema
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
	volumeName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}$`)
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

// secrets checks the secrets of the entry, or of a helper, in the field.
func (v *validator) secrets(prefix string, secrets []Secret) {
	names, variables := make(map[string]bool), make(map[string]bool)
	for i, s := range secrets {
		field := fmt.Sprintf("%ssecrets[%d]", prefix, i)
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

// variables checks the variables of the entry, or of a helper.
func (v *validator) variables(prefix string, env []Variable, secrets []Secret) {
	seen := make(map[string]bool)
	for _, e := range env {
		field := prefix + "env." + e.Name
		isSecret := slices.ContainsFunc(secrets, func(s Secret) bool { return s.Env == e.Name })
		switch {
		case !variableName.MatchString(e.Name):
			v.report(field, "is not the name of a variable")
		case seen[e.Name]:
			v.report(field, "is set twice")
		case isSecret:
			v.report(field, "is also filled by a secret")
		case len(SecretsIn(e.Value, secrets)) > 0 && strings.Contains(e.Value, "{{"):
			v.report(field, "uses a secret and a setting; a model that chooses the setting could send the secret away with it")
		}
		seen[e.Name] = true
	}
}

// SecretsIn returns the variables of those secrets that stand in a text as
// ${VARIABLE}, in the order of the secrets.
func SecretsIn(text string, secrets []Secret) []string {
	var names []string
	for _, s := range secrets {
		if strings.Contains(text, "${"+s.Env+"}") {
			names = append(names, s.Env)
		}
	}
	return names
}

// user checks a user, which may be a template.
func (v *validator) user(field, user string) {
	if user != "" && !strings.Contains(user, "{{") {
		if problem := CheckUser(user); problem != "" {
			v.report(field, "%s", problem)
		}
	}
}

// CheckUser says what is wrong with the user of a container; "" if nothing is.
func CheckUser(user string) string {
	if userName.MatchString(user) {
		return ""
	}
	return fmt.Sprintf("is %q, want uid, uid:gid or a name", user)
}

// hosts checks the lines for /etc/hosts.
func (v *validator) hosts() {
	for i, line := range v.ExtraHosts {
		name, address, _ := strings.Cut(line, ":")
		if !hostLabel.MatchString(strings.ReplaceAll(name, ".", "-")) || (net.ParseIP(strings.Trim(address, "[]")) == nil && address != "host-gateway") {
			v.report(fmt.Sprintf("extra_hosts[%d]", i), "is %q, want name:address", line)
		}
	}
}

// places checks paths in the container.
func (v *validator) places(field string, paths []string) {
	for i, place := range paths {
		if !path.IsAbs(place) || path.Clean(place) == "/" {
			v.report(fmt.Sprintf("%s[%d]", field, i), "is %q, want an absolute path below the root", place)
		}
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
	if net.ParseIP(host) != nil || host == "*" {
		return true
	}
	host = strings.TrimPrefix(host, "*.")
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
	v.bounds("", v.Limits)
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

// bounds checks the limits of the entry, or of a helper.
func (v *validator) bounds(prefix string, l Limits) {
	if l.Memory != 0 && l.Memory < leastMemory {
		v.report(prefix+"limits.memory", "is less than 6MB, the least that an engine takes")
	}
	if l.CPUs != 0 && !(l.CPUs >= leastCPUs && l.CPUs <= 1<<16) {
		v.report(prefix+"limits.cpus", "is %v, want 0.01 or more", l.CPUs)
	}
	for field, limit := range map[string]int64{"pids": l.PIDs, "shm": l.Shm, "tmp": l.Tmp} {
		if limit < 0 {
			v.report(prefix+"limits."+field, "is negative")
		}
	}
}

// templates checks every template of the entry against its config.
func (v *validator) templates() {
	config, problems := setting.Compile(v.Config)
	for _, problem := range problems {
		v.report(problem.Field, "%s", problem.Text)
	}
	if problems != nil {
		config, _ = setting.Compile(setting.Open())
	}
	v.settings = config
	for i, text := range v.Entrypoint {
		v.template(fmt.Sprintf("entrypoint[%d]", i), text)
	}
	for i, text := range v.Command {
		v.template(fmt.Sprintf("command[%d]", i), text)
	}
	v.template("user", v.User)
	for _, e := range v.Env {
		v.template("env."+e.Name, e.Value)
	}
	if v.Remote != nil {
		for name, header := range v.Remote.Headers {
			v.template("remote.headers."+name, header)
		}
		if strings.Contains(v.Remote.URL, "{{") {
			v.report("remote.url", "takes no templates")
		}
	}
	v.mounts("", v.Mounts)
}

func (v *validator) mounts(prefix string, mounts []Mount) {
	for i, m := range mounts {
		field := fmt.Sprintf("%smounts[%d]", prefix, i)
		v.mount(field, m, mounts)
		v.template(field+".source", m.Source)
		v.template(field+".target", m.Target)
	}
}

// mount checks what can be known before the settings are.
func (v *validator) mount(field string, m Mount, all []Mount) {
	switch {
	case m.Source == "" && m.Volume == "":
		v.report(field, "has no source")
	case m.Source != "" && m.Volume != "":
		v.report(field, "has a source and a volume; only one of them may be")
	case m.Volume != "" && !volumeName.MatchString(m.Volume):
		v.report(field+".volume", "is %q, which is not the name of a volume", m.Volume)
	}
	switch literal := !strings.Contains(m.Target, "{{"); {
	case m.Target == "":
		v.report(field, "has no target")
	case strings.HasPrefix(m.Target, "{{"):
	case !path.IsAbs(m.Target):
		v.report(field+".target", "is %q, want an absolute path", m.Target)
	case literal && path.Clean(m.Target) == "/":
		v.report(field+".target", "is the root of the container")
	case literal && slices.ContainsFunc(all, func(o Mount) bool { return o != m && o.Target == m.Target }):
		v.report(field+".target", "%s is mounted twice", m.Target)
	}
}

// template checks one template: what it uses must be there, and be one text.
func (v *validator) template(field, text string) {
	if strings.ContainsRune(text, 0) {
		v.report(field, "holds a NUL character")
	}
	if !strings.Contains(text, "{{") {
		return
	}
	parts, err := template.Parse(text)
	if err != nil {
		v.report(field, "%v", err)
		return
	}
	for _, p := range parts {
		if p.Path == nil {
			continue
		}
		if p.Path[0] == "arguments" && v.arguments != nil && len(p.Path) > 1 {
			if problem := misused(p, *v.arguments, len(parts) == 1, "takes no arguments", "among the arguments"); problem != "" {
				v.report(field, "%s", problem)
			}
			continue
		}
		if p.Path[0] != "config" || len(p.Path) == 1 {
			v.report(field, "uses %q; the settings are below config, such as config.url", p.Name())
			continue
		}
		if problem := misused(p, v.settings, len(parts) == 1, "has no config", "in the config"); problem != "" {
			v.report(field, "%s", problem)
		}
	}
}

// misused says what is wrong with a placeholder; "" if nothing is.
func misused(p template.Part, known setting.Schema, alone bool, none, where string) string {
	found, ok := known.At(p.Path[1:])
	kinds := setting.Kinds(found)
	switch {
	case known.Empty():
		return fmt.Sprintf("uses %s, but the entry %s", p.Name(), none)
	case !ok:
		near := spelling.Suggestion(p.Path[len(p.Path)-1], known.Names(p.Path[1:len(p.Path)-1]))
		return fmt.Sprintf("uses %s, which is not %s%s", p.Name(), where, near)
	case slices.Equal(kinds, []string{"object"}):
		return fmt.Sprintf("uses %s, which is an object", p.Name())
	case slices.Equal(kinds, []string{"array"}) && alone && !p.Calls("into", "first", "last"):
		return fmt.Sprintf("uses %s, which is a list; add |into, |first or |last", p.Name())
	case slices.Equal(kinds, []string{"array"}) && !alone && !p.Calls("first", "last"):
		return fmt.Sprintf("uses %s, which is a list and must stand alone; or add |first or |last", p.Name())
	}
	return ""
}
