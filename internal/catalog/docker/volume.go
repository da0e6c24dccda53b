package docker

import (
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/template"
)

// mount converts a volume: "source:target[:options]" with templates in it, or
// one placeholder that makes the whole of it by |volume or |mount_as.
func (c *converter) mount(field, text string, path func([]string) []string) (catalog.Mount, bool) {
	parts, err := template.Parse(text)
	if err != nil {
		c.report(field, "%v", err)
		return catalog.Mount{}, false
	}
	parts = moved(parts, path)
	if len(parts) == 1 && parts[0].Path != nil {
		return c.wholeMount(field, parts[0])
	}
	pieces := split(parts)
	if len(pieces) < 2 || len(pieces) > 3 {
		c.report(field, "is %q, want source:target[:ro]", text)
		return catalog.Mount{}, false
	}
	m := catalog.Mount{Source: template.Join(pieces[0]), Target: template.Join(pieces[1])}
	if len(pieces) == 3 {
		options := strings.Split(template.Join(pieces[2]), ",")
		m.ReadOnly = slices.Contains(options, "ro") || slices.Contains(options, "readonly")
	}
	if !strings.ContainsAny(m.Source, "/~.{\\") {
		m.Volume, m.Source = m.Source, ""
	}
	return m, true
}

// wholeMount converts a volume that is one placeholder.
func (c *converter) wholeMount(field string, p template.Part) (catalog.Mount, bool) {
	source, target := p, p
	target.Functions, source.Functions = nil, nil
	var m catalog.Mount
	found := false
	for _, f := range p.Functions {
		switch f.Name {
		case "volume":
			found = true
		case "mount_as":
			found = true
			place, readOnly := strings.CutSuffix(f.Argument, ":ro")
			m.Target, m.ReadOnly = place, readOnly
		default:
			source.Functions = append(source.Functions, f)
			target.Functions = append(target.Functions, f)
		}
	}
	if !found {
		c.report(field, "leaves source and target to a setting; add |volume or |mount_as:/path")
		return catalog.Mount{}, false
	}
	m.Source = source.String()
	if m.Target == "" {
		m.Target = target.String()
	}
	return m, true
}

// split cuts parts at the colons of their literal text.
func split(parts []template.Part) [][]template.Part {
	pieces := [][]template.Part{nil}
	for _, p := range parts {
		if p.Path != nil {
			pieces[len(pieces)-1] = append(pieces[len(pieces)-1], p)
			continue
		}
		for i, literal := range strings.Split(p.Literal, ":") {
			if i > 0 {
				pieces = append(pieces, nil)
			}
			if literal != "" {
				pieces[len(pieces)-1] = append(pieces[len(pieces)-1], template.Part{Literal: literal})
			}
		}
	}
	return pieces
}
