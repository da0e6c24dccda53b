package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dockgate/dockgate/internal/principal"
)

// How many principals are remembered. There can be any number of them: an
// issuer makes as many as it likes.
const (
	maxMenus    = 256 // each with all lists
	maxVisitors = 256
)

// recent keeps what was made for principals, and forgets what was not used for
// longest. The zero value is empty; it is guarded by the lock of its owner.
type recent[V any] struct {
	used uint64 // how often anything was
	each map[principal.Principal]*kept[V]
}

type kept[V any] struct {
	value V
	used  uint64 // which use was the last
}

func (r *recent[V]) get(who principal.Principal) (value V, ok bool) {
	found, ok := r.each[who]
	if !ok {
		return value, false
	}
	r.used++
	found.used = r.used
	return found.value, true
}

// put keeps a value and returns those that are forgotten for it: so many that
// there are at most as many as may be, but none that is in use.
func (r *recent[V]) put(who principal.Principal, value V, most int, inUse func(principal.Principal, V) bool) (forgotten []V) {
	if r.each == nil {
		r.each = make(map[principal.Principal]*kept[V])
	}
	r.used++
	r.each[who] = &kept[V]{value, r.used}
	if len(r.each) <= most {
		return nil
	}
	var idle []principal.Principal
	for other, k := range r.each {
		if other != who && !inUse(other, k.value) {
			idle = append(idle, other)
		}
	}
	slices.SortFunc(idle, func(a, b principal.Principal) int { return cmp.Compare(r.each[a].used, r.each[b].used) })
	// A few more go, so that not every newcomer has to look for one.
	for _, other := range idle[:min(len(idle), len(r.each)-most+most/16)] {
		forgotten = append(forgotten, r.each[other].value)
		delete(r.each, other)
	}
	return forgotten
}

// tasks are what goes on for a session: requests, and what outlives them.
type tasks struct {
	group sync.WaitGroup
	count atomic.Int64
}

// Go runs a function that Wait waits for.
func (t *tasks) Go(do func()) {
	t.count.Add(1)
	t.group.Go(func() {
		defer t.count.Add(-1)
		do()
	})
}

// Wait waits for all that Go has begun.
func (t *tasks) Wait() { t.group.Wait() }

// hold counts a request until it is released.
func (t *tasks) hold() (release func()) {
	t.count.Add(1)
	return func() { t.count.Add(-1) }
}

// idle reports that nothing goes on.
func (t *tasks) idle() bool { return t.count.Load() == 0 }
