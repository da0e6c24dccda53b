// Package words is a general vocabulary of English for finding tools: which
// words are used for the same thing, and which belong to the same subject.
//
// It decides what a word may stand for besides itself. A group of synonyms is
// close: what is asked for by one of them may be named by another. A topic is
// wide: a word of it says what a text is about. Both are data, the files
// synonyms.txt and topics.txt. Words are compared by their stems, and a phrase
// of up to three words may stand where a word may.
package words

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

//go:embed synonyms.txt
var synonyms string

//go:embed topics.txt
var topics string

// MaxPhrase is the number of words of the longest phrase.
const MaxPhrase = 3

// A Sense is one thing that a word or phrase may stand for.
type Sense struct {
	// Concept names the group or topic. It has a first letter that no stem has:
	// "=" for a group, "#" for a topic.
	Concept string
	// Topic says that it is a topic and not a group of synonyms.
	Topic bool
}

// A Vocabulary knows words and phrases. It is safe for concurrent use, and is
// never changed.
type Vocabulary struct {
	senses map[string][]Sense
	// begins holds the stems that begin a phrase.
	begins map[string]bool
}

// Load returns the vocabulary. It is read once and shared.
func Load() *Vocabulary { return loaded() }

//nolint:gochecknoglobals // data that never changes; reading it takes longer than making a small index
var loaded = sync.OnceValue(func() *Vocabulary {
	v := &Vocabulary{senses: make(map[string][]Sense), begins: make(map[string]bool)}
	number := 0
	for line := range strings.Lines(synonyms) {
		number++
		if members := strings.Fields(line); len(members) > 1 && members[0] != "//" {
			v.add(Sense{"=" + strconv.Itoa(number), false}, members)
		}
	}
	for line := range strings.Lines(topics) {
		if name, members, ok := strings.Cut(line, ":"); ok {
			v.add(Sense{"#" + name, true}, append([]string{name}, strings.Fields(members)...))
		}
	}
	return v
})

func (v *Vocabulary) add(sense Sense, members []string) {
	for _, member := range members {
		stems := strings.Split(strings.ToLower(member), "_")
		for i, word := range stems {
			stems[i] = Stem(word)
		}
		key := strings.Join(stems, " ")
		known := false
		for _, s := range v.senses[key] {
			known = known || s == sense
		}
		if known {
			continue
		}
		v.senses[key] = append(v.senses[key], sense)
		if len(stems) > 1 {
			v.begins[stems[0]] = true
		}
	}
}

// Senses returns what a stem, or the stems of a phrase with single spaces,
// may stand for.
func (v *Vocabulary) Senses(stems string) []Sense { return v.senses[stems] }

// PhraseSenses is Senses of a phrase that is put together for this call.
func (v *Vocabulary) PhraseSenses(stems []byte) []Sense { return v.senses[string(stems)] }

// Begins reports whether a phrase begins with a stem.
func (v *Vocabulary) Begins(stem string) bool { return v.begins[stem] }

// Len returns the number of words and phrases.
func (v *Vocabulary) Len() int { return len(v.senses) }

// Stem returns the stem of an English word in lower case; any other word is
// its own.
func Stem(word string) string {
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	return english.Stem(word, false)
}
