package catalog

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
)

// fields say how each field of a mapping is read.
type fields = map[string]document.Read

// one reads a mapping into a value of its own, which begins as made.
func one[T any](r *document.Reader, to **T, made T, of func(*T) fields) document.Read {
	return func(field string, n *yaml.Node) {
		value := made
		r.Mapping(of(&value))(field, n)
		*to = &value
	}
}

// each reads a list of mappings, each into a value as [one] does.
func each[T any](r *document.Reader, to *[]T, made T, of func(*T) fields) document.Read {
	return r.List(func(field string, n *yaml.Node) {
		item := made
		r.Mapping(of(&item))(field, n)
		*to = append(*to, item)
	})
}

// An entryReader reads the fields of one entry of the native format.
type entryReader struct{ *document.Reader }

func (r entryReader) program(to **Program) document.Read {
	return one(r.Reader, to, Program{}, func(p *Program) fields {
		return fields{
			"runtime": r.Text(&p.Runtime),
			"package": r.Text(&p.Package),
			"version": r.Text(&p.Version),
			"with":    r.Texts(&p.With),
			"binary":  r.Text(&p.Binary),
			"module":  r.Text(&p.Module),
			"index":   r.Text(&p.Index),
			"file":    r.Text(&p.File),
			"folder":  r.Text(&p.Folder),
		}
	})
}

func (r entryReader) exec(to **Exec) document.Read {
	return one(r.Reader, to, Exec{}, func(e *Exec) fields { return fields{"container": r.Text(&e.Container)} })
}

func (r entryReader) remote(to **Remote) document.Read {
	return one(r.Reader, to, Remote{Transport: StreamableHTTP}, func(remote *Remote) fields {
		return fields{
			"url":       r.Text(&remote.URL),
			"transport": r.Text(&remote.Transport),
			"addresses": r.Texts(&remote.Addresses),
			"headers": func(field string, n *yaml.Node) {
				remote.Headers = make(map[string]string)
				r.Each(field, n, func(key, value *yaml.Node) {
					var text string
					r.Text(&text)(document.Join(field, key.Value), value)
					remote.Headers[key.Value] = text
				})
			},
		}
	})
}

func (r entryReader) http(to **HTTP) document.Read {
	return func(field string, n *yaml.Node) {
		h := HTTP{Path: "/mcp", Transport: StreamableHTTP}
		var port int64
		r.Mapping(fields{
			"port": r.Integer(&port), "path": r.Text(&h.Path), "transport": r.Text(&h.Transport),
		})(field, n)
		h.Port = int(port)
		*to = &h
	}
}

func (r entryReader) variables(to *[]Variable) document.Read {
	return func(field string, n *yaml.Node) {
		r.Each(field, n, func(key, value *yaml.Node) {
			v := Variable{Name: key.Value}
			r.Text(&v.Value)(document.Join(field, key.Value), value)
			*to = append(*to, v)
		})
	}
}

func (r entryReader) secrets(to *[]Secret) document.Read {
	return each(r.Reader, to, Secret{}, func(s *Secret) fields {
		return fields{
			"name":         r.Text(&s.Name),
			"env":          r.Text(&s.Env),
			"from":         r.Text(&s.From),
			"required":     r.Boolean(&s.Required),
			"file":         r.Boolean(&s.File),
			"instructions": r.Text(&s.Instructions),
		}
	})
}

func (r entryReader) network(to *Network) document.Read {
	return func(field string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			to.Mode = NetworkAllow
			r.Mapping(fields{"allow": r.Texts(&to.Allow)})(field, n)
			return
		}
		modes := []NetworkMode{NetworkNone, NetworkPublic, NetworkFull}
		if n.Kind != yaml.ScalarNode || !slices.Contains(modes, NetworkMode(n.Value)) {
			r.Report(n, field, "is %s, want none, public, full, or a mapping with allow", document.Describe(n))
			return
		}
		to.Mode = NetworkMode(n.Value)
	}
}

func (r entryReader) mounts(to *[]Mount) document.Read {
	return each(r.Reader, to, Mount{}, func(m *Mount) fields {
		return fields{
			"source":    r.Text(&m.Source),
			"volume":    r.Text(&m.Volume),
			"target":    r.Text(&m.Target),
			"read_only": r.Boolean(&m.ReadOnly),
		}
	})
}

func (r entryReader) limits(to *Limits) document.Read {
	return r.Mapping(fields{
		"memory": r.Size(&to.Memory),
		"cpus":   r.Number(&to.CPUs),
		"pids":   r.Integer(&to.PIDs),
		"shm":    r.Size(&to.Shm),
		"tmp":    r.Size(&to.Tmp),
	})
}

func (r entryReader) timeouts(to *Timeouts) document.Read {
	return r.Mapping(fields{
		"start":    r.Duration(&to.Start),
		"call":     r.Duration(&to.Call),
		"call_max": r.Duration(&to.CallMax),
		"list":     r.Duration(&to.List),
		"idle":     r.Duration(&to.Idle),
		"stop":     r.Duration(&to.Stop),
	})
}

func (r entryReader) helpers(to *[]Helper) document.Read {
	return each(r.Reader, to, Helper{Ready: ReadyStarted}, func(h *Helper) fields {
		return fields{
			"name":        r.Text(&h.Name),
			"image":       r.Text(&h.Image),
			"entrypoint":  r.Texts(&h.Entrypoint),
			"command":     r.Texts(&h.Command),
			"working_dir": r.Text(&h.WorkingDir),
			"user":        r.Text(&h.User),
			"env":         r.variables(&h.Env),
			"secrets":     r.secrets(&h.Secrets),
			"mounts":      r.mounts(&h.Mounts),
			"tmpfs":       r.Texts(&h.Tmpfs),
			"limits":      r.limits(&h.Limits),
			"ready":       r.Text((*string)(&h.Ready)),
			"health": one(r.Reader, &h.Health, Health{}, func(health *Health) fields {
				return fields{
					"test": r.Texts(&health.Test), "interval": r.Duration(&health.Interval), "timeout": r.Duration(&health.Timeout),
					"start": r.Duration(&health.Start), "retries": r.Integer(&health.Retries),
				}
			}),
		}
	})
}

func (r entryReader) oauth(to **OAuth) document.Read {
	return one(r.Reader, to, OAuth{}, func(o *OAuth) fields {
		return fields{
			"providers": each(r.Reader, &o.Providers, OAuthProvider{}, func(p *OAuthProvider) fields {
				return fields{"provider": r.Text(&p.Provider), "secret": r.Text(&p.Secret), "env": r.Text(&p.Env)}
			}),
			"scopes": r.Texts(&o.Scopes),
		}
	})
}

func (r entryReader) tools(to *[]ToolSnapshot) document.Read {
	return each(r.Reader, to, ToolSnapshot{}, func(tool *ToolSnapshot) fields {
		return fields{
			"name":        r.Text(&tool.Name),
			"description": r.Text(&tool.Description),
			"inputSchema": r.Object(&tool.InputSchema),
			"annotations": r.Object(&tool.Annotations),
			"examples":    r.examples(&tool.Examples),
			"run":         r.toolRun(&tool.Run),
		}
	})
}

// examples reads the calls that show how a tool is used; a text alone is a
// description.
func (r entryReader) examples(to *[]Example) document.Read {
	return r.List(func(field string, n *yaml.Node) {
		var e Example
		if n.Kind == yaml.ScalarNode {
			r.Text(&e.Description)(field, n)
		} else {
			r.Mapping(fields{"description": r.Text(&e.Description), "parameters": r.Object(&e.Parameters)})(field, n)
		}
		*to = append(*to, e)
	})
}

func (r entryReader) toolRun(to **ToolRun) document.Read {
	return one(r.Reader, to, ToolRun{}, func(run *ToolRun) fields {
		return fields{
			"image":      r.Text(&run.Image),
			"entrypoint": r.Texts(&run.Entrypoint),
			"command":    r.Texts(&run.Command),
			"user":       r.Text(&run.User),
			"mounts":     r.mounts(&run.Mounts),
		}
	})
}

// ReadTools reads a list of tools as the native format has it; other formats
// have the same.
func ReadTools(r *document.Reader, to *[]ToolSnapshot) document.Read { return entryReader{r}.tools(to) }

// ReadTimeouts reads timeouts as the native format has them.
func ReadTimeouts(r *document.Reader, to *Timeouts) document.Read { return entryReader{r}.timeouts(to) }
