package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// A Bound is the most that there may be of something.
type Bound struct {
	// Max is the bound; zero is none.
	Max int64
	// Place is where it was set, if not by default.
	Place string
}

// A Quota bounds what runs for one owner at a time. A server that stops still
// counts, until its container is gone.
type Quota struct {
	// Running is how many servers run.
	Running Bound
	// Memory is the sum of their memory limits, in bytes.
	Memory Bound
	// Remote is how many servers that somebody else runs are connected; they
	// count in nothing else.
	Remote Bound
	// Waiting is how many orders wait for a place, before the next is refused
	// at once; zero is [DefaultWaiting].
	Waiting int
}

// DefaultWaiting is how many orders of one owner wait for a place.
const DefaultWaiting = 32

// maxQueued is how long an order waits for a place that has no deadline.
const maxQueued = time.Minute

// A QuotaError is a server for which there is no place.
type QuotaError struct {
	Server string
	// Setting is the quota: "max_running", "max_total_memory" or "max_remote".
	Setting string
	Bound   Bound
	// Wanted is what the server alone needs of the quota, if that is too much.
	Wanted int64
	// Holders are the servers that have the places, each with its calls.
	Holders []Status
	// Waiting is how many orders wait for a place.
	Waiting int
}

// Error says who has the places.
func (e *QuotaError) Error() string {
	if e.Wanted > 0 {
		return fmt.Sprintf("%s: server %q may use %s, and all together not more than %s",
			e.Code(), e.Server, e.amount(e.Wanted), e.amount(e.Bound.Max))
	}
	holders := make([]string, len(e.Holders))
	for i, h := range e.Holders {
		holders[i] = fmt.Sprintf("%s (%d calls)", h.Server, h.Calls)
		switch {
		case h.State != "ready":
			holders[i] = fmt.Sprintf("%s (%s)", h.Server, h.State)
		case h.Calls == 1:
			holders[i] = h.Server + " (1 call)"
		}
	}
	text := fmt.Sprintf("%s: no place for server %q, because no more than %s may %s; in use by %s",
		e.Code(), e.Server, e.amount(e.Bound.Max), e.verb(), strings.Join(holders, ", "))
	if e.Waiting > 0 {
		text += fmt.Sprintf("; waiting: %d", e.Waiting)
	}
	return text
}

func (e *QuotaError) amount(n int64) string {
	if e.Setting == "max_total_memory" {
		return units.BytesSize(float64(n)) + " of memory"
	}
	kind := "server"
	if e.Setting == settingRemote {
		kind = "remote server"
	}
	if n == 1 {
		return "1 " + kind
	}
	return fmt.Sprintf("%d %ss", n, kind)
}

func (e *QuotaError) verb() string {
	if e.Setting == settingRemote {
		return "be connected"
	}
	return "run"
}

const settingRemote = "max_remote"

// Code says what kind of failure it is.
func (e *QuotaError) Code() string { return "QUOTA_EXCEEDED" }

// Hint says what the user can do.
func (e *QuotaError) Hint() string {
	hint := "raise quotas." + e.Setting
	if e.Bound.Place != "" {
		hint += " in " + e.Bound.Place
	}
	if e.Wanted > 0 {
		return hint
	}
	return "wait until one of them is done, stop one, or " + hint
}

// A waiter is an order that waits for a place.
type waiter struct {
	order Order
	until time.Time
	told  bool
	wake  chan struct{} // holds one: it is worth looking again
}

// A load is what an owner's servers take of a quota.
type load struct{ running, memory, remote int64 }

func (l load) with(o Order) load { return l.add(o, 1) }

func (l load) without(i *instance) load { return l.add(i.order, -1) }

func (l load) add(o Order, n int64) load {
	if o.Spec.Remote != nil {
		l.remote += n
		return l
	}
	l.running += n
	l.memory += n * o.Spec.Reserved()
	return l
}

// rivals reports whether two orders may want the same place.
func (o Order) rivals(other Order) bool {
	return o.Owner == other.Owner && (o.Spec.Remote == nil) == (other.Spec.Remote == nil)
}

// exceeded returns the setting that a load is beyond, or "".
func (q Quota) exceeded(l load) (setting string, bound Bound) {
	switch {
	case q.Running.Max > 0 && l.running > q.Running.Max:
		return "max_running", q.Running
	case q.Memory.Max > 0 && l.memory > q.Memory.Max:
		return "max_total_memory", q.Memory
	case q.Remote.Max > 0 && l.remote > q.Remote.Max:
		return settingRemote, q.Remote
	}
	return "", Bound{}
}

// quota returns the one that an order counts in.
func (f *Fleet) quota(o Order) Quota {
	if o.Quota == (Quota{}) {
		return f.opts.Quota
	}
	return o.Quota
}

// of returns the instances that have places which an order may want. f.mu is held.
func (f *Fleet) of(o Order) (owned []*instance, total load) {
	for _, i := range f.all() {
		if i.order.rivals(o) {
			owned = append(owned, i)
			total = total.with(i.order)
		}
	}
	return owned, total
}

// fits refuses a server that would be too much all alone. f.mu is held.
func (f *Fleet) fits(o Order) error {
	alone := load{}.with(o)
	setting, bound := f.quota(o).exceeded(alone)
	if setting == "" {
		return nil
	}
	return &QuotaError{Server: o.Spec.Server, Setting: setting, Bound: bound, Wanted: alone.memory}
}

// room reports whether there is a place now. f.mu is held.
func (f *Fleet) room(o Order) bool {
	_, total := f.of(o)
	setting, _ := f.quota(o).exceeded(total.with(o))
	return setting == ""
}

// clear reports whether there is a place now. If there is none but could be,
// it ends the servers that have been idle for longest. f.mu is held.
func (f *Fleet) clear(o Order) bool {
	if f.room(o) {
		return true
	}
	owned, total := f.of(o)
	total = total.with(o)
	var idle []*instance
	for _, i := range owned {
		switch {
		case i.leaving():
			total = total.without(i)
		case i.uses == 0 && len(f.watched[i.at]) == 0:
			idle = append(idle, i)
		}
	}
	slices.SortFunc(idle, func(a, b *instance) int { return a.used.Compare(b.used) })
	quota := f.quota(o)
	enough := func() bool { setting, _ := quota.exceeded(total); return setting == "" }
	ending := 0
	for ; ending < len(idle) && !enough(); ending++ {
		total = total.without(idle[ending])
	}
	if enough() { // else nobody is ended in vain
		for _, i := range idle[:ending] {
			f.end(i)
		}
	}
	return false
}

// turn reports whether no order for the same places came before. f.mu is held.
func (f *Fleet) turn(o Order, w *waiter) bool {
	i := slices.IndexFunc(f.queue, func(other *waiter) bool { return other.order.rivals(o) })
	return i < 0 || f.queue[i] == w
}

// enqueue lets an order wait for a place, unless too many do. f.mu is held.
func (f *Fleet) enqueue(o Order) (*waiter, error) {
	if f.waiting(o.Owner) >= cmp.Or(f.quota(o).Waiting, DefaultWaiting) {
		return nil, f.full(o)
	}
	w := &waiter{order: o, until: time.Now().Add(maxQueued), wake: make(chan struct{}, 1)}
	f.queue = append(f.queue, w)
	return w, nil
}

func (f *Fleet) waiting(owner string) (n int) {
	for _, w := range f.queue {
		if w.order.Owner == owner {
			n++
		}
	}
	return n
}

// dequeue takes a waiter out of the queue, if there is one. f.mu is held.
func (f *Fleet) dequeue(w *waiter) {
	if w == nil {
		return
	}
	f.queue = slices.DeleteFunc(f.queue, func(other *waiter) bool { return other == w })
	f.stir() // it may be another one's turn
}

// stir makes those who wait look again. f.mu is held.
func (f *Fleet) stir() {
	for _, w := range f.queue {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// linger waits until it is worth looking again for a place. f.mu is held, but
// not while it waits.
func (f *Fleet) linger(ctx context.Context, w *waiter) error {
	if !w.told && w.order.Queued != nil {
		w.told = true
		reason := f.full(w.order)
		f.mu.Unlock()
		w.order.Queued(reason)
		f.mu.Lock()
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	timer := time.NewTimer(time.Until(w.until))
	defer timer.Stop()
	select {
	case <-w.wake:
		return nil
	case <-timer.C:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), context.Canceled) { // and not a limit that passed
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full(w.order)
}

// full says who has the places. f.mu is held.
func (f *Fleet) full(o Order) *QuotaError {
	owned, total := f.of(o)
	e := &QuotaError{Server: o.Spec.Server, Waiting: f.waiting(o.Owner)}
	e.Setting, e.Bound = f.quota(o).exceeded(total.with(o))
	for _, i := range owned {
		e.Holders = append(e.Holders, i.status())
	}
	slices.SortFunc(e.Holders, Status.compare)
	return e
}
