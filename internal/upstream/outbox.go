package upstream

import (
	"slices"
	"sync"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An outbox queues messages for the one goroutine that writes, because a
// server that does not read must not hold the goroutines that call it. The
// number of queued calls is their callers' to bound; the rest is bounded here.
type outbox struct {
	wake chan struct{}

	mu      sync.Mutex
	items   []*item
	control int
	dropped int64
}

// An item is a queued message. The request of a call has it set.
type item struct {
	message jsonrpc.Message
	call    *call
	taken   bool // guarded by the outbox's mu
}

// push queues an item, or drops it if it is not a call's and there are too
// many.
func (o *outbox) push(it *item) {
	o.mu.Lock()
	if it.call == nil {
		if o.control >= maxControl {
			o.dropped++
			o.mu.Unlock()
			return
		}
		o.control++
	}
	o.items = append(o.items, it)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pop takes the next item to write, or nil.
func (o *outbox) pop() *item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) == 0 {
		return nil
	}
	it := o.items[0]
	o.items[0] = nil
	o.items = o.items[1:]
	if len(o.items) == 0 {
		o.items = nil
	}
	it.taken = true
	if it.call == nil {
		o.control--
	}
	return it
}

// withdraw removes an item that was not taken yet, and reports whether it
// was: a withdrawn message is never written.
func (o *outbox) withdraw(it *item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if it.taken {
		return false
	}
	if i := slices.Index(o.items, it); i >= 0 {
		o.items = slices.Delete(o.items, i, i+1)
	}
	return true
}

func (o *outbox) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}
