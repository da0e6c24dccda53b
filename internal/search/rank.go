package search

import "github.com/dockgate/dockgate/internal/search/near"

// A ranking is what each entry has of a request.
type ranking struct {
	scores []float32
	// best is the share of the request that the best entry has.
	best float64
}

// exact is the score of an entry whose name the query is. Any other is at most
// 1.
const exact = 2

func rank(s *snapshot, k kind, r request) ranking {
	c := &counter{snapshot: s, subject: subjectOfTool, best: make([]float32, s.entries.length), guessed: make(map[string][]near.Match[term])}
	if k == findsServers {
		c.subject = subjectOfServer
	}
	scores, share := c.count(&r.whole)
	result := ranking{scores, share}
	if len(r.parts) > 0 {
		result.best = max(share, c.countParts(r.parts, scores))
	}
	if r.folded != "" {
		same, _ := s.exact.get(r.folded)
		for _, e := range same {
			scores[e] = exact
		}
	}
	return result
}

// A counter adds up what entries have of questions.
type counter struct {
	*snapshot
	// subject is how much a topic counts.
	subject float64
	scores  []float32
	// best is the most that the entries in touched have of one word.
	best    []float32
	touched []int32
	// guessed are the terms that unknown words may be meant for.
	guessed map[string][]near.Match[term]
}

// maxGuesses bounds the unknown words of a query that are compared with all
// that are known.
const maxGuesses = 16

// guess returns what an unknown word may be meant for.
func (c *counter) guess(word string) []near.Match[term] {
	terms, ok := c.guessed[word]
	if !ok && len(c.guessed) < maxGuesses {
		terms = c.spellings.To(word)
		c.guessed[word] = terms
	}
	return terms
}

// count returns what the entries have of a question, the best of them 1, and
// what share of the question that one has.
func (c *counter) count(q *question) ([]float32, float64) {
	c.scores = make([]float32, c.entries.length)
	total := 0.0
	for _, t := range q.tokens {
		total += c.countToken(t)
	}
	for _, pair := range q.pairs {
		c.add(pair, 1)
	}
	for _, groups := range q.phrases {
		for _, group := range groups {
			c.keep(group, 1)
		}
		c.settle()
	}
	for _, t := range q.topics {
		c.add(t.term, c.subject*t.weight)
	}
	top := float32(0)
	for e, score := range c.scores {
		if score > top && c.entries.at(int32(e)) != nil { //nolint:gosec // entries in memory
			top = score
		}
	}
	if top == 0 {
		return c.scores, 0
	}
	for e := range c.scores {
		c.scores[e] /= top
	}
	return c.scores, float64(top) / total
}

// countParts puts into the scores of the whole those of the part that each
// entry fits best, so that each part's best are above what has a bit of all. It
// returns the largest share.
func (c *counter) countParts(parts []question, whole []float32) float64 {
	most := 0.0
	best := make([]float32, len(whole))
	for i := range parts {
		scores, share := c.count(&parts[i])
		most = max(most, share)
		for e, score := range scores {
			best[e] = max(best[e], score)
		}
	}
	for e := range whole {
		whole[e] = (1-onePart)*whole[e] + onePart*best[e]
	}
	return most
}

// countToken counts one word and returns what it is worth.
func (c *counter) countToken(t *token) float64 {
	worth := c.add(t.term, 1)
	if worth == 0 {
		for _, meant := range c.guess(t.word) {
			worth = max(worth, c.keep(meant.Term, meant.Likely)/meant.Likely)
		}
		c.settle()
	}
	for _, sense := range t.senses {
		if !sense.Topic {
			c.keep(conceptTerm(sense.Concept), otherWord)
		}
	}
	c.settle()
	for _, gram := range t.grams {
		c.add(gram, lettersAlike/float64(len(t.grams)))
	}
	if worth == 0 {
		return idf(0, c.live) / 2
	}
	return worth
}

// add gives the entries of a term their share of what it is worth, by a factor,
// and returns that.
func (c *counter) add(t term, factor float64) float64 {
	list, live := c.list(t)
	worth := factor * c.worth(live)
	by := float32(worth)
	for _, p := range list {
		c.scores[p.entry] += by * p.share
	}
	return worth
}

// keep is like add for terms that stand for the same word: only the most
// counts. It counts when settle is called.
func (c *counter) keep(t term, factor float64) float64 {
	list, live := c.list(t)
	worth := factor * c.worth(live)
	by := float32(worth)
	for _, p := range list {
		if c.best[p.entry] == 0 {
			c.touched = append(c.touched, p.entry)
		}
		c.best[p.entry] = max(c.best[p.entry], by*p.share)
	}
	return worth
}

func (c *counter) settle() {
	for _, e := range c.touched {
		c.scores[e] += c.best[e]
		c.best[e] = 0
	}
	c.touched = c.touched[:0]
}

// worth is how much a term says that n entries have; 0 if none has.
func (c *counter) worth(n int) float64 {
	if n == 0 {
		return 0
	}
	return idf(n, c.live)
}
