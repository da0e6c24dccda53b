package rules

import (
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/internal/tool"
)

// An Explanation is a decision with all that led to it.
type Explanation struct {
	Decision
	// Steps are the rules in their order, those that do not match too.
	Steps []Step
	// Why says what decided, in a sentence for each reason.
	Why []string
}

// A Step is what one rule had to say.
type Step struct {
	Rule Rule
	// Number is the rule's, from 1, in the list it was written in.
	Number  int
	Matched bool
	// Why says which pattern fits, or what keeps the rule from matching.
	Why string
	// Decides reports that the decision follows from this rule.
	Decides bool
}

// Explain makes the same decision as [Rules.Decide], and says why.
func (r Rules) Explain(server string, definition tool.Definition) Explanation {
	s := newSubject(server, definition)
	e := Explanation{Decision: r.Decide(server, definition)}
	for _, l := range r.layers {
		if l.about(server) {
			l.explain(&s, &e)
		}
	}
	if len(e.Why) == 0 {
		e.Why = append(e.Why, "there are no rules, so every tool is enabled")
	}
	return e
}

func (l layer) explain(s *subject, e *Explanation) {
	var made making
	begin := len(e.Steps)
	for i := range l.rules {
		rule := &l.rules[i]
		step := Step{Rule: rule.Rule, Number: i + 1, Matched: rule.matches(s), Why: rule.why(s)}
		if step.Matched {
			made.add(i, rule)
		}
		e.Steps = append(e.Steps, step)
	}
	decides := func(number int, format string, args ...any) {
		e.Steps[begin+number-1].Decides = true
		e.Why = append(e.Why, "rule "+l.name(number)+" "+fmt.Sprintf(format, args...))
	}
	enabled, number := made.enabledBy(l)
	switch {
	case made.disabling > 0 && made.disabling != made.first:
		decides(number, "disables it, which wins over rule %s", l.name(made.first))
	case number > 0 && enabled:
		decides(number, "enables it%s", l.passed(s, number))
	case number > 0:
		decides(number, "disables it")
	default:
		e.Why = append(e.Why, l.fallback.why())
	}
	if asked := made.askedBy(l); asked > 0 && enabled {
		decides(asked, "has a person confirm each call")
	}
}

// name is how a rule is named: by its number, and where it was written.
func (l layer) name(number int) string {
	if place := l.rules[number-1].Place; place != "" {
		return fmt.Sprintf("%d (%s)", number, place)
	}
	return fmt.Sprint(number)
}

// passed says that a later default would have it otherwise.
func (l layer) passed(s *subject, number int) string {
	for i := number; i < len(l.rules); i++ {
		rule := &l.rules[i]
		if rule.general && rule.Enabled != nil && !*rule.Enabled && rule.matches(s) {
			return fmt.Sprintf("; rule %s is a default, for tools that no rule before it decides", l.name(i+1))
		}
	}
	return ""
}

func (f fallback) why() string {
	state := "disabled"
	if f.enabled {
		state = "enabled"
	}
	switch {
	case f.explicit && f.place != "":
		return fmt.Sprintf("no rule decides, and the default (%s) is %s", f.place, state)
	case f.explicit:
		return "no rule decides, and the default is " + state
	case f.enabled:
		return "no rule decides, and no rule enables any tool, so others are enabled"
	}
	return "no rule decides, and rules that enable tools leave all others disabled"
}

// why says what makes the rule match, or keeps it from matching.
func (c *compiled) why(s *subject) string {
	if c.Server != "" && c.Server != s.server {
		return fmt.Sprintf("is for the server %q", c.Server)
	}
	if !c.Annotations.zero() && !c.Annotations.fit(s) {
		return "is for tools with " + c.Annotations.String() + ", and it has " + s.claims().claimed()
	}
	var fitting string
	positive := false
	for i := range c.patterns {
		p := &c.patterns[i]
		switch {
		case p.negated && p.fits(s):
			return p.text + " excludes it"
		case !p.negated:
			positive = true
			if fitting == "" && p.fits(s) {
				fitting = p.text + " fits" + p.on(s)
			}
		}
	}
	switch {
	case fitting != "":
		return fitting
	case positive:
		return "no pattern fits"
	case len(c.patterns) > 0:
		return "nothing excludes it"
	}
	return "it has " + s.claims().claimed()
}

// on says what a pattern fits, if it is not the name.
func (p *pattern) on(s *subject) string {
	if p.expr != nil && !p.expr.expr.MatchString(s.name) {
		return fmt.Sprintf(" the words %q", s.spaced())
	}
	return ""
}

// String returns what a rule wants, as it is written.
func (a Annotations) String() string {
	var words []string
	if a.ReadOnly != nil {
		words = append(words, fmt.Sprintf("readOnlyHint: %t", *a.ReadOnly))
	}
	if a.Destructive != nil {
		words = append(words, fmt.Sprintf("destructiveHint: %t", *a.Destructive))
	}
	return strings.Join(words, ", ")
}

// claimed says what holds for a tool with these annotations.
func (a Annotations) claimed() string {
	said := func(hint *bool) string {
		if hint == nil {
			return " (not said)"
		}
		return ""
	}
	return fmt.Sprintf("readOnlyHint: %t%s, destructiveHint: %t%s", a.readOnly(), said(a.ReadOnly), a.destructive(), said(a.Destructive))
}

// String returns a rule on one line:
//
//	server github, *issue*, !*delete* → enabled, tags: [github, issues]
func (r Rule) String() string {
	var when []string
	if r.Server != "" {
		when = append(when, "server "+r.Server)
	}
	when = append(when, r.Pattern...)
	if !r.Annotations.zero() {
		when = append(when, r.Annotations.String())
	}
	var then []string
	switch {
	case r.Enabled != nil && *r.Enabled:
		then = append(then, "enabled")
	case r.Enabled != nil:
		then = append(then, "disabled")
	}
	if r.Ask {
		then = append(then, "ask")
	}
	if len(r.Tags) > 0 {
		then = append(then, "tags: ["+strings.Join(r.Tags, ", ")+"]")
	}
	return strings.Join(when, ", ") + " → " + strings.Join(then, ", ")
}
