// Package native writes entries in dockgate's own format, which package catalog
// reads: a new file, or more entries in one that a person wrote.
//
// What it has written it reads once more: a catalog that stops the gateway is
// worse than an entry that was not added.
package native

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// Add returns a file of the native format with entries added; data is the file
// as it is, and empty for a new one. What stands in it stays, comments too. Of
// entries whose name it has already, Add changes none and returns the names.
func Add(origin catalog.Origin, data []byte, servers []catalog.Server) (added []byte, kept []string, err error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	if len(bytes.TrimSpace(data)) > 0 {
		if _, err := catalog.Parse(origin, data); err != nil {
			return nil, nil, err
		}
		var document yaml.Node
		if err := yaml.Unmarshal(data, &document); err != nil {
			return nil, nil, fmt.Errorf("catalog %s: %w", origin.Catalog, err)
		}
		root = document.Content[0]
	} else {
		root.Content = append(root.Content, text("version"), plain("!!int", "1"))
	}
	entries := document.Member(root, "servers")
	if entries == nil || document.IsNull(entries) {
		filled := &yaml.Node{Kind: yaml.MappingNode}
		if entries == nil {
			root.Content = append(root.Content, text("servers"), filled)
			entries = filled
		} else {
			*entries = *filled
		}
	}
	for _, s := range servers {
		if document.Member(entries, s.Name) != nil {
			kept = append(kept, s.Name)
			continue
		}
		entries.Content = append(entries.Content, text(s.Name), entryNode(s))
	}
	if len(entries.Content) > 0 {
		entries.Style = 0 // an empty "servers: {}" would keep everything on one line
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, nil, fmt.Errorf("catalog %s: %w", origin.Catalog, err)
	}
	// What was written must be read: a catalog that stops the gateway is worse
	// than an entry that was not added.
	if _, err := catalog.Parse(origin, out.Bytes()); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), kept, nil
}

// Encode writes entries as a file of the native format.
func Encode(servers []catalog.Server) ([]byte, error) {
	data, _, err := Add(catalog.Origin{Catalog: "catalog"}, nil, servers)
	return data, err
}

// A mapping is a YAML mapping that leaves out what is empty.
type mapping struct{ node *yaml.Node }

func newMapping() mapping { return mapping{&yaml.Node{Kind: yaml.MappingNode}} }

func text(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

func plain(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func (m mapping) add(name string, value *yaml.Node) {
	m.node.Content = append(m.node.Content, text(name), value)
}

func (m mapping) text(name, value string) {
	if value != "" {
		m.add(name, text(value))
	}
}

func (m mapping) texts(name string, values []string) {
	if len(values) > 0 {
		m.list(name, values)
	}
}

func (m mapping) list(name string, values []string) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range values {
		list.Content = append(list.Content, text(value))
	}
	m.add(name, list)
}

func (m mapping) boolean(name string, value bool) { //nolint:revive // the value of a field
	if value {
		m.add(name, plain("!!bool", "true"))
	}
}

func (m mapping) integer(name string, value int64) {
	if value != 0 {
		m.add(name, plain("!!int", strconv.FormatInt(value, 10)))
	}
}

func (m mapping) duration(name string, value time.Duration) {
	if value != 0 {
		m.add(name, text(value.String()))
	}
}

func (m mapping) mapping(name string, value mapping) {
	if len(value.node.Content) > 0 {
		m.add(name, value.node)
	}
}

// json adds JSON as the YAML that it is.
func (m mapping) json(name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	var decoded yaml.Node
	if err := yaml.Unmarshal(value, &decoded); err == nil && len(decoded.Content) > 0 {
		m.add(name, decoded.Content[0])
	}
}

// item adds a mapping that is there, though it may say nothing.
func item[T any](m mapping, name string, value *T, write func(mapping, T)) {
	if value != nil {
		inner := newMapping()
		write(inner, *value)
		m.add(name, inner.node)
	}
}

// items adds a list of mappings.
func items[T any](m mapping, name string, values []T, write func(mapping, T)) {
	if len(values) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, value := range values {
		inner := newMapping()
		write(inner, value)
		list.Content = append(list.Content, inner.node)
	}
	m.add(name, list)
}

func entryNode(s catalog.Server) *yaml.Node {
	m := newMapping()
	m.text("title", s.Title)
	m.text("description", s.Description)
	m.texts("keywords", s.Keywords)
	m.texts("tags", s.Tags)
	m.text("image", s.Image)
	item(m, "program", s.Program, writeProgram)
	item(m, "exec", s.Exec, func(m mapping, e catalog.Exec) { m.text("container", e.Container) })
	item(m, "remote", s.Remote, writeRemote)
	m.text("unsupported", s.Unsupported)
	m.texts("entrypoint", s.Entrypoint)
	m.texts("command", s.Command)
	m.text("working_dir", s.WorkingDir)
	m.text("user", s.User)
	m.variables("env", s.Env)
	items(m, "secrets", s.Secrets, writeSecret)
	m.json("config", s.Config)
	switch s.Network.Mode {
	case catalog.NetworkPublic, catalog.NetworkFull:
		m.text("network", string(s.Network.Mode))
	case catalog.NetworkAllow:
		network := newMapping()
		network.texts("allow", s.Network.Allow)
		m.mapping("network", network)
	case catalog.NetworkNone:
	}
	m.texts("extra_hosts", s.ExtraHosts)
	items(m, "mounts", s.Mounts, writeMount)
	m.texts("tmpfs", s.Tmpfs)
	m.limits(s.Limits)
	m.timeouts(s.Timeouts)
	if s.Isolation != catalog.Shared {
		m.text("isolation", string(s.Isolation))
	}
	m.boolean("auto_start", s.AutoStart)
	item(m, "http", s.HTTP, func(m mapping, h catalog.HTTP) {
		m.integer("port", int64(h.Port))
		m.text("path", h.Path)
		m.text("transport", h.Transport)
	})
	items(m, "helpers", s.Helpers, writeHelper)
	item(m, "oauth", s.OAuth, func(m mapping, o catalog.OAuth) {
		items(m, "providers", o.Providers, func(m mapping, p catalog.OAuthProvider) {
			m.text("provider", p.Provider)
			m.text("secret", p.Secret)
			m.text("env", p.Env)
		})
		m.texts("scopes", o.Scopes)
	})
	items(m, "tools", s.Tools, writeTool)
	if s.EnabledTools != nil { // none at all is a wish too
		m.list("enabled_tools", s.EnabledTools)
	}
	m.texts("remarks", s.Remarks)
	return m.node
}

func writeProgram(m mapping, p catalog.Program) {
	m.text("runtime", p.Runtime)
	m.text("package", p.Package)
	m.text("version", p.Version)
	m.texts("with", p.With)
	m.text("binary", p.Binary)
	m.text("module", p.Module)
	m.text("index", p.Index)
	m.text("file", p.File)
	m.text("folder", p.Folder)
}

func writeRemote(m mapping, r catalog.Remote) {
	headers := newMapping()
	m.text("url", r.URL)
	m.text("transport", r.Transport)
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		headers.add(name, text(r.Headers[name]))
	}
	m.mapping("headers", headers)
	m.texts("addresses", r.Addresses)
}

func (m mapping) variables(name string, env []catalog.Variable) {
	variables := newMapping()
	for _, v := range env {
		variables.add(v.Name, text(v.Value))
	}
	m.mapping(name, variables)
}

func writeSecret(m mapping, s catalog.Secret) {
	m.text("name", s.Name)
	m.text("env", s.Env)
	m.text("from", s.From)
	m.boolean("required", s.Required)
	m.boolean("file", s.File)
	m.text("instructions", s.Instructions)
}

func writeMount(m mapping, mount catalog.Mount) {
	m.text("source", mount.Source)
	m.text("volume", mount.Volume)
	m.text("target", mount.Target)
	m.boolean("read_only", mount.ReadOnly)
}

func (m mapping) limits(l catalog.Limits) {
	limits := newMapping()
	for _, size := range []struct {
		name  string
		bytes int64
	}{{"memory", l.Memory}, {"shm", l.Shm}, {"tmp", l.Tmp}} {
		if size.bytes != 0 {
			limits.text(size.name, strconv.FormatInt(size.bytes, 10)+"b")
		}
	}
	if l.CPUs != 0 {
		limits.add("cpus", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(l.CPUs, 'f', -1, 64)})
	}
	limits.integer("pids", l.PIDs)
	m.mapping("limits", limits)
}

func (m mapping) timeouts(t catalog.Timeouts) {
	timeouts := newMapping()
	timeouts.duration("start", t.Start)
	timeouts.duration("list", t.List)
	timeouts.duration("call", t.Call)
	timeouts.duration("call_max", t.CallMax)
	timeouts.duration("idle", t.Idle)
	timeouts.duration("stop", t.Stop)
	m.mapping("timeouts", timeouts)
}

func writeHelper(m mapping, h catalog.Helper) {
	m.text("name", h.Name)
	m.text("image", h.Image)
	m.texts("entrypoint", h.Entrypoint)
	m.texts("command", h.Command)
	m.text("working_dir", h.WorkingDir)
	m.text("user", h.User)
	m.variables("env", h.Env)
	items(m, "secrets", h.Secrets, writeSecret)
	items(m, "mounts", h.Mounts, writeMount)
	m.texts("tmpfs", h.Tmpfs)
	m.limits(h.Limits)
	m.text("ready", string(cmp.Or(h.Ready, catalog.ReadyStarted)))
	item(m, "health", h.Health, func(m mapping, h catalog.Health) {
		m.texts("test", h.Test)
		m.duration("interval", h.Interval)
		m.duration("timeout", h.Timeout)
		m.duration("start", h.Start)
		m.integer("retries", h.Retries)
	})
}

func writeTool(m mapping, t catalog.ToolSnapshot) {
	m.text("name", t.Name)
	m.text("description", t.Description)
	m.json("inputSchema", t.InputSchema)
	m.json("annotations", t.Annotations)
	items(m, "examples", t.Examples, func(m mapping, e catalog.Example) {
		m.text("description", e.Description)
		m.json("parameters", e.Parameters)
	})
	item(m, "run", t.Run, func(m mapping, run catalog.ToolRun) {
		m.text("image", run.Image)
		m.texts("entrypoint", run.Entrypoint)
		m.texts("command", run.Command)
		m.text("user", run.User)
		items(m, "mounts", run.Mounts, writeMount)
	})
}
