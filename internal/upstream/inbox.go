package upstream

import (
	"encoding/json"
	"errors"
	"sync"
)

// An inbox queues notifications for the one goroutine that delivers them.
type inbox struct {
	wake chan struct{}

	mu      sync.Mutex
	items   []note
	bytes   int
	changed map[string]bool // the list changes among items
	last    chan struct{}   // of the newest note, until it is delivered
	dropped int64
}

type note struct {
	method    string
	params    json.RawMessage
	delivered chan struct{}
}

// listChanged reports whether a notification says that a list is out of date.
// Two of them say no more than one, and none may be lost.
func listChanged(method string) bool {
	switch method {
	case "notifications/tools/list_changed",
		"notifications/prompts/list_changed",
		"notifications/resources/list_changed":
		return true
	}
	return false
}

// push queues a notification, or drops it: if the same change of a list is
// queued already, or if there are too many.
func (b *inbox) push(method string, params json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if listChanged(method) {
		if b.changed[method] {
			return
		}
		b.changed[method] = true
	} else if len(b.items) >= maxNotes || len(b.items) > 0 && b.bytes+len(params) > maxNoteBytes {
		b.dropped++
		return
	}
	b.last = make(chan struct{})
	b.items = append(b.items, note{method, params, b.last})
	b.bytes += len(params)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// pop takes the next notification.
func (b *inbox) pop() (note, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return note{}, false
	}
	n := b.items[0]
	b.items[0] = note{}
	b.items = b.items[1:]
	b.bytes -= len(n.params)
	delete(b.changed, n.method)
	return n, true
}

// delivered says that a popped notification has been handled.
func (b *inbox) delivered(n note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(n.delivered)
	if b.last == n.delivered {
		b.last = nil
	}
}

// newest returns a channel that is closed when all that is queued has been
// delivered, or nil if it has.
func (b *inbox) newest() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// drop counts notifications that were lost elsewhere.
func (b *inbox) drop(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped += int64(n)
}

func (b *inbox) count() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// deliver calls Notify for what is queued. When the stream has ended it
// delivers what came before; when the session was closed it does not.
func (s *Session) deliver() {
	for ended := false; !ended; {
		select {
		case <-s.notes.wake:
		case <-s.done:
			ended = true
		}
		for !errors.Is(s.Err(), ErrClosed) {
			n, ok := s.notes.pop()
			if !ok {
				break
			}
			s.notify(n.method, n.params)
			s.notes.delivered(n)
		}
	}
}
