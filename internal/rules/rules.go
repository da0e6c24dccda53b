// Package rules decides by rules which tools may be called, and which of them
// only after a person has confirmed the call.
//
// A decision is pure: it depends on the rules, the name of the server and the
// definition of the tool, and it can be explained rule by rule. A bad pattern
// is refused when the rules are read, never when they are applied. Rules can
// be narrowed by others and not be widened.
package rules

import (
	"reflect"
	"slices"

	"github.com/dockgate/dockgate/internal/tool"
)

// A Verdict is what rules say of a tool.
type Verdict string

// The verdicts. Any other value, the zero value too, counts as [Deny].
const (
	// Allow lets calls pass.
	Allow Verdict = "allow"
	// Ask lets a call pass once a person has confirmed it.
	Ask Verdict = "ask"
	// Deny lets no call pass, whichever way it comes.
	Deny Verdict = "deny"
)

// A Rule is one entry of a list of rules.
type Rule struct {
	// Pattern are globs and regular expressions, see [Compile]. A rule without
	// any is for every tool that Annotations fit.
	Pattern []string `json:"pattern,omitempty"`
	// Server limits the rule to a server; "" is any.
	Server string `json:"server,omitempty"`
	// Annotations limit the rule to tools that claim something of themselves.
	Annotations Annotations `json:"annotations,omitzero"`
	// Enabled is what the rule decides; nil decides nothing.
	Enabled *bool `json:"enabled,omitempty"`
	// Ask has a person confirm each call. It enables nothing.
	Ask bool `json:"ask,omitempty"`
	// Tags are given to each tool that matches.
	Tags []string `json:"tags,omitempty"`
	// Place is where the rule was written, "file:line", or "".
	Place string `json:"place,omitempty"`
}

// A Decision is what rules say of one tool. The zero value denies.
type Decision struct {
	Verdict Verdict
	// Tags are gathered from every rule that matches, in their order, each once.
	Tags []string
}

// Enabled reports whether the tool may be called, asked for or not.
func (d Decision) Enabled() bool { return d.Verdict == Allow || d.Verdict == Ask }

// Rules are compiled. The zero value has no rule and allows every tool: what a
// server may do was approved with the server. Rules may be used by several
// goroutines at once.
type Rules struct{ layers []layer }

// A layer is one list of rules.
type layer struct {
	// only is the server that the layer is about; "" is every one.
	only     string
	rules    []compiled
	fallback fallback
}

// about reports whether the layer has a say about a server.
func (l layer) about(server string) bool { return l.only == "" || l.only == server }

// A fallback is what holds for a tool of which no rule decides.
type fallback struct {
	enabled bool
	// explicit is where it was written; otherwise it follows from the rules.
	explicit bool
	place    string
}

type compiled struct {
	Rule
	patterns []pattern
	// general reports that the rule is for any tool: what it decides is a
	// default that more special rules replace.
	general bool
}

// Narrowed returns rules by which a tool may be called only if both r and the
// others allow it, and is asked for if either asks. Tags are those of both.
func (r Rules) Narrowed(others Rules) Rules {
	return Rules{layers: slices.Concat(r.layers, others.layers)}
}

// Empty reports that there are no rules, and so every tool is allowed.
func (r Rules) Empty() bool { return len(r.layers) == 0 }

// Equal reports whether two Rules were written alike, and so decide alike.
func (r Rules) Equal(other Rules) bool {
	return slices.EqualFunc(r.layers, other.layers, func(a, b layer) bool {
		return a.only == b.only && a.fallback == b.fallback && slices.EqualFunc(a.rules, b.rules, func(a, b compiled) bool { return reflect.DeepEqual(a.Rule, b.Rule) })
	})
}

// ReadsClaims reports that decisions depend on more of a definition than the
// name: on what the tool claims of itself.
func (r Rules) ReadsClaims() bool {
	return slices.ContainsFunc(r.layers, func(l layer) bool {
		return slices.ContainsFunc(l.rules, func(c compiled) bool { return !c.Annotations.zero() })
	})
}

// List returns the rules in their order.
func (r Rules) List() []Rule {
	var list []Rule
	for _, l := range r.layers {
		for _, rule := range l.rules {
			list = append(list, rule.Rule)
		}
	}
	return list
}

// Decide says whether a tool of a server may be called.
//
// The first rule that matches and says enabled decides. One that disables wins
// over it, wherever it stands, unless its pattern is only "*": such a rule is
// a default. The same holds for rules that ask. If no rule decides, a tool is
// enabled unless some rule enables others, or as the default entry says.
func (r Rules) Decide(server string, definition tool.Definition) Decision {
	s := newSubject(server, definition)
	decision := Decision{Verdict: Allow}
	for _, l := range r.layers {
		if !l.about(server) {
			continue
		}
		verdict, tags := l.decide(&s, decision.Tags)
		decision.Verdict, decision.Tags = stricter(decision.Verdict, verdict), tags
	}
	return decision
}

func stricter(a, b Verdict) Verdict {
	for _, verdict := range []Verdict{Deny, Ask} {
		if a == verdict || b == verdict {
			return verdict
		}
	}
	return Allow
}

// decide returns the verdict, and tags with those of the rules that match.
func (l layer) decide(s *subject, tags []string) (Verdict, []string) {
	var made making
	for i := range l.rules {
		rule := &l.rules[i]
		if !rule.matches(s) {
			continue
		}
		made.add(i, rule)
		for _, tag := range rule.Tags {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	return made.verdict(l), tags
}

// A making is a decision while the rules that match are gone through. It holds
// the numbers of rules, from 1; 0 is none.
type making struct {
	first     int // that decides anything
	enabling  int // the first that says enabled, true or false
	disabling int // the first that disables, and is no default
	asking    int // the first that asks, and is no default
}

func (m *making) add(i int, rule *compiled) {
	number := i + 1
	set := func(where *int, hold bool) {
		if hold && *where == 0 {
			*where = number
		}
	}
	set(&m.first, rule.Enabled != nil || rule.Ask)
	set(&m.enabling, rule.Enabled != nil)
	set(&m.disabling, rule.Enabled != nil && !*rule.Enabled && !rule.general)
	set(&m.asking, rule.Ask && !rule.general)
}

// enabledBy returns whether the tool is enabled, and the number of the rule
// that says so; 0 if no rule does.
func (m making) enabledBy(l layer) (enabled bool, number int) {
	switch {
	case m.disabling > 0:
		return false, m.disabling
	case m.enabling > 0:
		return *l.rules[m.enabling-1].Enabled, m.enabling
	}
	return l.fallback.enabled, 0
}

// askedBy returns the number of the rule that has a person asked, or 0.
func (m making) askedBy(l layer) int {
	if m.asking > 0 {
		return m.asking
	}
	if m.first > 0 && l.rules[m.first-1].Ask {
		return m.first
	}
	return 0
}

func (m making) verdict(l layer) Verdict {
	if enabled, _ := m.enabledBy(l); !enabled {
		return Deny
	}
	if m.askedBy(l) > 0 {
		return Ask
	}
	return Allow
}

// matches reports whether a rule is for a tool: any of its patterns fits and
// none of its negations, in any order. Negations alone stand beside "*".
func (c *compiled) matches(s *subject) bool {
	if c.Server != "" && c.Server != s.server {
		return false
	}
	if !c.Annotations.zero() && !c.Annotations.fit(s) {
		return false
	}
	positive, fits := false, false
	for i := range c.patterns {
		p := &c.patterns[i]
		switch {
		case p.negated && p.fits(s):
			return false
		case !p.negated:
			positive = true
			fits = fits || p.fits(s)
		}
	}
	return fits || !positive
}
