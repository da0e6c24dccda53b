// Package text splits texts and identifiers into words.
//
// It decides what a word is: a run of letters and digits in any writing, with
// the parts that capitals and digits show; where a writing has no spaces, every
// two neighbouring letters. It guarantees that no word is longer than [MaxWord],
// so that a text without spaces costs no more than one with them.
package text

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Word is a run of letters and digits, in lower case: "getPageHTML" as
// "getpagehtml" with the parts get, page, html.
type Word struct {
	Whole string
	// Parts are the words that its capitals and digits show; none if there is
	// only one.
	Parts []string
}

// All returns the parts, or the whole if there are none.
func (w Word) All() []string {
	if len(w.Parts) == 0 {
		return []string{w.Whole}
	}
	return w.Parts
}

// MaxWord bounds the letters of a word; what is longer is cut.
const MaxWord = 48

// Split returns the words of a text, or of an identifier in any style.
func Split(text string) []Word {
	var words []Word
	for run := range Runs(text) {
		words = append(words, SplitRun(run)...)
	}
	return words
}

// Runs yields the runs of letters and digits of a text.
func Runs(text string) iter.Seq[string] {
	return strings.FieldsFuncSeq(text, func(r rune) bool { return !isLetter(r) })
}

// SplitRun returns the words of a run.
func SplitRun(run string) []Word {
	var words []Word
	for _, part := range writings(run) {
		if isSpaceless(part[0]) {
			words = append(words, pairs(part)...)
			continue
		}
		part = part[:min(len(part), MaxWord)]
		w := Word{Whole: strings.ToLower(string(part))}
		if parts := humps(part); len(parts) > 1 {
			w.Parts = parts
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

func pairs(letters []rune) []Word {
	if len(letters) == 1 {
		return []Word{{Whole: string(letters)}}
	}
	words := make([]Word, 0, len(letters)-1)
	for i := range len(letters) - 1 {
		words = append(words, Word{Whole: string(letters[i : i+2])})
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

// Sentences splits a text at its full stops and the like.
func Sentences(text string) []string {
	var all []string
	start := 0
	for i, r := range text {
		if strings.ContainsRune(".!?;\n。！？；", r) {
			rest := text[i+len(string(r)):]
			if next, _ := utf8.DecodeRuneInString(rest); r == '.' && rest != "" && isLetter(next) {
				continue // "example.com" and "3.5" are words
			}
			all = append(all, text[start:i])
			start = len(text) - len(rest)
		}
	}
	return append(all, text[start:])
}

// Fold returns the letters and digits of a name in lower case.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// IsStopWord reports whether a word says nothing about what is looked for:
// words of grammar, and those that fill requests.
func IsStopWord(word string) bool {
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
