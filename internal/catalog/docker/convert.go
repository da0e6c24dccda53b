package docker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/catalog/template"
)

// lasting is how long a server that must not be stopped between calls may be
// idle: as long as any container runs.
const lasting = 12 * time.Hour

// A converter makes our entry of one of theirs.
type converter struct {
	entry
	reader *document.Reader
	// field names the field of the file for one of ours.
	field  func(string) string
	server catalog.Server
	// settings are the objects of settings by their names, as decoded JSON.
	settings map[string]any
	// flat says that the settings of the one object, which has the server's
	// name, stand directly below "config".
	flat bool
	// places are the indexes of the volumes that became the mounts.
	places []int
}

func (c *converter) convert(origin catalog.Origin) catalog.Server {
	c.server = catalog.Server{
		Name: c.name, Title: c.title, Description: c.description, Origin: origin, Tags: c.words(),
		Isolation: catalog.Shared, ExtraHosts: c.extraHosts, OAuth: c.oauth,
	}
	c.readSettings()
	c.convertSecrets()
	c.convertTools()
	switch c.source() {
	case "remote":
		c.server.Network.Mode = catalog.NetworkNone
		c.convertRemote()
	case "poci":
		c.runTools()
		c.container()
	case "server":
		c.server.Image = c.image
		if c.image == "" {
			c.report("image", "is missing")
		}
		c.server.Command = c.templates("command", c.command)
		c.container()
	default:
		c.report("type", "is %q, want server, remote or poci", c.kind)
		c.server.Unsupported = "has an unknown type"
	}
	if c.prefix != "" && c.prefix != c.name {
		c.server.Remarks = append(c.server.Remarks, fmt.Sprintf("prefix %q is not used: tools are named after the server, %s__TOOL", c.prefix, c.name))
	}
	c.server.Config = c.schema()
	return c.server
}

func (c *converter) source() string {
	switch {
	case c.kind != "":
		return c.kind
	case c.remote != nil || c.sseEndpoint != "":
		return "remote"
	case slices.ContainsFunc(c.tools, func(t tool) bool { return t.container != nil }):
		return "poci"
	}
	return "server"
}

// place names the field of the file for one of the entry. A volume that could
// not be converted is no mount, so mounts are counted differently.
func (c *converter) place(field string) string {
	var i int
	if _, err := fmt.Sscanf(field, "mounts[%d]", &i); err == nil && i < len(c.places) {
		field = fmt.Sprintf("volumes[%d]", c.places[i])
	}
	return c.field(field)
}

// words are the tags and the category, each once.
func (c *converter) words() []string {
	var words []string
	for _, word := range append(slices.Clone(c.tags), c.category) {
		if word = strings.TrimSpace(word); word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// container converts what a container asks for.
func (c *converter) container() {
	s := &c.server
	s.User = c.template("user", c.user)
	for i, v := range c.env {
		if v.Value == "" { // which means that it is not set
			continue
		}
		s.Env = append(s.Env, catalog.Variable{Name: v.Name, Value: c.variable(fmt.Sprintf("env[%d].value", i), v.Value)})
	}
	for i, text := range c.volumes {
		if m, ok := c.mount(fmt.Sprintf("volumes[%d]", i), text, c.setting); ok {
			s.Mounts = append(s.Mounts, m)
			c.places = append(c.places, i)
		}
	}
	s.Network = c.network()
	if c.longLived {
		s.Timeouts.Idle = lasting
	}
}

func (c *converter) network() catalog.Network {
	switch {
	case c.disableNetwork:
		return catalog.Network{Mode: catalog.NetworkNone}
	case len(c.allowHosts) == 0:
		return catalog.Network{Mode: catalog.NetworkFull}
	}
	allowed := catalog.Network{Mode: catalog.NetworkAllow}
	for _, host := range c.allowHosts {
		host, _, _ = strings.Cut(host, "/") // the protocol; the port says enough
		if !strings.Contains(host, ":") {
			host += ":443"
		}
		allowed.Allow = append(allowed.Allow, host)
	}
	return allowed
}

// convertSecrets takes a secret for required where it says so, or where it
// says nothing and is the only one: of several, some are often alternatives.
func (c *converter) convertSecrets() {
	for _, s := range c.secrets {
		instructions := s.description
		if instructions == "" && s.example != "" {
			instructions = "it looks like " + s.example
		}
		if p := c.provider(s); instructions == "" && p != "" {
			instructions = token(p)
		}
		required := len(c.secrets) == 1
		if s.required != nil {
			required = *s.required
		}
		c.server.Secrets = append(c.server.Secrets, catalog.Secret{
			Name: s.name, Env: s.env, Required: required, Instructions: instructions,
		})
	}
	if c.oauth == nil || c.source() == "remote" {
		return
	}
	for _, p := range c.oauth.Providers {
		known := slices.ContainsFunc(c.server.Secrets, func(s catalog.Secret) bool { return s.Env == p.Env || s.Name == p.Secret })
		if p.Env != "" && p.Secret != "" && !known {
			c.server.Secrets = append(c.server.Secrets, catalog.Secret{
				Name: p.Secret, Env: p.Env, Instructions: token(p.Provider),
			})
		}
	}
}

// provider is who gives out a secret by OAuth, "" if nobody does.
func (c *converter) provider(s secret) string {
	if c.oauth == nil {
		return ""
	}
	for _, p := range c.oauth.Providers {
		if p.Secret == s.name || p.Env == s.env {
			return p.Provider
		}
	}
	return ""
}

// token says how to get a token that a container needs: nothing logs in for a
// container, whose code would see what is not meant for it.
func token(provider string) string {
	return "an access token of " + provider + ", to be made there by hand"
}

func (c *converter) convertRemote() {
	c.server.Remote = &catalog.Remote{URL: c.sseEndpoint, Transport: catalog.SSE}
	if c.remote == nil {
		return
	}
	transport := catalog.StreamableHTTP
	switch c.remote.transport {
	case "sse":
		transport = catalog.SSE
	case "", "http", "streamable", "streaming", "streamable-http":
	default:
		c.report("remote.transport_type", "is %q, want sse, http, streamable, streaming or streamable-http", c.remote.transport)
	}
	c.server.Remote = &catalog.Remote{URL: c.remote.url, Transport: transport}
	for name, header := range c.remote.headers {
		if c.server.Remote.Headers == nil {
			c.server.Remote.Headers = make(map[string]string)
		}
		c.server.Remote.Headers[name] = c.variable("remote.headers."+name, header)
	}
}

func (c *converter) convertTools() {
	for _, t := range c.tools {
		if t.InputSchema == nil && t.arguments != nil {
			t.InputSchema = argumentSchema(t.arguments)
		}
		c.server.Tools = append(c.server.Tools, t.ToolSnapshot)
	}
}

// argumentSchema writes the older list of arguments as a JSON Schema.
func argumentSchema(arguments []argument) json.RawMessage {
	properties := make(map[string]any)
	required := []string{}
	for _, a := range arguments {
		property := make(map[string]any)
		for name, value := range map[string]string{"type": a.kind, "description": a.description} {
			if value != "" {
				property[name] = value
			}
		}
		if a.items != "" {
			property["items"] = map[string]any{"type": a.items}
		}
		properties[a.name] = property
		if !a.optional {
			required = append(required, a.name)
		}
	}
	encoded, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required}) // texts only
	return encoded
}

// runTools gives each tool its container.
func (c *converter) runTools() {
	for i, t := range c.tools {
		if t.container == nil {
			continue // the entry's own check reports it
		}
		field := fmt.Sprintf("tools[%d].container.", i)
		run := *t.container
		argument := func(path []string) []string { return append([]string{"arguments"}, path...) }
		for j, text := range run.Command {
			run.Command[j] = c.rewrite(fmt.Sprintf("%scommand[%d]", field, j), text, argument)
		}
		run.User = c.rewrite(field+"user", run.User, argument)
		for j, text := range t.volumes {
			if m, ok := c.mount(fmt.Sprintf("%svolumes[%d]", field, j), text, argument); ok {
				run.Mounts = append(run.Mounts, m)
			}
		}
		c.server.Tools[i].Run = &run
		if reason := run.Refusal(); reason != "" {
			c.server.Remarks = append(c.server.Remarks, fmt.Sprintf("tool %q is left out: %s", t.Name, reason))
		}
	}
}

// variable converts the value of a variable or header: a template; or a text
// in which $NAME and ${NAME} stand for secrets.
func (c *converter) variable(field, value string) string {
	if strings.Contains(value, "{{") {
		return c.template(field, value)
	}
	for _, s := range c.secrets {
		value = replaceReference(value, s.env)
	}
	return value
}

// replaceReference writes $NAME as ${NAME}.
func replaceReference(value, name string) string {
	if name == "" {
		return value
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(value, "$"+name)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if after != "" && (after[0] == '_' || after[0] >= '0' && after[0] <= '9' || after[0]|0x20 >= 'a' && after[0]|0x20 <= 'z') {
			b.WriteString("$" + name) // a longer name
		} else {
			b.WriteString("${" + name + "}")
		}
		value = after
	}
}

func (c *converter) templates(field string, texts []string) []string {
	var converted []string
	for i, text := range texts {
		converted = append(converted, c.template(fmt.Sprintf("%s[%d]", field, i), text))
	}
	return converted
}

func (c *converter) template(field, text string) string { return c.rewrite(field, text, c.setting) }

// rewrite converts a template: path gives the place where we keep a value.
func (c *converter) rewrite(field, text string, path func([]string) []string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	parts, err := template.Parse(text)
	if err != nil {
		c.report(field, "%v", err)
		return ""
	}
	return template.Join(moved(parts, path))
}

// report adds a problem; the field is that of a compiled catalog.
func (c *converter) report(field, format string, args ...any) {
	c.reader.ReportAt(c.field(field), format, args...)
}

// moved returns the parts with the paths of where we keep the values. That a
// list is empty if it is missing needs no word: nothing comes of it.
func moved(parts []template.Part, path func([]string) []string) []template.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.Path == nil {
			continue
		}
		parts[i].Path = path(p.Path)
		parts[i].Functions = slices.DeleteFunc(slices.Clone(p.Functions), func(f template.Function) bool {
			return f.Name == "or" && f.Argument == "[]"
		})
	}
	return parts
}

// setting returns where we keep a setting, and makes one of those that the
// catalog uses and does not describe.
func (c *converter) setting(path []string) []string {
	below := path
	if c.flat && path[0] == c.name && len(path) > 1 {
		below = path[1:]
	}
	object := c.settings
	for i, name := range below {
		if object == nil {
			break
		}
		properties, _ := object["properties"].(map[string]any)
		if properties == nil {
			if object["type"] == "array" {
				break
			}
			properties = make(map[string]any)
			object["properties"] = properties
		}
		inner, known := properties[name].(map[string]any)
		if !known {
			inner = make(map[string]any)
			if i+1 < len(below) {
				inner["type"] = "object"
			}
			properties[name] = inner
		}
		object = inner
	}
	return append([]string{"config"}, below...)
}

// readSettings decodes the objects of settings.
func (c *converter) readSettings() {
	c.settings = map[string]any{"type": "object", "properties": make(map[string]any)}
	c.flat = len(c.configs) == 0 || (len(c.configs) == 1 && (c.configs[0].name == c.name || c.configs[0].name == ""))
	for i, config := range c.configs {
		var object map[string]any
		if config.schema == nil || json.Unmarshal(config.schema, &object) != nil {
			continue // reported when it was read
		}
		delete(object, "name")
		c.prune(object)
		if c.flat {
			c.settings = object
			return
		}
		if config.name == "" {
			c.report(fmt.Sprintf("config[%d]", i), "has no name")
			continue
		}
		c.settings["properties"].(map[string]any)[config.name] = object //nolint:forcetypeassert // made above
		if required, _ := object["required"].([]any); len(required) > 0 {
			names, _ := c.settings["required"].([]any)
			c.settings["required"] = append(names, config.name)
		}
	}
}

// prune drops the names of required settings that do not exist: nobody could
// set them. The format's own reader does not look at them.
func (c *converter) prune(object map[string]any) {
	properties, described := object["properties"].(map[string]any)
	if required, ok := object["required"].([]any); ok && described {
		kept := slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			text, _ := name.(string)
			_, known := properties[text]
			if !known {
				c.server.Remarks = append(c.server.Remarks, fmt.Sprintf("setting %q is required, and does not exist: not asked for", text))
			}
			return !known
		})
		object["required"] = kept
		if len(kept) == 0 {
			delete(object, "required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if inner, ok := properties[name].(map[string]any); ok {
			c.prune(inner)
		}
	}
}

// schema encodes the settings; nil if there are none.
func (c *converter) schema() json.RawMessage {
	if properties, _ := c.settings["properties"].(map[string]any); len(c.configs) == 0 && len(properties) == 0 {
		return nil
	}
	if _, ok := c.settings["type"]; !ok {
		c.settings["type"] = "object"
	}
	encoded, err := json.Marshal(c.settings)
	if err != nil {
		return nil // decoded JSON is JSON
	}
	return encoded
}
