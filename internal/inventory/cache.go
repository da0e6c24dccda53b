package inventory

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Uses is how often it was asked what a server offers.
type Uses struct {
	// Hits were answered by what was kept, Misses by nothing: the server had to
	// be started to know.
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`
}

// Rate is the share of the hits, from 0 to 1; 0 if nothing was asked.
func (u Uses) Rate() float64 {
	if u.Hits+u.Misses == 0 {
		return 0
	}
	return float64(u.Hits) / float64(u.Hits+u.Misses)
}

type uses struct{ hits, misses atomic.Int64 }

// Take returns how often it was asked since the last Take.
func (i *Inventory) Take() Uses {
	return Uses{Hits: i.uses.hits.Swap(0), Misses: i.uses.misses.Swap(0)}
}

// Renewed returns when a server was last asked for what is kept under a key;
// zero if nothing is.
func (i *Inventory) Renewed(key Key) time.Time {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if at, ok := i.renewed[key]; ok {
		return at
	}
	return i.known[key].Taken
}

// Forget drops what is in memory, so that only what the store still has is
// offered. What keep reports is true still, because its server runs: it stays,
// and is written again.
func (i *Inventory) Forget(ctx context.Context, keep func(Key) bool) error {
	i.mu.Lock()
	kept := map[Key]Offer{}
	for key, offer := range i.known {
		if keep(key) {
			kept[key] = offer
			i.unsaved[key] = true
		}
	}
	i.known = kept
	close(i.changed)
	i.changed = make(chan struct{})
	i.mu.Unlock()
	var failures []error
	for key, offer := range kept {
		if err := i.offers.PutOffer(ctx, key, offer); err != nil {
			failures = append(failures, fmt.Errorf("keep offer: %w", err))
			continue
		}
		i.mu.Lock()
		delete(i.unsaved, key)
		i.mu.Unlock()
	}
	return errors.Join(failures...)
}
