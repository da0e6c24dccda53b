package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Problem is one mistake in rules as they are written.
type Problem struct {
	File string
	Line int
	// Field is the path of the mistake, such as "toolRules[0].pattern[1]".
	Field string
	Text  string
}

// String returns "file:line: field: text".
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Field, p.Text)
}

// Problems is the error of rules with mistakes: all of them, in the order of
// their lines.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Parse reads a list of rules from YAML, and compiles it. file and field say
// where it stands, for problems and for explanations; a node that is not there
// at all is no rules. The error is [Problems].
//
//   - {pattern: ['*github*', '/issue/i', '!*delete*'], server: github, enabled: true, tags: [issues]}
//   - {annotations: {destructiveHint: true}, action: ask}
//   - {default: deny}
func Parse(file, field string, node yaml.Node) (Rules, error) {
	p := parser{file: file}
	p.list(field, &node, p.entry)
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
		return Rules{}, p.problems
	}
	return Compile(p.rules, p.otherwise)
}

// A parser gathers rules, and what is wrong with them.
type parser struct {
	file      string
	problems  Problems
	rules     []Rule
	otherwise Default
}

func (p *parser) report(n *yaml.Node, field, format string, args ...any) {
	p.problems = append(p.problems, Problem{File: p.file, Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// entry reads one rule, or the default.
func (p *parser) entry(field string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.report(n, field, "is %s, want a rule such as {pattern: ['*delete*'], enabled: false}", describe(n))
		return
	}
	rule := Rule{Place: fmt.Sprintf("%s:%d", p.file, n.Line)}
	has := map[string]bool{}
	before := len(p.problems)
	p.mapping(field, n, []string{"pattern", "server", "enabled", "tags", "action", "annotations", "default"}, func(key, field string, value *yaml.Node) {
		has[key] = true
		switch key {
		case "pattern":
			p.list(field, value, func(field string, n *yaml.Node) {
				text := p.text(field, n)
				if _, err := parsePattern(text); text != "" && err != nil {
					p.report(n, field, "%q %v", text, err)
				}
				rule.Pattern = append(rule.Pattern, text)
			})
		case "server":
			rule.Server = p.text(field, value)
		case "enabled":
			rule.Enabled = p.boolean(field, value)
		case "tags":
			p.list(field, value, func(field string, n *yaml.Node) { rule.Tags = append(rule.Tags, p.text(field, n)) })
		case "action":
			rule.Ask = p.word(field, value, "ask") == "ask"
		case "annotations":
			rule.Annotations = p.annotations(field, value)
		case "default":
			p.setDefault(field, n, value)
		}
	})
	if len(p.problems) > before {
		return
	}
	switch {
	case has["default"]:
	case rule.Pattern == nil && rule.Annotations.zero():
		p.report(n, field+".pattern", "is missing; every tool is ['*']")
	case has["pattern"] && rule.Pattern == nil:
		p.report(n, field+".pattern", "is empty; every tool is ['*']")
	case rule.Enabled == nil && !rule.Ask && len(rule.Tags) == 0:
		p.report(n, field, "does nothing; say enabled, action or tags")
	case rule.Enabled != nil && !*rule.Enabled && rule.Ask:
		p.report(n, field+".action", "is ask, and enabled is false: nobody is asked about a disabled tool")
	default:
		p.rules = append(p.rules, rule)
	}
}

// setDefault reads the entry that says what holds if no rule decides.
func (p *parser) setDefault(field string, entry, value *yaml.Node) {
	said := p.word(field, value, string(Allow), string(Deny))
	switch {
	case said == "":
	case len(entry.Content) > 2:
		p.report(entry, field, "stands beside other fields; write an entry of its own, - default: %s", said)
	case p.otherwise.Verdict != "":
		p.report(entry, field, "is here again; it was at %s already", p.otherwise.Place)
	default:
		p.otherwise = Default{Verdict: Verdict(said), Place: fmt.Sprintf("%s:%d", p.file, entry.Line)}
	}
}

func (p *parser) annotations(field string, n *yaml.Node) Annotations {
	var a Annotations
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.report(n, field, "is %s, want readOnlyHint or destructiveHint", describe(n))
		return a
	}
	p.mapping(field, n, []string{"readOnlyHint", "destructiveHint"}, func(key, field string, value *yaml.Node) {
		if key == "readOnlyHint" {
			a.ReadOnly = p.boolean(field, value)
		} else {
			a.Destructive = p.boolean(field, value)
		}
	})
	return a
}

// mapping reads the known fields of a mapping.
func (p *parser) mapping(field string, n *yaml.Node, known []string, entry func(key, field string, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		path := field + "." + key.Value
		switch line, again := first[key.Value]; {
		case again:
			p.report(key, path, "is here again; it was on line %d already", line)
		case !slices.Contains(known, key.Value):
			p.report(key, path, "unknown field; known: %s", strings.Join(known, ", "))
		default:
			entry(key.Value, path, value)
		}
		first[key.Value] = key.Line
	}
}

func (p *parser) list(field string, n *yaml.Node, element func(field string, n *yaml.Node)) {
	n = target(n)
	if n.Kind == 0 || n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.report(n, field, "is %s, want a list", describe(n))
		return
	}
	for i, item := range n.Content {
		element(fmt.Sprintf("%s[%d]", field, i), target(item))
	}
}

// text reads a scalar as it is written, so that an unquoted 8080 or no is the
// text it looks like.
func (p *parser) text(field string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "" {
		p.report(n, field, "is %s, want text", describe(n))
		return ""
	}
	return n.Value
}

// word reads one of several words; "" is none of them.
func (p *parser) word(field string, n *yaml.Node, known ...string) string {
	if n.Kind == yaml.ScalarNode && slices.Contains(known, n.Value) {
		return n.Value
	}
	p.report(n, field, "is %s, want %s", describe(n), strings.Join(known, " or "))
	return ""
}

func (p *parser) boolean(field string, n *yaml.Node) *bool {
	var value bool
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&value) != nil {
		p.report(n, field, "is %s, want true or false", describe(n))
		return nil
	}
	return &value
}

// target follows an alias to what it stands for.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// describe says what a node is, for "is …, want …".
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null" || n.Value == "":
		return "empty"
	}
	const longest = 60
	if len(n.Value) > longest {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(n.Value[:longest], ""))
	}
	return fmt.Sprintf("%q", n.Value)
}
