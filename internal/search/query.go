package search

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/search/text"
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

func understand(v *words.Vocabulary, asked string) request {
	asked = strings.ToValidUTF8(asked[:min(len(asked), maxText)], "")
	r := request{folded: text.Fold(asked), whole: ask(v, asked)}
	for _, sentence := range text.Sentences(asked) {
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

// ask reads a question. Words that say nothing are left out, unless there are
// no others.
func ask(v *words.Vocabulary, sentence string) question {
	var all []*token
	for _, w := range text.Split(sentence) {
		for _, part := range w.All() {
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
