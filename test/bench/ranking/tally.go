package ranking

import (
	"iter"
	"maps"
	"math"
	"slices"
)

// depth is how many hits are looked at.
const depth = 100

// A tally adds up the figures of queries.
type tally struct {
	n                       int
	r1, r3, r5, r10, rr, dc float64
}

// add counts one query. R@k is the share of its groups with an id in the first
// k; a group counts once.
func (t *tally) add(found []string, groups [][]string) {
	t.n++
	if len(groups) == 0 {
		return
	}
	first, gain := 0, 0.0
	for _, group := range groups {
		rank := 0
		for i, id := range found {
			if slices.Contains(group, id) {
				rank = i + 1
				break
			}
		}
		if rank == 0 {
			continue
		}
		if first == 0 || rank < first {
			first = rank
		}
		share := 1 / float64(len(groups))
		for _, at := range []struct {
			k   int
			sum *float64
		}{{1, &t.r1}, {3, &t.r3}, {5, &t.r5}, {10, &t.r10}} {
			if rank <= at.k {
				*at.sum += share
			}
		}
		if rank <= 10 {
			gain += 1 / math.Log2(float64(rank)+1)
		}
	}
	if first > 0 {
		t.rr += 1 / float64(first)
	}
	ideal := 0.0
	for rank := 1; rank <= min(10, len(groups)); rank++ {
		ideal += 1 / math.Log2(float64(rank)+1)
	}
	t.dc += min(1, gain/ideal)
}

func (t *tally) figures() Figures {
	n := float64(max(1, t.n))
	return Figures{t.n, t.r1 / n, t.r3 / n, t.r5 / n, t.r10 / n, t.rr / n, t.dc / n}
}

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
