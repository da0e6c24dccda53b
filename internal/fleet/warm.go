package fleet

import (
	"context"
	"slices"
)

// maxAhead is how many servers wait to be started in advance.
const maxAhead = 64

// Warm starts the ordered server in the background, if it does not run and
// there is a place that nobody waits for. Servers are started in advance one
// at a time. Until it is called such a server is idle, and makes room for
// others as idle ones do.
func (f *Fleet) Warm(order Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := func(other Order) bool { return other.key() == order.key() }
	if f.closing || len(f.ahead) >= maxAhead || slices.ContainsFunc(f.ahead, due) {
		return
	}
	f.ahead = append(f.ahead, order)
	if !f.advancing {
		f.advancing = true
		f.lives.Go(f.advance)
	}
}

// advance starts what is due in advance, one after the other.
func (f *Fleet) advance() {
	for i := f.next(); i != nil; i = f.next() {
		<-i.started
	}
}

// next begins with the next server that is to be started in advance and can
// be, or returns nil if there is none.
func (f *Fleet) next() *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.ahead) > 0 && !f.closing {
		order := f.ahead[0]
		f.ahead = f.ahead[1:]
		if f.instances[order.key()] == nil && !f.elsewhere(order) && f.rested(order) == nil && f.turn(order, nil) && f.room(order) {
			return f.begin(context.Background(), order)
		}
	}
	f.advancing = false
	return nil
}

// elsewhere reports whether the owner uses the ordered server as it was started
// with other settings; the next call sees to that. f.mu is held.
func (f *Fleet) elsewhere(order Order) bool {
	for _, other := range f.instances {
		if other.users[order.Owner] && other.at.sibling(order.key()) {
			return true
		}
	}
	return false
}
