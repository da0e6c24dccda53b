package search

import (
	"iter"
	"strings"
	"unicode"
)

// A word is a run of letters and digits, in lower case: "getPageHTML" as
// "getpagehtml" with the parts get, page, html.
type word struct {
	whole string
	// parts are the words that its capitals and digits show; none if there is
	// only one.
	parts []string
}

// all returns the parts, or the whole if there are none.
func (w word) all() []string {
	if len(w.parts) == 0 {
		return []string{w.whole}
	}
	return w.parts
}

// maxWord bounds the letters of a word; what is longer is cut. A text without
// spaces must not cost more than one with them.
const maxWord = 48

// split returns the words of a text, or of an identifier in any style.
func split(text string) []word {
	var words []word
	for run := range runs(text) {
		words = append(words, splitRun(run)...)
	}
	return words
}

// runs yields the runs of letters and digits of a text.
func runs(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return !isLetter(r) })
}

// splitRun returns the words of a run. Where a writing has no spaces, every two
// neighbouring letters are a word.
func splitRun(run string) []word {
	var words []word
	for _, part := range writings(run) {
		if isSpaceless(part[0]) {
			words = append(words, pairs(part)...)
			continue
		}
		part = part[:min(len(part), maxWord)]
		w := word{whole: strings.ToLower(string(part))}
		if parts := humps(part); len(parts) > 1 {
			w.parts = parts
		}
		words = append(words, w)
	}
	return words
}

// isLetter reports whether a character is of a word: letters, digits, and the
// marks that belong to a letter.
func isLetter(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// isSpaceless reports whether a letter is of a writing without spaces between
// words.
func isSpaceless(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// writings splits a run where a writing without spaces meets another.
func writings(run string) [][]rune {
	letters := []rune(run)
	var parts [][]rune
	start := 0
	for i := 1; i < len(letters); i++ {
		if isSpaceless(letters[i]) != isSpaceless(letters[i-1]) {
			parts = append(parts, letters[start:i])
			start = i
		}
	}
	return append(parts, letters[start:])
}

func pairs(letters []rune) []word {
	if len(letters) == 1 {
		return []word{{whole: string(letters)}}
	}
	words := make([]word, 0, len(letters)-1)
	for i := range len(letters) - 1 {
		words = append(words, word{whole: string(letters[i : i+2])})
	}
	return words
}

// humps splits at capitals and around digits: "parseHTMLPage2" is parse, html,
// page, 2. Capitals that end a word, as in "URLs", do not split it.
func humps(letters []rune) []string {
	var parts []string
	start := 0
	lower, upper, digit := unicode.IsLower, unicode.IsUpper, unicode.IsDigit
	for i := 1; i < len(letters); i++ {
		begins := upper(letters[i]) && !upper(letters[i-1]) ||
			upper(letters[i]) && i+2 < len(letters) && lower(letters[i+1]) && lower(letters[i+2]) ||
			digit(letters[i]) != digit(letters[i-1])
		if begins {
			parts = append(parts, strings.ToLower(string(letters[start:i])))
			start = i
		}
	}
	return append(parts, strings.ToLower(string(letters[start:])))
}

// fold returns the letters and digits of a name in lower case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// isStopWord reports whether a word says nothing about what is looked for.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "both", "but", "by",
		"can", "could", "did", "do", "does", "don", "each", "either", "etc", "ever", "every", "for", "from", "get", "give",
		"go", "got", "had", "has", "have", "having", "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "i", "if",
		"in", "into", "is", "it", "its", "just", "kindly", "know", "let", "ll", "like", "looking", "make", "may", "me", "more",
		"most", "much", "must", "my", "need", "no", "not", "of", "off", "on", "one", "only", "or", "other", "our", "out",
		"over", "own", "please", "provide", "re", "really", "s", "say", "see", "she", "should", "show", "so", "some",
		"someone", "something", "such", "t", "tell", "than", "thank", "thanks", "that", "the", "their", "them", "then",
		"there", "these", "they", "thing", "things", "this", "those", "through", "to", "too", "up", "us", "use", "using",
		"ve", "very", "via", "want", "wanted", "was", "way", "we", "well", "were", "what", "when", "where", "whether",
		"which", "while", "who", "why", "will", "wish", "with", "within", "would", "you", "your", "m", "d", "yet", "able", "etcetera":
		return true
	}
	return false
}
