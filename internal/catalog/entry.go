package catalog

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
)

// An entryReader reads the fields of one entry of the native format.
type entryReader struct{ *document.Reader }

func (r entryReader) program(to **Program) document.Read {
	return func(field string, n *yaml.Node) {
		var p Program
		r.Mapping(map[string]document.Read{
			"runtime": r.Text(&p.Runtime),
			"package": r.Text(&p.Package),
			"version": r.Text(&p.Version),
			"with":    r.Texts(&p.With),
			"binary":  r.Text(&p.Binary),
			"module":  r.Text(&p.Module),
			"file":    r.Text(&p.File),
			"folder":  r.Text(&p.Folder),
		})(field, n)
		*to = &p
	}
}

func (r entryReader) exec(to **Exec) document.Read {
	return func(field string, n *yaml.Node) {
		var e Exec
		r.Mapping(map[string]document.Read{"container": r.Text(&e.Container)})(field, n)
		*to = &e
	}
}

func (r entryReader) remote(to **Remote) document.Read {
	return func(field string, n *yaml.Node) {
		remote := Remote{Transport: StreamableHTTP}
		r.Mapping(map[string]document.Read{
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
		})(field, n)
		*to = &remote
	}
}

func (r entryReader) http(to **HTTP) document.Read {
	return func(field string, n *yaml.Node) {
		h := HTTP{Path: "/mcp", Transport: StreamableHTTP}
		var port int64
		r.Mapping(map[string]document.Read{
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
	return r.List(func(field string, n *yaml.Node) {
		var s Secret
		r.Mapping(map[string]document.Read{
			"name":         r.Text(&s.Name),
			"env":          r.Text(&s.Env),
			"from":         r.Text(&s.From),
			"required":     r.Boolean(&s.Required),
			"file":         r.Boolean(&s.File),
			"instructions": r.Text(&s.Instructions),
		})(field, n)
		*to = append(*to, s)
	})
}

func (r entryReader) network(to *Network) document.Read {
	return func(field string, n *yaml.Node) {
		if n.Kind == yaml.MappingNode {
			to.Mode = NetworkAllow
			r.Mapping(map[string]document.Read{"allow": r.Texts(&to.Allow)})(field, n)
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
	return r.List(func(field string, n *yaml.Node) {
		var m Mount
		r.Mapping(map[string]document.Read{
			"source":    r.Text(&m.Source),
			"volume":    r.Text(&m.Volume),
			"target":    r.Text(&m.Target),
			"read_only": r.Boolean(&m.ReadOnly),
		})(field, n)
		*to = append(*to, m)
	})
}

func (r entryReader) limits(to *Limits) document.Read {
	return r.Mapping(map[string]document.Read{
		"memory": r.Size(&to.Memory),
		"cpus":   r.Number(&to.CPUs),
		"pids":   r.Integer(&to.PIDs),
		"shm":    r.Size(&to.Shm),
		"tmp":    r.Size(&to.Tmp),
	})
}

func (r entryReader) timeouts(to *Timeouts) document.Read {
	return r.Mapping(map[string]document.Read{
		"start":    r.Duration(&to.Start),
		"call":     r.Duration(&to.Call),
		"call_max": r.Duration(&to.CallMax),
		"list":     r.Duration(&to.List),
		"idle":     r.Duration(&to.Idle),
		"stop":     r.Duration(&to.Stop),
	})
}

func (r entryReader) helpers(to *[]Helper) document.Read {
	return r.List(func(field string, n *yaml.Node) {
		h := Helper{Ready: ReadyStarted}
		r.Mapping(map[string]document.Read{
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
			"health": func(field string, n *yaml.Node) {
				var health Health
				r.Mapping(map[string]document.Read{
					"test": r.Texts(&health.Test), "interval": r.Duration(&health.Interval), "timeout": r.Duration(&health.Timeout),
					"start": r.Duration(&health.Start), "retries": r.Integer(&health.Retries),
				})(field, n)
				h.Health = &health
			},
		})(field, n)
		*to = append(*to, h)
	})
}

func (r entryReader) oauth(to **OAuth) document.Read {
	return func(field string, n *yaml.Node) {
		var o OAuth
		r.Mapping(map[string]document.Read{
			"providers": r.List(func(field string, n *yaml.Node) {
				var p OAuthProvider
				r.Mapping(map[string]document.Read{"provider": r.Text(&p.Provider), "secret": r.Text(&p.Secret), "env": r.Text(&p.Env)})(field, n)
				o.Providers = append(o.Providers, p)
			}),
			"scopes": r.Texts(&o.Scopes),
		})(field, n)
		*to = &o
	}
}

func (r entryReader) tools(to *[]ToolSnapshot) document.Read {
	return r.List(func(field string, n *yaml.Node) {
		var tool ToolSnapshot
		r.Mapping(map[string]document.Read{
			"name":        r.Text(&tool.Name),
			"description": r.Text(&tool.Description),
			"inputSchema": r.Object(&tool.InputSchema),
			"annotations": r.Object(&tool.Annotations),
			"examples":    r.examples(&tool.Examples),
			"run":         r.toolRun(&tool.Run),
		})(field, n)
		*to = append(*to, tool)
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
			r.Mapping(map[string]document.Read{"description": r.Text(&e.Description), "parameters": r.Object(&e.Parameters)})(field, n)
		}
		*to = append(*to, e)
	})
}

func (r entryReader) toolRun(to **ToolRun) document.Read {
	return func(field string, n *yaml.Node) {
		var run ToolRun
		r.Mapping(map[string]document.Read{
			"image":      r.Text(&run.Image),
			"entrypoint": r.Texts(&run.Entrypoint),
			"command":    r.Texts(&run.Command),
			"user":       r.Text(&run.User),
			"mounts":     r.mounts(&run.Mounts),
		})(field, n)
		*to = &run
	}
}

// ReadTools reads a list of tools as the native format has it; other formats
// have the same.
func ReadTools(r *document.Reader, to *[]ToolSnapshot) document.Read { return entryReader{r}.tools(to) }

// ReadTimeouts reads timeouts as the native format has them.
func ReadTimeouts(r *document.Reader, to *Timeouts) document.Read { return entryReader{r}.timeouts(to) }
