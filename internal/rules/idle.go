package rules

import (
	"fmt"
	"iter"

	"github.com/dockgate/dockgate/internal/tool"
)

// An Idle rule or pattern is one that could be left out: nothing would change
// for the tools there are.
type Idle struct {
	Rule Rule
	// Number is the rule's, from 1, in the list it was written in.
	Number int
	// Why says what has no effect.
	Why string
}

// Idle returns the rules and patterns without effect on tools, by the name of
// their server. Lists of [Listed] are no rules that somebody wrote, and are
// not among them.
func (r Rules) Idle(tools iter.Seq2[string, tool.Definition]) []Idle {
	var idle []Idle
	for _, l := range r.layers {
		if l.only == "" {
			idle = append(idle, l.idle(tools)...)
		}
	}
	return idle
}

// A usage is what a rule was good for.
type usage struct {
	matched, decided bool
	// told is whether a tool that the rule is for says anything of itself. What
	// tools say is known once their server has run, and not from a catalog.
	told   bool
	fitted []bool // by pattern
}

func (l layer) idle(tools iter.Seq2[string, tool.Definition]) []Idle {
	used := make([]usage, len(l.rules))
	for i := range l.rules {
		used[i].fitted = make([]bool, len(l.rules[i].patterns))
	}
	servers := map[string]bool{}
	for server, definition := range tools {
		servers[server] = true
		l.use(newSubject(server, definition), used)
	}
	var idle []Idle
	for i := range l.rules {
		rule := &l.rules[i]
		say := func(format string, args ...any) {
			idle = append(idle, Idle{Rule: rule.Rule, Number: i + 1, Why: fmt.Sprintf(format, args...)})
		}
		switch u := used[i]; {
		case rule.Server != "" && !servers[rule.Server]:
			say("no tool of a server %q is known", rule.Server)
			continue
		case !u.matched && !rule.Annotations.zero() && !u.told:
			continue // nobody can tell yet
		case !u.matched:
			say("matches no known tool")
			continue
		case !u.decided && len(rule.Tags) == 0:
			say("decides nothing; other rules decide all that it matches")
		}
		for j, fitted := range used[i].fitted {
			if !fitted {
				say("the pattern %s fits no known tool that the rule is for", rule.patterns[j].text)
			}
		}
	}
	return idle
}

// use notes what each rule does for a tool.
func (l layer) use(s subject, used []usage) {
	var made making
	for i := range l.rules {
		rule := &l.rules[i]
		if rule.Server == "" || rule.Server == s.server {
			used[i].told = used[i].told || !s.claims().zero()
			for j := range rule.patterns {
				used[i].fitted[j] = used[i].fitted[j] || rule.patterns[j].fits(&s)
			}
		}
		if rule.matches(&s) {
			used[i].matched = true
			made.add(i, rule)
		}
	}
	if _, number := made.enabledBy(l); number > 0 {
		used[number-1].decided = true
	}
	if number := made.askedBy(l); number > 0 {
		used[number-1].decided = true
	}
}
