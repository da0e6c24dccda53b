package search

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// almost is the most relevance of a query that is not the name; what has less
// than least has some letters in common, by chance.
const (
	almost = 0.99
	least  = 0.05
)

// best returns the hits of a ranking that a query wants.
func (s *snapshot) best(r ranking, q Query) []Hit {
	tag := strings.ToLower(q.Tag)
	wanted := func(e *entry) bool {
		return e != nil && (q.Server == "" || e.server == q.Server) && (q.IncludeDisabled || !e.disabled) &&
			(tag == "" || slices.Contains(e.tags, tag))
	}
	var found worst
	for i, score := range r.scores {
		e := s.entries.at(int32(i)) //nolint:gosec // entries in memory
		if score <= 0 || len(found) == q.Limit && score < found[0].score || !wanted(e) {
			continue
		}
		switch c := (candidate{score, e}); {
		case len(found) < q.Limit:
			heap.Push(&found, c)
		case compare(c, found[0]) < 0:
			found[0] = c
			heap.Fix(&found, 0)
		}
	}
	slices.SortFunc(found, compare)
	hits := make([]Hit, 0, len(found))
	for _, c := range found {
		if relevance := r.relevance(c.score); relevance >= least {
			hits = append(hits, Hit{c.entry.server, c.entry.tool, relevance})
		}
	}
	return hits
}

// steep is how fast a relevance rises.
const steep = 1.6

// relevance tells what share of the request a score is. It rises fast: who has
// most of the words, in the fields that count, has what was looked for.
func (r ranking) relevance(score float32) float64 {
	if score == exact {
		return 1
	}
	return almost * (1 - math.Exp(-steep*r.best*float64(score)))
}

// A candidate is an entry that may be a hit.
type candidate struct {
	score float32
	entry *entry
}

// compare puts the best first, and then the names in their order.
func compare(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.entry.server, b.entry.server), strings.Compare(a.entry.tool, b.entry.tool))
}

// worst is a heap with the worst candidate on top.
type worst []candidate

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return compare(w[i], w[j]) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push is for package heap.
func (w *worst) Push(c any) { *w = append(*w, c.(candidate)) }

// Pop is for package heap.
func (w *worst) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}
