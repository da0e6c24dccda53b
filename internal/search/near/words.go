package near

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Term is what a word is in an index.
type Term interface{ ~uint64 }

// A word is one as it is written.
type word[T Term] struct {
	text string
	// letters has a bit for every letter that is in the word: words with few
	// letters in common need no closer look.
	letters uint32
	length  uint8
	term    T
}

// MinLength is the length of the shortest word that is compared with others.
const MinLength = 3

func newWord[T Term](text string, t T) word[T] {
	return word[T]{text, letterSet(text), uint8(utf8.RuneCountInString(text)), t} //nolint:gosec // at most text.MaxWord
}

func letterSet(text string) uint32 {
	var set uint32
	for _, r := range text {
		set |= 1 << (uint32(r) % 31) //nolint:gosec // runes are not negative
	}
	return set
}

// Words are the words of an index, sorted, in parts that the next ones share as
// far as they stay as they are. No part is empty. The zero value has no words.
type Words[T Term] [][]word[T]

// partLength is how long a part gets, and half of what it may have.
const partLength = 32

// part returns the part in which a word is, or would be; -1 before the first.
func (w Words[T]) part(text string) int {
	i, found := slices.BinarySearchFunc(w, text, func(part []word[T], text string) int { return strings.Compare(part[0].text, text) })
	if !found {
		i--
	}
	return i
}

func place[T Term](part []word[T], text string) (int, bool) {
	return slices.BinarySearchFunc(part, text, func(a word[T], b string) int { return strings.Compare(a.text, b) })
}

// find returns the word of a text.
func (w Words[T]) find(text string) (word[T], bool) {
	if i := w.part(text); i >= 0 {
		if at, ok := place(w[i], text); ok {
			return w[i][at], true
		}
	}
	return word[T]{}, false
}

// from yields the words that are not before a text.
func (w Words[T]) from(text string) iter.Seq[word[T]] {
	return func(yield func(word[T]) bool) {
		first := max(0, w.part(text))
		for i, part := range w[min(first, len(w)):] {
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

// Next returns the words with those that are new, of at least [MinLength]
// letters, and without those of terms that nothing has any more.
func (w Words[T]) Next(fresh map[string]T, gone *Set[T]) Words[T] {
	var added []word[T]
	for _, text := range slices.Sorted(maps.Keys(fresh)) {
		if _, known := w.find(text); !known {
			added = append(added, newWord(text, fresh[text]))
		}
	}
	if len(added) == 0 && len(gone.each) == 0 {
		return w
	}
	if len(w) == 0 {
		w = Words[T]{nil}
	}
	var all Words[T]
	for i, part := range w {
		here := added
		if i+1 < len(w) {
			n, _ := place(added, w[i+1][0].text)
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

// merge returns a new list of the words of both, which have none in common.
func merge[T Term](a, b []word[T]) []word[T] {
	all := make([]word[T], 0, len(a)+len(b))
	for _, w := range b {
		at, _ := place(a, w.text)
		all = append(append(all, a[:at]...), w)
		a = a[at:]
	}
	return append(all, a...)
}

// A Set is a set of terms that nearly nothing is in, and is quick to say so. The
// zero value is empty.
type Set[T Term] struct {
	each map[T]bool
	// bits has a bit for the end of each.
	bits [64]uint64
}

// Add puts a term into the set.
func (t *Set[T]) Add(one T) {
	if t.each == nil {
		t.each = make(map[T]bool)
	}
	t.each[one] = true
	t.bits[one/64%64] |= 1 << (one % 64)
}

// of reports whether the term of a word is in the set.
func (t *Set[T]) of(w word[T]) bool {
	return t.bits[w.term/64%64]&(1<<(w.term%64)) != 0 && t.each[w.term]
}
