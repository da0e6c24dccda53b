package compose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/launch"
)

// A converter makes an entry of a service.
type converter struct {
	*parser
	reader  *document.Reader
	service types.ServiceConfig
	entry   *catalog.Server
	// templates says that the entry has settings, so that {{ begins a placeholder.
	templates bool
}

func (c *converter) remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(c.entry.Remarks, text) {
		c.entry.Remarks = append(c.entry.Remarks, text)
	}
}

func (c *converter) convert(a about) {
	e := c.entry
	part := c.container(c.service, "")
	e.Image, e.Entrypoint, e.Command, e.WorkingDir, e.User = part.Image, part.Entrypoint, part.Command, part.WorkingDir, part.User
	e.Env, e.Secrets, e.Mounts, e.Tmpfs, e.Limits = part.Env, part.Secrets, part.Mounts, part.Tmpfs, part.Limits
	e.ExtraHosts = c.service.ExtraHosts.AsList(":")
	slices.Sort(e.ExtraHosts)
	e.Network = c.network(a)
	if grace := c.service.StopGracePeriod; grace != nil && e.Timeouts.Stop == 0 {
		e.Timeouts.Stop = min(time.Duration(*grace), catalog.MaxStop)
	}
	c.http(a)
	c.helpers()
	c.hide()
}

// hide takes secrets out of the commands that Compose has put there from the
// environment: whoever sees the command sees them.
func (c *converter) hide() {
	plain := make(map[string]bool) // the texts that the file has, with its own defaults
	lines := ""                    // their words, as Compose splits them
	quotes := strings.NewReplacer(`"`, "", "'", "", "\n", " ")
	values := make(map[string]string)
	services := []string{c.service.Name}
	for _, h := range c.entry.Helpers {
		services = append(services, h.Name)
	}
	for _, service := range services {
		own := document.Member(document.Member(c.root, "services"), service)
		for _, text := range scalars(document.Member(own, "entrypoint"), document.Member(own, "command"), document.Member(own, "healthcheck")) {
			for _, m := range composeReference.FindAllStringSubmatch(strings.ReplaceAll(text, "$$", ""), -1) {
				if value, ok := c.environment.lookUp(m[1]); ok && launch.Secretive(m[1]) {
					values[m[1]] = value
				}
			}
			text = strings.ReplaceAll(composeDefault.ReplaceAllString(text, "$1"), "$$", "$")
			plain[text] = true
			lines += " " + quotes.Replace(text) + " "
		}
	}
	*c.entry = launch.HideCommands(*c.entry, values, func(word string) bool {
		return plain[word] || strings.Contains(lines, " "+word+" ")
	})
}

// scalars returns the texts below nodes.
func scalars(nodes ...*yaml.Node) []string {
	var texts []string
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if n = document.Target(n); n.Kind == yaml.ScalarNode {
			texts = append(texts, n.Value)
		}
		texts = append(texts, scalars(n.Content...)...)
	}
	return texts
}

// http is set where x-mcp names a port, or a transport that needs one.
func (c *converter) http(a about) {
	switch a.transport {
	case "", "stdio", catalog.StreamableHTTP, "http", catalog.SSE:
	default:
		c.reader.ReportAt(extension+".transport", "is %q, want stdio, streamable-http or sse", a.transport)
		return
	}
	if a.transport == "stdio" || a.transport == "" && a.port == 0 {
		return
	}
	h := &catalog.HTTP{Port: int(a.port), Path: a.path, Transport: catalog.StreamableHTTP}
	if a.transport == catalog.SSE {
		h.Transport = catalog.SSE
	}
	if h.Path == "" {
		h.Path = map[string]string{catalog.StreamableHTTP: "/mcp", catalog.SSE: "/sse"}[h.Transport]
	}
	c.entry.HTTP = h
}

// network is what Compose would let the service reach: everything, unless it
// has no network, or only networks that lead nowhere.
func (c *converter) network(a about) catalog.Network {
	s := c.service
	if len(a.allowHosts) > 0 {
		return catalog.Network{Mode: catalog.NetworkAllow, Allow: a.allowHosts}
	}
	switch {
	case s.NetworkMode == "none":
		return catalog.Network{Mode: catalog.NetworkNone}
	case s.NetworkMode == "host":
		c.remark("network_mode host is kept out: it asks for the engine's network instead")
	case s.NetworkMode != "" && s.NetworkMode != "bridge" && s.NetworkMode != "default":
		c.remark("network_mode %s is kept out", s.NetworkMode)
	}
	internal := len(s.Networks) > 0
	for _, name := range sorted(s.Networks) {
		if !c.project.Networks[name].Internal {
			internal = false
		}
	}
	if internal {
		return catalog.Network{Mode: catalog.NetworkNone}
	}
	return catalog.Network{Mode: catalog.NetworkFull}
}

// container converts what server and helpers have in common; of is the name of
// a helper, for remarks.
func (c *converter) container(s types.ServiceConfig, of string) catalog.Helper {
	if of != "" {
		of = " of " + of
	}
	h := catalog.Helper{
		Name: s.Name, Image: s.Image, WorkingDir: s.WorkingDir, User: s.User,
		Entrypoint: c.words(s.Entrypoint), Command: c.words(s.Command),
	}
	if h.Image == "" && s.Build != nil {
		h.Image = c.project.Name + "-" + s.Name
		c.remark("the image %s%s is the one that docker compose build makes; it is not built here", h.Image, of)
	}
	c.keepOut(s, of)
	c.mounts(s, of, &h)
	for _, place := range s.Tmpfs {
		place, _, _ = strings.Cut(place, ":")
		h.Tmpfs = append(h.Tmpfs, place)
	}
	h.Limits = limits(s)
	c.variables(s, of, &h)
	return h
}

// words converts a command. Without settings {{ begins nothing in Compose, and
// has no other form here.
func (c *converter) words(words []string) []string {
	if !c.templates && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{{") }) {
		c.reader.ReportAt("command", "uses {{, which begins a placeholder here; describe its settings in %s.config", extension)
		return nil
	}
	return slices.Clone(words)
}

// keepOut says what of a service is not in the entry.
func (c *converter) keepOut(s types.ServiceConfig, of string) {
	out := func(name string, given bool) { //nolint:revive // whether there is something to keep out
		if given {
			c.remark("kept out%s: %s", of, name)
		}
	}
	out("privileged", s.Privileged)
	out("cap_add "+strings.Join(s.CapAdd, ", "), len(s.CapAdd) > 0)
	out("devices", len(s.Devices) > 0 || len(s.DeviceCgroupRules) > 0)
	out("gpus", len(s.Gpus) > 0)
	out("pid "+s.Pid, s.Pid != "")
	out("ipc "+s.Ipc, s.Ipc != "" && s.Ipc != "private" && s.Ipc != "none")
	out("uts "+s.Uts, s.Uts != "")
	out("userns_mode "+s.UserNSMode, s.UserNSMode != "")
	out("security_opt", slices.ContainsFunc(s.SecurityOpt, func(o string) bool { return !strings.HasPrefix(o, "no-new-privileges") }))
	out("sysctls", len(s.Sysctls) > 0)
	out("group_add", len(s.GroupAdd) > 0)
	out("volumes_from", len(s.VolumesFrom) > 0)
	out("cgroup_parent", s.CgroupParent != "")
	out("runtime "+s.Runtime, s.Runtime != "")
	out("platform "+s.Platform, s.Platform != "")
	out("use_api_socket", s.UseAPISocket)
	out("configs", len(s.Configs) > 0)
	out("ports, as no port is published", len(s.Ports) > 0)
}

func (c *converter) mounts(s types.ServiceConfig, of string, h *catalog.Helper) {
	for _, v := range s.Volumes {
		switch {
		case v.Type == types.VolumeTypeTmpfs || v.Type == types.VolumeTypeVolume && v.Source == "":
			h.Tmpfs = append(h.Tmpfs, v.Target)
		case v.Type == types.VolumeTypeVolume:
			name := v.Source
			if volume, ok := c.project.Volumes[v.Source]; ok && volume.Name != "" {
				name = volume.Name
			}
			h.Mounts = append(h.Mounts, catalog.Mount{Volume: name, Target: v.Target, ReadOnly: v.ReadOnly})
		case v.Type == types.VolumeTypeBind && slices.Contains([]string{"docker.sock", "podman.sock"}, path.Base(v.Source)):
			c.remark("%s%s is kept out: whoever has the engine's socket has the machine", v.Source, of)
		case v.Type == types.VolumeTypeBind:
			h.Mounts = append(h.Mounts, catalog.Mount{Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly})
		default:
			c.remark("the volume %s%s of type %s is kept out", v.Target, of, v.Type)
		}
	}
	for _, secret := range s.Secrets {
		defined := c.project.Secrets[secret.Source]
		target := secret.Target
		if target == "" {
			target = secret.Source
		}
		if !path.IsAbs(target) {
			target = "/run/secrets/" + target
		}
		if defined.File == "" {
			c.remark("the secret %s%s is kept out: only those with a file can be mounted", secret.Source, of)
			continue
		}
		h.Mounts = append(h.Mounts, catalog.Mount{Source: defined.File, Target: target, ReadOnly: true})
	}
}

func limits(s types.ServiceConfig) catalog.Limits {
	l := catalog.Limits{Memory: int64(s.MemLimit), CPUs: float64(s.CPUS), PIDs: max(0, s.PidsLimit), Shm: int64(s.ShmSize)}
	if s.Deploy == nil || s.Deploy.Resources.Limits == nil {
		return l
	}
	deployed := s.Deploy.Resources.Limits
	if deployed.MemoryBytes > 0 {
		l.Memory = int64(deployed.MemoryBytes)
	}
	if cpus := deployed.NanoCPUs.Value(); cpus > 0 {
		l.CPUs = float64(cpus)
	}
	if deployed.Pids > 0 {
		l.PIDs = deployed.Pids
	}
	return l
}

// composeDefault is a reference with a default, as its first group.
var composeDefault = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*:?-([^}$]*)\}`)

var composeReference = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)(?:[^}$]*\})?`)

// variables converts the environment. A variable that the file takes from the
// environment, and one of the two names says that it is a secret, becomes that
// secret; what Compose has put in its place is not used.
func (c *converter) variables(s types.ServiceConfig, of string, h *catalog.Helper) {
	var all []catalog.Variable
	written := c.written(s.Name)
	for _, name := range sorted(s.Environment) {
		value := s.Environment[name]
		raw, stands := written[name]
		switch refers := composeReference.FindStringSubmatch(strings.ReplaceAll(raw, "$$", "")); {
		case stands && raw == "" && launch.Secretive(name): // passed on from the environment
			all = append(all, catalog.Variable{Name: name, Value: "${" + name + "}"})
		case refers != nil && (launch.Secretive(name) || launch.Secretive(refers[1]) || value != nil && c.brings(refers[1]) && launch.LooksSecret(*value)):
			all = append(all, catalog.Variable{Name: name, Value: composeReference.ReplaceAllString(raw, "$${$1}")})
		case value != nil && (strings.Contains(*value, "{{") && !c.templates):
			c.remark("the variable %s%s is left out: its value holds {{, which begins a placeholder here", name, of)
		case value != nil && stands: // in plain sight in a file that the user wrote
			h.Env = append(h.Env, catalog.Variable{Name: name, Value: *value})
		case value != nil:
			all = append(all, catalog.Variable{Name: name, Value: *value})
		default:
			c.remark("the variable %s%s is not set here, and left out", name, of)
		}
	}
	holder := catalog.Server{Name: c.service.Name, Origin: c.entry.Origin}
	if of != "" {
		holder.Name += "." + s.Name
	}
	holder = launch.Variables(holder, all, c.around)
	h.Env, h.Secrets = append(h.Env, holder.Env...), holder.Secrets
	for _, remark := range holder.Remarks {
		c.remark("%s", remark)
	}
}

// brings reports that the environment has a variable.
func (c *converter) brings(name string) bool {
	_, ok := c.environment.lookUp(name)
	return ok
}

// written returns the environment of a service as the file has it.
func (c *converter) written(service string) map[string]string {
	values := make(map[string]string)
	own := document.Member(document.Member(c.root, "services"), service)
	if own == nil {
		return values
	}
	environment := document.Member(own, "environment")
	switch {
	case environment == nil:
	case environment.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(environment.Content); i += 2 {
			value := document.Target(environment.Content[i+1])
			if document.IsNull(value) {
				values[environment.Content[i].Value] = ""
			} else {
				values[environment.Content[i].Value] = value.Value
			}
		}
	case environment.Kind == yaml.SequenceNode:
		for _, item := range environment.Content {
			name, value, _ := strings.Cut(document.Target(item).Value, "=")
			values[name] = value
		}
	}
	return values
}

// helpers converts the services that this one depends on, those first that
// others depend on.
func (c *converter) helpers() {
	seen := map[string]bool{c.service.Name: true}
	ready := make(map[string]catalog.Ready)
	var order []string
	var visit func(s types.ServiceConfig)
	visit = func(s types.ServiceConfig) {
		for _, name := range sorted(s.DependsOn) {
			ready[name] = stronger(ready[name], condition(s.DependsOn[name].Condition))
			needed, ok := c.project.Services[name]
			if !ok || seen[name] {
				continue
			}
			seen[name] = true
			visit(needed)
			order = append(order, name)
		}
	}
	visit(c.service)
	for _, name := range order {
		s := c.project.Services[name]
		h := c.container(s, name)
		h.Ready = ready[name]
		if s.HealthCheck != nil && !s.HealthCheck.Disable && len(s.HealthCheck.Test) > 0 && s.HealthCheck.Test[0] != "NONE" {
			h.Health = health(*s.HealthCheck)
		}
		c.entry.Helpers = append(c.entry.Helpers, h)
	}
}

func condition(name string) catalog.Ready {
	switch name {
	case types.ServiceConditionHealthy:
		return catalog.ReadyHealthy
	case types.ServiceConditionCompletedSuccessfully:
		return catalog.ReadyCompleted
	}
	return catalog.ReadyStarted
}

// stronger is the condition that holds only if both do.
func stronger(a, b catalog.Ready) catalog.Ready {
	order := []catalog.Ready{"", catalog.ReadyStarted, catalog.ReadyHealthy, catalog.ReadyCompleted}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

func health(check types.HealthCheckConfig) *catalog.Health {
	h := catalog.Health{Test: check.Test}
	if h.Test[0] == "CMD" {
		h.Test = h.Test[1:]
	}
	for _, d := range []struct {
		to   *time.Duration
		from *types.Duration
	}{{&h.Interval, check.Interval}, {&h.Timeout, check.Timeout}, {&h.Start, check.StartPeriod}} {
		if d.from != nil {
			*d.to = time.Duration(*d.from)
		}
	}
	if check.Retries != nil {
		h.Retries = int64(min(*check.Retries, 1000)) //nolint:gosec // bounded
	}
	return &h
}
