package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A pattern is one of a rule's, ready to be tried.
type pattern struct {
	text    string
	negated bool
	// one of the two is set
	glob *glob
	expr *expression
}

func (p *pattern) fits(s *subject) bool {
	if p.glob != nil {
		return p.glob.match(s.lower)
	}
	return p.expr.match(s)
}

// everything reports that the pattern is for every name.
func (p *pattern) everything() bool {
	return !p.negated && p.glob != nil && p.glob.shape == shapeAny
}

// parsePattern reads "glob", "/expression/flags", or either after a "!".
func parsePattern(text string) (pattern, error) {
	body, negated := strings.CutPrefix(text, "!")
	p := pattern{text: text, negated: negated}
	switch {
	case body == "":
		return p, errors.New("is empty")
	case strings.HasPrefix(body, "!"):
		return p, errors.New(`begins with "!" twice`)
	case strings.HasPrefix(body, "/"):
		expr, err := parseExpression(body)
		p.expr = expr
		return p, err
	}
	g, err := parseGlob(body)
	p.glob = g
	return p, err
}

// Default is what an entry of its own says of tools that no rule decides.
type Default struct {
	Verdict Verdict
	Place   string
}

// A PatternError is a pattern that cannot be used.
type PatternError struct {
	// Rule is its rule's number from 0, Pattern its own.
	Rule, Pattern int
	Text          string
	Err           error
}

// Error names the pattern and what is wrong with it.
func (e *PatternError) Error() string {
	return fmt.Sprintf("toolRules[%d].pattern[%d]: %q %v", e.Rule, e.Pattern, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *PatternError) Unwrap() error { return e.Err }

// Compile makes Rules of a list. A pattern is
//
//   - a glob for the whole name, in which * is any text, ? one character and
//     [a-z] one of several, [!a-z] none of them; it ignores case;
//   - /expression/flags, in RE2, that fits anywhere in the name; the flags are
//     i, m and s. One with \b or \B is tried on the name split into words too;
//   - either of them after a "!": what fits is not matched.
//
// No rule and no default is no Rules: every tool is allowed. All errors are
// joined, each a *[PatternError].
func Compile(list []Rule, otherwise Default) (Rules, error) {
	if len(list) == 0 && otherwise.Verdict == "" {
		return Rules{}, nil
	}
	l := layer{fallback: fallback{enabled: true}}
	var problems []error
	for i, rule := range list {
		c := compiled{Rule: rule}
		for j, text := range rule.Pattern {
			p, err := parsePattern(text)
			if err != nil {
				problems = append(problems, &PatternError{Rule: i, Pattern: j, Text: text, Err: err})
				continue
			}
			c.patterns = append(c.patterns, p)
		}
		c.general = rule.Annotations.zero() && !slices.ContainsFunc(c.patterns, func(p pattern) bool { return !p.everything() })
		if rule.Enabled != nil && *rule.Enabled {
			l.fallback.enabled = false
		}
		l.rules = append(l.rules, c)
	}
	if otherwise.Verdict != "" {
		l.fallback = fallback{enabled: otherwise.Verdict == Allow, explicit: true, place: otherwise.Place}
	}
	if err := errors.Join(problems...); err != nil {
		return Rules{}, err
	}
	return Rules{layers: []layer{l}}, nil
}
