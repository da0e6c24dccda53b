package search

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dockgate/dockgate/internal/search/words"
)

// What bounds the work for one query.
const (
	// maxWords is how many different words of a question count.
	maxWords = 64
	// maxQuestions is how many things one query can ask for.
	maxQuestions = 12
	// maxText is how many bytes of a query are read.
	maxText = 8 << 10
)

// A question asks for one thing.
type question struct {
	// tokens are the different words that say something.
	tokens []*token
	// pairs are the terms of neighbouring tokens written as one.
	pairs []term
	// phrases holds the groups of synonyms of each phrase.
	phrases [][]term
	topics  []topic
}

// A topic is a subject of a question, with how much of it is about that.
type topic struct {
	term   term
	weight float64
}

// A request is what a query asks for.
type request struct {
	// folded is the query as it is compared with names.
	folded string
	// whole is everything; parts are the things one by one, if there are
	// several.
	whole question
	parts []question
}

func understand(v *words.Vocabulary, text string) request {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	r := request{folded: fold(text), whole: ask(v, text)}
	for _, sentence := range sentences(text) {
		if q := ask(v, sentence); len(q.tokens) >= minQuestion && len(r.parts) < maxQuestions {
			r.parts = append(r.parts, q)
		}
	}
	if len(r.parts) < 2 {
		r.parts = nil
	}
	return r
}

// minQuestion is how many words a sentence needs to ask for something.
const minQuestion = 2

// sentences splits a text at its full stops and the like.
func sentences(text string) []string {
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

// ask reads a question. Words that say nothing are left out, unless there are
// no others.
func ask(v *words.Vocabulary, text string) question {
	var all []*token
	for _, w := range split(text) {
		for _, part := range w.all() {
			all = append(all, newToken(v, part))
		}
	}
	var q question
	onlyStops := !slices.ContainsFunc(all, func(t *token) bool { return !t.stop })
	seen := make(map[term]bool)
	topics := make(map[string]float64)
	for _, t := range all {
		if t.stop && !onlyStops || seen[t.term] || len(q.tokens) == maxWords {
			continue
		}
		seen[t.term] = true
		q.tokens = append(q.tokens, t)
		addTopics(topics, t.senses)
	}
	for i := range len(q.tokens) - 1 {
		q.pairs = append(q.pairs, stemTerm(words.Stem(q.tokens[i].word+q.tokens[i+1].word)))
	}
	phrases(v, all, func(first *token, senses []words.Sense) {
		key := conceptTerm(senses[0].Concept + first.stem)
		if seen[key] {
			return
		}
		seen[key] = true
		q.phrases = append(q.phrases, groups(senses))
		addTopics(topics, senses)
	})
	for _, concept := range slices.Sorted(maps.Keys(topics)) {
		weight := topics[concept]
		q.topics = append(q.topics, topic{conceptTerm(concept), weight / (weight + topicSaturation)})
	}
	return q
}

// topicSaturation is how many words about a topic make half a topic.
const topicSaturation = 1

// addTopics counts the topics of a word. A word of many topics says less of
// each.
func addTopics(topics map[string]float64, senses []words.Sense) {
	n := 0.0
	for _, sense := range senses {
		if sense.Topic {
			n++
		}
	}
	for _, sense := range senses {
		if sense.Topic {
			topics[sense.Concept] += 1 / math.Sqrt(n)
		}
	}
}

func groups(senses []words.Sense) []term {
	var all []term
	for _, sense := range senses {
		if !sense.Topic {
			all = append(all, conceptTerm(sense.Concept))
		}
	}
	return all
}
