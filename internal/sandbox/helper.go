package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A Helper is a container beside a server, on a network that only they share.
type Helper struct {
	// Name is its name on that network.
	Name string `json:"name"`
	// Ready is what is waited for before what comes after it is started.
	Ready catalog.Ready `json:"ready"`
	// Health is how it is asked whether it works; nil is the image's own way.
	Health *catalog.Health `json:"health,omitempty"`
	// Spec is its container, with the server's name and the server's network.
	Spec Spec `json:"spec"`
}

// CompileHelpers turns the helpers of an entry into what is started before its
// server, in that order. Images has the image of each, by its reference. The
// error is as of [Compile].
func CompileHelpers(entry catalog.Server, settings map[string]any, images map[string]Image, host Host) ([]Helper, error) {
	var (
		helpers  []Helper
		problems []Problem
	)
	for _, h := range entry.Helpers {
		spec, err := Compile(catalog.Server{
			Name: entry.Name, Image: h.Image, Entrypoint: h.Entrypoint, Command: h.Command, WorkingDir: h.WorkingDir,
			User: h.User, Env: h.Env, Secrets: h.Secrets, Config: entry.Config, Network: entry.Network,
			Mounts: h.Mounts, Tmpfs: h.Tmpfs, Limits: h.Limits,
		}, settings, images[h.Image], host)
		var refused *CompileError
		if errors.As(err, &refused) {
			for _, p := range refused.Problems {
				problems = append(problems, Problem{Field: "helpers." + h.Name + "." + p.Field, Text: p.Text})
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		spec.NoInput = true
		helpers = append(helpers, Helper{Name: h.Name, Ready: h.Ready, Health: h.Health, Spec: spec})
	}
	if problems != nil {
		return nil, refusal(entry, problems)
	}
	return helpers, nil
}

// A HelperGrant is what a person approves of a container beside a server.
type HelperGrant struct {
	Name string `json:"name"`
	// Grant is as if it were a server.
	Grant  Grant           `json:"grant"`
	Ready  catalog.Ready   `json:"ready"`
	Health *catalog.Health `json:"health,omitempty"`
}

func helperGrants(entry catalog.Server, spec Spec) []HelperGrant {
	var grants []HelperGrant
	for i, h := range spec.Helpers {
		own := catalog.Server{Name: h.Name, Origin: entry.Origin}
		if i < len(entry.Helpers) {
			own.WorkingDir = entry.Helpers[i].WorkingDir
		}
		grants = append(grants, HelperGrant{Name: h.Name, Ready: h.Ready, Health: h.Health, Grant: NewGrant(own, h.Spec, nil)})
	}
	return grants
}

// lines describe a helper: each begins with its name.
func (h HelperGrant) lines() []string {
	g := h.Grant
	of := h.Name + ": "
	lines := []string{
		fmt.Sprintf("helper:    %s, a container beside the server on a network of their own, waited for until %s", h.Name, h.Ready),
		"image:     " + of + g.Image,
		"pinned:    " + of + pinned(g.Pin),
		"command:   " + of + quoted(g.Command),
		"user:      " + of + userName(g.User),
		fmt.Sprintf("limits:    %smemory %s, %.4g cpus, %d processes", of, units.BytesSize(float64(g.Limits.Memory)), float64(g.Limits.NanoCPUs)/1e9, g.Limits.PIDs),
	}
	if h.Health != nil {
		lines = append(lines, "health:    "+of+quoted(h.Health.Test))
	}
	for _, m := range g.Mounts {
		lines = append(lines, m.line(of))
	}
	for _, line := range g.inside() {
		label, rest, _ := strings.Cut(line, ":")
		lines = append(lines, fmt.Sprintf("%-11s%s%s", label+":", of, strings.TrimSpace(rest)))
	}
	return lines
}
