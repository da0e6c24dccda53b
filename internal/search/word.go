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

// isStopWord reports whether a word says nothing about what is looked for:
// words of grammar, and those that fill requests.
func isStopWord(word string) bool {
	switch word {
	case "a", "able", "about", "above", "absolutely", "actually", "after", "again", "all", "almost", "along", "already",
		"also", "although", "always", "am", "among", "an", "and", "another", "any", "anyone", "anything", "are", "around",
		"as", "at", "away", "based", "basically", "be", "because", "become", "becomes", "been", "before", "being", "below",
		"besides", "between", "both", "but", "by", "came", "can", "cannot", "certain", "certainly", "clearly", "come",
		"comes", "completely", "could", "currently", "d", "definitely", "did", "directly", "do", "does", "doing", "don",
		"done", "due", "during", "each", "easily", "either", "else", "entirely", "especially", "etc", "even", "ever",
		"every", "everyone", "everything", "exactly", "extremely", "far", "few", "finally", "for", "forward", "from",
		"fully", "further", "furthermore", "generally", "get", "getting", "give", "given", "gives", "giving", "go", "goes",
		"going", "gone", "got", "great", "greatly", "had", "hardly", "has", "have", "having", "he", "hello", "help", "her",
		"here", "hey", "hi", "highly", "him", "his", "hopefully", "how", "however", "i", "if", "immediately", "in",
		"including", "incredibly", "indeed", "instead", "into", "involving", "is", "it", "its", "itself", "just", "kindly",
		"know", "largely", "lately", "least", "let", "like", "likely", "ll", "look", "looking", "lot", "lots", "m", "made",
		"mainly", "make", "makes", "making", "many", "may", "maybe", "me", "might", "mine", "moreover", "most", "mostly",
		"much", "must", "my", "myself", "namely", "near", "nearly", "necessary", "need", "needed", "needs", "never", "next",
		"no", "none", "normally", "not", "nothing", "now", "obviously", "of", "off", "often", "oh", "ok", "okay", "on",
		"once", "one", "ones", "only", "onto", "or", "other", "otherwise", "our", "ours", "ourselves", "out", "over", "own",
		"particular", "particularly", "perhaps", "please", "possible", "possibly", "potential", "preferably", "probably",
		"properly", "provide", "provided", "provides", "providing", "purely", "put", "quickly", "quite", "rather", "re",
		"really", "recently", "regarding", "related", "respectively", "s", "same", "say", "says", "see", "seem", "seems",
		"several", "shall", "she", "should", "show", "simply", "since", "so", "some", "somehow", "someone", "something",
		"sometimes", "soon", "specific", "specifically", "still", "such", "sure", "surely", "t", "take", "taken", "takes",
		"taking", "tell", "than", "thank", "thanks", "that", "the", "their", "theirs", "them", "themselves", "then",
		"there", "therefore", "these", "they", "thing", "things", "this", "those", "though", "through", "thus", "to",
		"together", "too", "toward", "towards", "truly", "try", "trying", "typically", "unless", "until", "up", "upon",
		"us", "use", "used", "useful", "using", "usually", "various", "ve", "very", "via", "want", "wanted", "wants", "was",
		"way", "we", "well", "went", "were", "what", "whatever", "when", "whenever", "where", "whether", "which", "while",
		"who", "whole", "whom", "whose", "why", "will", "willing", "wish", "with", "within", "without", "wonder",
		"wondering", "would", "yes", "yet", "you", "your", "yours", "yourself":
		return true
	}
	return false
}
