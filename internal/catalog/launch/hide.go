package launch

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// Copied returns an entry that is to be written somewhere else, and its
// helpers, without the values that look like secrets: those of variables become
// secrets, and those in commands settings. They stay where they stand.
func Copied(server catalog.Server) catalog.Server {
	server = HideCommands(server, nil, func(string) bool { return false })
	server.Env, server.Secrets = hideVariables(server)
	for i, h := range server.Helpers { // a copy, since HideCommands
		h.Env, h.Secrets = hideVariables(catalog.Server{Name: server.Name + "." + h.Name, Origin: server.Origin, Env: h.Env, Secrets: h.Secrets})
		server.Helpers[i] = h
	}
	return server
}

// hideVariables makes secrets of variables whose literal values look like some.
func hideVariables(server catalog.Server) ([]catalog.Variable, []catalog.Secret) {
	l := newLauncher(server, Command{}, catalog.Surroundings{})
	l.Env, l.Secrets = nil, slices.Clone(server.Secrets)
	for _, v := range server.Env {
		switch {
		case strings.Contains(v.Value, "{{") || !isSecret(v.Value) && !carriesSecret(v.Name, v.Value):
			l.Env = append(l.Env, v)
		default:
			l.secret(v.Name, v.Name, "its value stands in "+l.Origin.Catalog+", and is not copied from there", true)
		}
	}
	return l.Env, l.Secrets
}

// HideCommands returns an entry whose commands, and those of its helpers, hold
// no secret: it becomes a setting that is asked for. Secrets are the values,
// which are known by the names of their settings, and what looks like one and
// is not in plain sight.
func HideCommands(server catalog.Server, values map[string]string, plain func(word string) bool) catalog.Server {
	l := newLauncher(server, Command{}, catalog.Surroundings{})
	l.Entrypoint, l.Command = l.hide(server.Entrypoint, values, plain), l.hide(server.Command, values, plain)
	l.Helpers = slices.Clone(server.Helpers)
	for i, h := range l.Helpers {
		h.Entrypoint, h.Command = l.hide(h.Entrypoint, values, plain), l.hide(h.Command, values, plain)
		if h.Health != nil && !slices.Equal(newLauncher(server, Command{}, catalog.Surroundings{}).hide(h.Health.Test, values, plain), h.Health.Test) {
			h.Health = nil
			if h.Ready == catalog.ReadyHealthy {
				h.Ready = catalog.ReadyStarted
			}
			l.remark("the health check of %s is left out: it holds a secret, which has no place there", h.Name)
		}
		l.Helpers[i] = h
	}
	l.Config = withSettings(l.Config, l.settings)
	return l.Server
}

// hide takes secrets out of the words of a command.
func (l *launcher) hide(words []string, values map[string]string, plain func(word string) bool) []string {
	known := slices.Clone(words)
	for i, word := range known {
		if plain(word) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if value := values[name]; value != "" && strings.Contains(word, value) {
				word = strings.ReplaceAll(word, value, l.setting(name, property{
					Type: "string", Description: "In place of the variable " + name + " of the environment", required: true,
				}, ""))
			}
		}
		known[i] = word
	}
	stays := func(word string) bool { return plain(word) || strings.Contains(word, "{{") }
	return l.withoutSecrets(known, stays, func(word string) string { return word })
}

// withSettings adds settings to the schema of those that an entry has. A schema
// that cannot be read stays, for the entry's own check to say so.
func withSettings(schema json.RawMessage, settings map[string]property) json.RawMessage {
	if len(settings) == 0 {
		return schema
	}
	whole := map[string]json.RawMessage{"type": json.RawMessage(`"object"`)}
	var properties map[string]json.RawMessage
	var required []string
	if schema != nil {
		if json.Unmarshal(schema, &whole) != nil || whole == nil {
			return schema
		}
		for name, to := range map[string]any{"properties": &properties, "required": &required} {
			if own, ok := whole[name]; ok && json.Unmarshal(own, to) != nil {
				return schema
			}
		}
	}
	if properties == nil {
		properties = make(map[string]json.RawMessage)
	}
	for name, p := range settings {
		encoded, err := json.Marshal(p)
		if err != nil {
			return schema // texts only, so it encodes
		}
		properties[name] = encoded
		if p.required && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	all := map[string]any{"properties": properties, "required": required}
	for name, value := range whole {
		if _, ours := all[name]; !ours {
			all[name] = value
		}
	}
	made, err := json.Marshal(all)
	if err != nil {
		return schema // decoded from JSON, so it encodes
	}
	return made
}
