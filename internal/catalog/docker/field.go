package docker

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// An entry is a server as these catalogs describe it.
type entry struct {
	name, title, description, kind, image, user, sseEndpoint, category, prefix string

	command, volumes, allowHosts, extraHosts, tags []string

	env                       []catalog.Variable
	secrets                   []secret
	configs                   []config
	tools                     []tool
	remote                    *remote
	oauth                     *catalog.OAuth
	disableNetwork, longLived bool
}

type secret struct {
	name, env, example, description string
	required                        *bool
}

// A config is one object of settings, which templates know by its name.
type config struct {
	name   string
	schema json.RawMessage
}

type tool struct {
	catalog.ToolSnapshot
	arguments []argument
	container *catalog.ToolRun
	volumes   []string
}

// An argument is the older form of a tool's parameter.
type argument struct {
	name, kind, items, description string
	optional                       bool
}

type remote struct {
	url, transport string
	headers        map[string]string
}

// fields reads the fields of an entry. Where a field may be empty, that is the
// same as missing: the compiler of these catalogs writes many empty ones.
type fields struct{ *document.Reader }

func (f fields) text(to *string) document.Read { return f.Optional(f.Text(to)) }

func (f fields) texts(to *[]string) document.Read { return f.Optional(f.Texts(to)) }

func (f fields) variables(to *[]catalog.Variable) document.Read {
	return f.Optional(f.List(func(field string, n *yaml.Node) {
		var v catalog.Variable
		f.Loose(map[string]document.Read{"name": f.text(&v.Name), "value": f.text(&v.Value)})(field, n)
		*to = append(*to, v)
	}))
}

// variableMap reads the variables of the source form.
func (f fields) variableMap(to *[]catalog.Variable) document.Read {
	return f.Optional(func(field string, n *yaml.Node) {
		f.Each(field, n, func(key, value *yaml.Node) {
			v := catalog.Variable{Name: key.Value}
			f.text(&v.Value)(document.Join(field, key.Value), value)
			*to = append(*to, v)
		})
	})
}

func (f fields) secrets(to *[]secret) document.Read {
	return f.Optional(f.List(func(field string, n *yaml.Node) {
		var s secret
		f.Loose(map[string]document.Read{
			"name": f.text(&s.name), "env": f.text(&s.env), "example": f.text(&s.example), "description": f.text(&s.description),
			"required": f.Optional(func(field string, n *yaml.Node) {
				s.required = new(bool)
				f.Boolean(s.required)(field, n)
			}),
		})(field, n)
		*to = append(*to, s)
	}))
}

// configs reads a list of settings; one alone may stand without the list.
func (f fields) configs(to *[]config) document.Read {
	one := func(field string, n *yaml.Node) {
		var c config
		f.Loose(map[string]document.Read{"name": f.text(&c.name)})(field, n)
		f.Object(&c.schema)(field, n)
		*to = append(*to, c)
	}
	return f.Optional(func(field string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			one(field, n)
			return
		}
		f.List(one)(field, n)
	})
}

func (f fields) tools(to *[]tool) document.Read {
	return f.Optional(f.List(func(field string, n *yaml.Node) {
		if n.Kind == yaml.ScalarNode { // a name alone
			var t tool
			f.Text(&t.Name)(field, n)
			*to = append(*to, t)
			return
		}
		var t tool
		f.Loose(map[string]document.Read{
			"name": f.text(&t.Name), "description": f.text(&t.Description), "parameters": f.Optional(f.Object(&t.InputSchema)),
			"annotations": f.Optional(f.Object(&t.Annotations)),
			"arguments": f.Optional(f.List(func(field string, n *yaml.Node) {
				var a argument
				f.Loose(map[string]document.Read{
					"name": f.text(&a.name), "type": f.text(&a.kind), "desc": f.text(&a.description), "optional": f.Optional(f.Boolean(&a.optional)),
					"items": f.Optional(f.Loose(map[string]document.Read{"type": f.text(&a.items)})),
				})(field, n)
				t.arguments = append(t.arguments, a)
			})),
			"container": f.Optional(func(field string, n *yaml.Node) {
				t.container = new(catalog.ToolRun)
				f.Loose(map[string]document.Read{
					"image": f.text(&t.container.Image), "command": f.texts(&t.container.Command),
					"volumes": f.texts(&t.volumes), "user": f.text(&t.container.User),
				})(field, n)
			}),
		})(field, n)
		*to = append(*to, t)
	}))
}

func (f fields) remote(to **remote) document.Read {
	return f.Optional(func(field string, n *yaml.Node) {
		var r remote
		f.Loose(map[string]document.Read{
			"url": f.text(&r.url), "transport_type": f.text(&r.transport),
			"headers": f.Optional(func(field string, n *yaml.Node) {
				r.headers = make(map[string]string)
				f.Each(field, n, func(key, value *yaml.Node) {
					var header string
					f.text(&header)(document.Join(field, key.Value), value)
					r.headers[key.Value] = header
				})
			}),
		})(field, n)
		*to = &r
	})
}

func (f fields) oauth(to **catalog.OAuth) document.Read {
	return f.Optional(func(field string, n *yaml.Node) {
		var o catalog.OAuth
		list := f.List(func(field string, n *yaml.Node) {
			var p catalog.OAuthProvider
			f.Loose(map[string]document.Read{"provider": f.text(&p.Provider), "secret": f.text(&p.Secret), "env": f.text(&p.Env)})(field, n)
			o.Providers = append(o.Providers, p)
		})
		if n.Kind == yaml.SequenceNode { // the source form has the providers alone
			list(field, n)
		} else {
			f.Loose(map[string]document.Read{"providers": f.Optional(list), "scopes": f.texts(&o.Scopes)})(field, n)
		}
		*to = &o
	})
}

func (f fields) metadata(category *string, tags *[]string) document.Read {
	return f.Optional(f.Loose(map[string]document.Read{"category": f.text(category), "tags": f.texts(tags)}))
}

// compiledField names the field of a compiled catalog that became a field of
// an entry.
func compiledField(field string) string {
	if field == "remote.transport" {
		return "remote.transport_type"
	}
	for _, renamed := range [][2]string{
		{"mounts[", "volumes["},
		{"network.allow", "allowHosts"},
		{"extra_hosts", "extraHosts"},
		{"tags", "metadata.tags"},
	} {
		if rest, ok := strings.CutPrefix(field, renamed[0]); ok {
			field = renamed[1] + rest
			break
		}
	}
	if strings.HasPrefix(field, "volumes[") {
		field, _, _ = strings.Cut(field, ".")
	}
	field = strings.Replace(field, ".inputSchema", ".parameters", 1)
	return strings.Replace(strings.Replace(field, ".run.", ".container.", 1), ".container.mounts[", ".container.volumes[", 1)
}
