package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// An expression is a regular expression on a name, and on its words if it
// speaks of their boundaries.
type expression struct {
	expr   *regexp.Regexp
	spaced bool
	// literals are texts of which any match has one, in lower case; nil if
	// none are known. Looking for them is far quicker than matching.
	literals []string
}

// parseExpression reads "/expression/flags".
func parseExpression(text string) (*expression, error) {
	end := strings.LastIndexByte(text, '/')
	if end == 0 {
		return nil, errors.New(`begins with "/" like a regular expression and does not end with one`)
	}
	source, flags := text[1:end], text[end+1:]
	if source == "" {
		return nil, errors.New("is an empty regular expression")
	}
	for i, flag := range flags {
		if !strings.ContainsRune("ims", flag) {
			return nil, fmt.Errorf("has the flag %q; known: i, m, s", flag)
		}
		if strings.ContainsRune(flags[:i], flag) {
			return nil, fmt.Errorf("has the flag %q twice", flag)
		}
	}
	// By itself, so that flags cannot hide what is wrong with it.
	if _, err := regexp.Compile(source); err != nil {
		return nil, fmt.Errorf("is no regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if flags != "" {
		source = "(?" + flags + ")" + source
	}
	expr, err := regexp.Compile(source)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	e := &expression{expr: expr, spaced: hasBoundary(parsed), literals: required(parsed)}
	if e.spaced && slices.ContainsFunc(e.literals, func(l string) bool { return strings.ContainsFunc(l, notOfWord) }) {
		e.literals = nil // between words there is a space, whatever is in the name
	}
	return e, nil
}

func (e *expression) match(s *subject) bool {
	if e.literals != nil && s.ascii && !slices.ContainsFunc(e.literals, func(l string) bool { return strings.Contains(s.lower, l) }) {
		return false
	}
	return e.expr.MatchString(s.name) || e.spaced && e.expr.MatchString(s.spaced())
}

// hasBoundary reports whether an expression has a \b or \B.
func hasBoundary(e *syntax.Regexp) bool {
	return e.Op == syntax.OpWordBoundary || e.Op == syntax.OpNoWordBoundary || slices.ContainsFunc(e.Sub, hasBoundary)
}

// required returns texts, in lower case, of which every match in an ASCII name
// has at least one; nil if there are none.
func required(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		if text := string(e.Rune); isASCII(text) {
			return []string{strings.ToLower(text)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return required(e.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range e.Sub {
			if texts := required(sub); shortest(texts) > shortest(best) {
				best = texts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range e.Sub {
			texts := required(sub)
			if texts == nil {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	default:
	}
	return nil
}

// shortest returns the length of the shortest text, 0 if there are none.
func shortest(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// notOfWord reports that a character separates words.
func notOfWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }
