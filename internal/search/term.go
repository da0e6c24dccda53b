package search

import (
	"github.com/dockgate/dockgate/internal/search/text"
	"github.com/dockgate/dockgate/internal/search/words"
)

// A term is what texts and queries are compared by: a stem, a concept of the
// vocabulary, or some letters of a word. It is a hash (FNV-1a), because an
// index has many, and two words of the same hash cost nothing but a bad hit.
type term uint64

func hash(start uint64, letters string) term {
	for i := range len(letters) {
		start = (start ^ uint64(letters[i])) * 1099511628211
	}
	return term(start)
}

func stemTerm(stem string) term { return hash(14695981039346656037, stem) }

// gramTerm is never that of a stem of the same letters.
func gramTerm(letters string) term { return hash(14695981039346656038, letters) }

// conceptTerm is that of a stem: concepts begin with a letter that no stem has.
func conceptTerm(concept string) term { return stemTerm(concept) }

// gramLength is how many letters a gram has.
const gramLength = 4

// grams returns the terms of the neighbouring letters of a word. A short word
// has none: it is its own gram.
func grams(word string) []term {
	starts := make([]int, 0, text.MaxWord+1)
	for i := range word {
		starts = append(starts, i)
	}
	starts = append(starts, len(word))
	if len(starts) <= gramLength+1 {
		return nil
	}
	all := make([]term, 0, len(starts)-gramLength)
	for i := range len(starts) - gramLength {
		all = append(all, gramTerm(word[starts[i]:starts[i+gramLength]]))
	}
	return all
}

// A token is a word of a text with what is known of it.
type token struct {
	word string
	stem string
	term term
	// stop words say nothing about what is looked for.
	stop   bool
	senses []words.Sense
	// begins says that a phrase of the vocabulary may begin here.
	begins bool
	grams  []term
}

func newToken(v *words.Vocabulary, word string) *token {
	t := &token{word: word, stem: words.Stem(word), stop: text.IsStopWord(word), grams: grams(word)}
	t.term = stemTerm(t.stem)
	t.begins = v.Begins(t.stem)
	if !t.stop {
		t.senses = v.Senses(t.stem)
	}
	return t
}

// phrases yields the longest phrase of the vocabulary that begins at each
// token, with that token.
func phrases(v *words.Vocabulary, tokens []*token, yield func(first *token, senses []words.Sense)) {
	var key []byte
	for i, first := range tokens {
		if !first.begins {
			continue
		}
		for n := min(words.MaxPhrase, len(tokens)-i); n > 1; n-- {
			key = key[:0]
			for _, t := range tokens[i : i+n] {
				key = append(append(key, t.stem...), ' ')
			}
			if senses := v.PhraseSenses(key[:len(key)-1]); senses != nil {
				yield(first, senses)
				break
			}
		}
	}
}
