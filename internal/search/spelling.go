package search

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A spelling is a word as it is written, of at least three letters.
type spelling struct {
	text string
	// letters has a bit for every letter that is in the word: words with few
	// letters in common need no closer look.
	letters uint32
	length  uint8
	// term is what the word is in the index.
	term term
}

// minSpelling is the length of the shortest word that is compared with others.
const minSpelling = 3

func newSpelling(text string, t term) spelling {
	return spelling{text, letterSet(text), uint8(utf8.RuneCountInString(text)), t} //nolint:gosec // at most maxWord
}

func letterSet(text string) uint32 {
	var set uint32
	for _, r := range text {
		set |= 1 << (uint32(r) % 31) //nolint:gosec // runes are not negative
	}
	return set
}

// Spellings are the words of an index, sorted, in parts that a change shares
// as far as it leaves them as they are. No part is empty.
type spellings [][]spelling

// partLength is how long a part gets, and half of what it may have.
const partLength = 32

// part returns the part in which a word is, or would be; -1 before the first.
func (s spellings) part(text string) int {
	i, found := slices.BinarySearchFunc(s, text, func(part []spelling, text string) int { return strings.Compare(part[0].text, text) })
	if !found {
		i--
	}
	return i
}

func place(part []spelling, text string) (int, bool) {
	return slices.BinarySearchFunc(part, text, func(a spelling, b string) int { return strings.Compare(a.text, b) })
}

// find returns the spelling of a word.
func (s spellings) find(text string) (spelling, bool) {
	if i := s.part(text); i >= 0 {
		if at, ok := place(s[i], text); ok {
			return s[i][at], true
		}
	}
	return spelling{}, false
}

// from yields the spellings that are not before a word.
func (s spellings) from(text string) iter.Seq[spelling] {
	return func(yield func(spelling) bool) {
		first := max(0, s.part(text))
		for i, part := range s[min(first, len(s)):] {
			at := 0
			if i == 0 {
				at, _ = place(part, text)
			}
			for _, known := range part[at:] {
				if !yield(known) {
					return
				}
			}
		}
	}
}

// next returns the spellings with added words, and without those of terms that
// nothing has any more.
func (s spellings) next(words map[string]term, gone *termSet) spellings {
	var added []spelling
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if _, known := s.find(word); !known {
			added = append(added, newSpelling(word, words[word]))
		}
	}
	if len(added) == 0 && len(gone.each) == 0 {
		return s
	}
	if len(s) == 0 {
		s = spellings{nil}
	}
	var all spellings
	for i, part := range s {
		here := added
		if i+1 < len(s) {
			n, _ := place(added, s[i+1][0].text)
			here = added[:n]
		}
		added = added[len(here):]
		if len(here) == 0 && !slices.ContainsFunc(part, gone.of) {
			all = append(all, part)
			continue
		}
		merged := slices.DeleteFunc(merge(part, here), gone.of)
		if last := len(all) - 1; last >= 0 && len(all[last])+len(merged) <= partLength {
			merged = slices.Concat(all[last], merged)
			all = all[:last]
		}
		for len(merged) > 2*partLength {
			all = append(all, slices.Clip(merged[:partLength]))
			merged = merged[partLength:]
		}
		if len(merged) > 0 {
			all = append(all, slices.Clip(merged))
		}
	}
	return all
}

// merge returns a new list of the spellings of both, which have none in common.
func merge(a, b []spelling) []spelling {
	all := make([]spelling, 0, len(a)+len(b))
	for _, s := range b {
		at, _ := place(a, s.text)
		all = append(append(all, a[:at]...), s)
		a = a[at:]
	}
	return append(all, a...)
}

// A termSet is a set that nearly nothing is in, and is quick to say so.
type termSet struct {
	each map[term]bool
	// bits has a bit for the end of each.
	bits [64]uint64
}

func (t *termSet) add(one term) {
	t.each[one] = true
	t.bits[one/64%64] |= 1 << (one % 64)
}

// of reports whether the term of a spelling is in the set.
func (t *termSet) of(s spelling) bool {
	return t.bits[s.term/64%64]&(1<<(s.term%64)) != 0 && t.each[s.term]
}
