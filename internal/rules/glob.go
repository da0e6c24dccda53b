package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A shape is how a glob can be tried. Nearly all are one of the quick ones.
type shape int

const (
	shapeAny shape = iota
	shapeEqual
	shapePrefix
	shapeSuffix
	shapeContains
	shapeParts
)

// A glob matches whole names that were made lower case.
type glob struct {
	shape shape
	text  string // of the quick shapes
	parts []part
}

// A part matches one character, or with many any number of them.
type part struct {
	many    bool
	any     bool
	char    rune
	class   []span
	exclude bool
}

// A span is the characters from lo to hi.
type span struct{ lo, hi rune }

// parseGlob reads *, ? and [...], and \ before a character that stands for
// itself.
func parseGlob(text string) (*glob, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("is not valid UTF-8")
	}
	var g glob
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '*':
			if n := len(g.parts); n == 0 || !g.parts[n-1].many {
				g.parts = append(g.parts, part{many: true})
			}
		case '?':
			g.parts = append(g.parts, part{any: true})
		case '[':
			class, length, err := parseClass(runes[i+1:])
			if err != nil {
				return nil, err
			}
			g.parts = append(g.parts, class)
			i += length
		case '\\':
			i++
			if i == len(runes) {
				return nil, errors.New(`ends with a "\"`)
			}
			g.parts = append(g.parts, part{char: unicode.ToLower(runes[i])})
		default:
			g.parts = append(g.parts, part{char: unicode.ToLower(r)})
		}
	}
	g.simplify()
	return &g, nil
}

// parseClass reads what follows a "[" and returns how long it was.
func parseClass(runes []rune) (class part, length int, err error) {
	i := 0
	if len(runes) > 0 && (runes[0] == '!' || runes[0] == '^') {
		class.exclude = true
		i++
	}
	for first := i; i < len(runes); i++ {
		// A "]" that comes first stands for itself.
		if runes[i] == ']' && i > first {
			return class, i + 1, nil
		}
		lo := runes[i]
		hi := lo
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] != ']' {
			hi = runes[i+2]
			i += 2
		}
		if lo > hi {
			return class, 0, fmt.Errorf("has the range %c-%c, which is empty", lo, hi)
		}
		class.class = append(class.class, span{lo, hi})
	}
	return class, 0, errors.New(`has a "[" without a "]"`)
}

// simplify finds the quick shape of a glob, if it has one.
func (g *glob) simplify() {
	parts := g.parts
	leading := len(parts) > 0 && parts[0].many
	if leading {
		parts = parts[1:]
	}
	trailing := len(parts) > 0 && parts[len(parts)-1].many
	if trailing {
		parts = parts[:len(parts)-1]
	}
	var text strings.Builder
	for _, p := range parts {
		if p.many || p.any || p.class != nil {
			g.shape = shapeParts
			return
		}
		text.WriteRune(p.char)
	}
	g.text = text.String()
	switch {
	case leading && g.text == "":
		g.shape = shapeAny
	case leading && trailing:
		g.shape = shapeContains
	case leading:
		g.shape = shapeSuffix
	case trailing:
		g.shape = shapePrefix
	default:
		g.shape = shapeEqual
	}
}

func (g *glob) match(lower string) bool {
	switch g.shape {
	case shapeAny:
		return true
	case shapeEqual:
		return lower == g.text
	case shapePrefix:
		return strings.HasPrefix(lower, g.text)
	case shapeSuffix:
		return strings.HasSuffix(lower, g.text)
	case shapeContains:
		return strings.Contains(lower, g.text)
	}
	return g.matchParts(lower)
}

// matchParts goes back to the last * when the rest does not fit; what was
// before it need not be tried again.
func (g *glob) matchParts(lower string) bool {
	at, name := 0, 0
	star, retry := -1, 0
	for name < len(lower) {
		r, size := utf8.DecodeRuneInString(lower[name:])
		switch {
		case at < len(g.parts) && g.parts[at].many:
			star, retry = at, name
			at++
		case at < len(g.parts) && g.parts[at].fits(r):
			at++
			name += size
		case star >= 0:
			_, size := utf8.DecodeRuneInString(lower[retry:])
			retry += size
			at, name = star+1, retry
		default:
			return false
		}
	}
	for at < len(g.parts) && g.parts[at].many {
		at++
	}
	return at == len(g.parts)
}

// fits reports whether a lower-case character is the part's, in either case.
func (p part) fits(r rune) bool {
	if p.any {
		return true
	}
	if p.class == nil {
		return p.char == r
	}
	for _, s := range p.class {
		for _, folded := range []rune{r, unicode.ToUpper(r)} {
			if s.lo <= folded && folded <= s.hi {
				return !p.exclude
			}
		}
	}
	return p.exclude
}
