package search

import (
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// A word is a run of letters and digits, in lower case: "getPageHTML" as
// "getpagehtml" with the parts get, page, html.
type word struct {
	whole string
	// parts are the words that its capitals show; none if there is only one.
	parts []string
}

// all returns the whole and the parts.
func (w word) all() []string { return append([]string{w.whole}, w.parts...) }

// split returns the words of a text, or of an identifier in any style.
func split(text string) []word {
	var words []word
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		w := word{whole: strings.ToLower(run)}
		if parts := humps(run); len(parts) > 1 {
			w.parts = parts
		}
		words = append(words, w)
	}
	return words
}

// humps splits at capitals: "parseHTMLPage" is parse, html, page. Capitals that
// end a word, as in "URLs", do not split it.
func humps(run string) []string {
	letters := []rune(run)
	var parts []string
	start := 0
	for i := 1; i < len(letters); i++ {
		lower, upper := unicode.IsLower, unicode.IsUpper
		begins := upper(letters[i]) && !upper(letters[i-1]) ||
			upper(letters[i]) && i+2 < len(letters) && lower(letters[i+1]) && lower(letters[i+2])
		if begins && i > start {
			parts = append(parts, strings.ToLower(string(letters[start:i])))
			start = i
		}
	}
	return append(parts, strings.ToLower(string(letters[start:])))
}

// fold returns the letters and digits of a name in lower case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// stem returns the stem of an English word; any other word is its own.
func stem(word string) string {
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	return english.Stem(word, false)
}

// isStopWord reports whether a word says nothing about what is looked for.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could",
		"do", "does", "for", "from", "get", "give", "has", "have", "help", "how", "i", "if", "in", "into", "is", "it", "its",
		"let", "like", "me", "my", "need", "of", "on", "one", "or", "our", "out", "please", "show", "so", "some",
		"something", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up", "us",
		"use", "using", "want", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would",
		"you", "your":
		return true
	}
	return false
}
