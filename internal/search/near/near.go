// Package near finds the words that a word may be meant for.
//
// It decides which words those are, and how likely: those that begin with it,
// those that are most of its beginning, and those that are a typing mistake
// away. It guarantees that a list of words never changes: the next one shares
// with it what stays the same.
package near

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/dockgate/dockgate/internal/search/text"
)

// What a word is worth if it stands for another.
const (
	beginsWith  = 0.8
	oneMistake  = 0.7
	isBeginning = 0.6
	twoMistakes = 0.5
)

// maxNear bounds the terms that stand for one word.
const maxNear = 8

// A Match is a term that may be meant by a word.
type Match[T Term] struct {
	Term T
	// Likely is how likely it is, below 1.
	Likely float64
	// text is the word that was found.
	text string
}

// To returns the terms that may be meant by a word, the likeliest first: those
// that begin with it, those that are most of its beginning, and those that are
// one typing mistake away, or two in a long word. A mistake is a letter too
// many, too few, other or exchanged.
func (w Words[T]) To(asked string) []Match[T] {
	letters := []rune(asked)
	if len(letters) < MinLength || strings.ContainsFunc(asked, unicode.IsDigit) {
		return nil // a number or an identifier is not meant for another
	}
	best := make(map[T]Match[T])
	add := func(known word[T], likely float64) {
		if best[known.term].Likely < likely {
			best[known.term] = Match[T]{known.term, likely, known.text}
		}
	}
	for known := range w.from(asked) {
		if !strings.HasPrefix(known.text, asked) {
			break
		}
		add(known, beginsWith)
	}
	for n := max(4, (2*len(letters)+2)/3); n < len(letters); n++ {
		if known, ok := w.find(string(letters[:n])); ok {
			add(known, isBeginning)
		}
	}
	w.mistyped(letters, func(known word[T], mistakes int) {
		if mistakes == 1 {
			add(known, oneMistake)
		} else {
			add(known, twoMistakes)
		}
	})
	terms := make([]Match[T], 0, len(best))
	for _, t := range best {
		terms = append(terms, t)
	}
	slices.SortFunc(terms, func(a, b Match[T]) int {
		return cmp.Or(cmp.Compare(b.Likely, a.Likely), strings.Compare(a.text, b.text))
	})
	return terms[:min(maxNear, len(terms))]
}

// mistyped yields the words that asked may be meant for, with the number of
// mistakes, which is 1 or 2.
func (w Words[T]) mistyped(asked []rune, yield func(word[T], int)) {
	allowed := 0
	switch {
	case len(asked) > text.MaxWord:
	case len(asked) >= 8:
		allowed = 2
	case len(asked) >= 4:
		allowed = 1
	}
	if allowed == 0 {
		return
	}
	m := newMeasure(asked, allowed)
	set := letterSet(string(asked))
	for _, part := range w {
		for _, known := range part {
			off := len(asked) - int(known.length)
			if off > allowed || -off > allowed || bits.OnesCount32(set^known.letters) > 2*allowed {
				continue
			}
			if mistakes := m.distance(known.text); mistakes > 0 && mistakes <= allowed {
				yield(known, mistakes)
			}
		}
	}
}

// A measure counts the mistakes between one word and others.
type measure struct {
	asked   []rune
	allowed int
	// known is the other word; the rows are those of the table of distances
	// between the beginnings of both words. All are kept to save memory.
	known              []rune
	before, last, next []int
}

func newMeasure(asked []rune, allowed int) *measure {
	width := len(asked) + allowed + 1
	return &measure{asked, allowed, make([]rune, 0, width), make([]int, width), make([]int, width), make([]int, width)}
}

// distance returns how many mistakes lie between the words (optimal string
// alignment), or something over allowed as soon as it is more.
func (m *measure) distance(known string) int {
	m.known = m.known[:0]
	for _, r := range known {
		m.known = append(m.known, r)
	}
	a, b := m.asked, m.known
	for j := range len(b) + 1 {
		m.last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		m.next[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			m.next[j] = min(m.last[j]+1, m.next[j-1]+1, m.last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				m.next[j] = min(m.next[j], m.before[j-2]+1)
			}
			least = min(least, m.next[j])
		}
		if least > m.allowed {
			return least
		}
		m.before, m.last, m.next = m.last, m.next, m.before
	}
	return m.last[len(b)]
}
