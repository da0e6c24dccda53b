package search

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"
)

// almost is the most relevance of a query that is not the name.
const almost = 0.99

// best returns the hits of a ranking that a query wants.
func (s *snapshot) best(r ranking, q Query) []Hit {
	tag := strings.ToLower(q.Tag)
	wanted := func(e *entry) bool {
		return e != nil && (q.Server == "" || e.server == q.Server) && (q.IncludeDisabled || !e.disabled) &&
			(tag == "" || slices.Contains(e.tags, tag))
	}
	var found worst
	offer := func(h Hit) {
		if len(found) < q.Limit {
			heap.Push(&found, h)
		} else if compare(h, found[0]) < 0 {
			found[0] = h
			heap.Fix(&found, 0)
		}
	}
	for i, score := range r.scores {
		if score <= 0 || !wanted(s.entries[i]) {
			continue
		}
		relevance := almost
		if !slices.Contains(r.exact, int32(i)) { //nolint:gosec // entries in memory
			relevance *= 1 - math.Exp(-2.2*r.best*float64(score))
		} else {
			relevance = 1
		}
		offer(Hit{s.entries[i].server, s.entries[i].tool, relevance})
	}
	slices.SortFunc(found, compare)
	return found
}

func compare(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool))
}

// worst is a heap with the worst hit on top.
type worst []Hit

func (w worst) Len() int           { return len(w) }
func (w worst) Less(i, j int) bool { return compare(w[i], w[j]) > 0 }
func (w worst) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *worst) Push(h any)        { *w = append(*w, h.(Hit)) }
func (w *worst) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}
