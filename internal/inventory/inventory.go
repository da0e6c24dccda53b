// Package inventory remembers what each server last offered, so that its
// tools can be listed, searched and checked without starting it.
//
// It decides nothing: an offer is what a server said, not what is approved.
// An offer is kept under all that it may depend on: the digest of what was
// started, the capabilities it was offered, and the era of the protocol; the
// same image with other settings may list other tools.
//
// It guarantees that what is read from memory costs no I/O, that raw parts
// come back as the server sent them, and that an unchanged offer is not
// written again.
package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// A Key is all that an offer depends on.
type Key struct {
	// Spec is the digest of what was started, without secret values.
	Spec string
	// Capabilities are those of a client that the server was offered, as JSON.
	Capabilities string
	// Era is the protocol's era, "legacy" or "modern".
	Era string
}

// An Offer is what a server offered. The raw parts are as it sent them. An
// offer is shared: whoever gets one does not change it.
type Offer struct {
	Tools     []Tool
	Prompts   []json.RawMessage
	Resources []json.RawMessage
	Templates []json.RawMessage
	// Capabilities, Info and Instructions are the members of the same name
	// of the server's answer to initialize or server/discover; nil if absent.
	Capabilities json.RawMessage
	Info         json.RawMessage
	Instructions json.RawMessage
	// Taken is when the server was asked; an offer that did not change since
	// keeps the time of its first listing.
	Taken time.Time
	// Stale is why a later listing could not take this one's place; empty if
	// the last listing succeeded.
	Stale string
}

// A Tool is a tool definition with its digest, which is computed once, when
// it is listed, because a start with ten thousand tools has no time for it.
type Tool struct {
	tool.Definition
	// Pin is the digest of the definition, see [tool.Definition.Digest].
	Pin string
}

// NewTools computes the digests of definitions.
func NewTools(definitions []tool.Definition) []Tool {
	tools := make([]Tool, len(definitions))
	for i, d := range definitions {
		tools[i] = Tool{Definition: d, Pin: d.Digest()}
	}
	return tools
}

// Revised returns the offer to any client, after the one to some of them was
// before and is now: what is gone from there is gone, what is new is last.
func (o Offer) Revised(before, now Offer) Offer {
	named := func(member string) func(json.RawMessage) string {
		return func(entry json.RawMessage) string { return string(jsonrpc.Lookup(entry, member)) }
	}
	o.Tools = revised(o.Tools, before.Tools, now.Tools, func(t Tool) string { return t.Name })
	o.Prompts = revised(o.Prompts, before.Prompts, now.Prompts, named("name"))
	o.Resources = revised(o.Resources, before.Resources, now.Resources, named("uri"))
	o.Templates = revised(o.Templates, before.Templates, now.Templates, named("uriTemplate"))
	o.Taken, o.Stale = now.Taken, ""
	return o
}

func revised[E any](all, before, now []E, name func(E) string) []E {
	gone, fresh := make(map[string]bool, len(before)), make(map[string]E, len(now))
	for _, entry := range before {
		gone[name(entry)] = true
	}
	for _, entry := range now {
		fresh[name(entry)] = entry
	}
	whole := make([]E, 0, len(all))
	for _, entry := range all {
		key := name(entry)
		renewed, ok := fresh[key]
		switch {
		case ok:
			whole = append(whole, renewed)
			delete(fresh, key)
		case !gone[key]:
			whole = append(whole, entry)
		}
	}
	for _, entry := range now {
		if _, ok := fresh[name(entry)]; ok {
			whole = append(whole, entry)
		}
	}
	return whole
}

// Same reports whether two offers are equal but for the time they were taken.
func (o Offer) Same(other Offer) bool {
	return slices.EqualFunc(o.Tools, other.Tools, func(a, b Tool) bool {
		return a.Name == b.Name && a.Pin == b.Pin && bytes.Equal(a.JSON, b.JSON)
	}) &&
		sameList(o.Prompts, other.Prompts) && sameList(o.Resources, other.Resources) &&
		sameList(o.Templates, other.Templates) && bytes.Equal(o.Capabilities, other.Capabilities) &&
		bytes.Equal(o.Info, other.Info) && bytes.Equal(o.Instructions, other.Instructions) &&
		o.Stale == other.Stale
}

func sameList(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// A Store keeps offers, and the era that each image last spoke. Its methods
// may be called at the same time.
type Store interface {
	// Offers returns those of the keys that are kept, in one query.
	Offers(ctx context.Context, keys []Key) (map[Key]Offer, error)
	PutOffer(ctx context.Context, key Key, offer Offer) error
}

// An EraStore keeps the era that each image last spoke, by the image's
// digest.
type EraStore interface {
	// Eras returns all that are kept, in a map that is the caller's.
	Eras(ctx context.Context) (map[string]string, error)
	PutEra(ctx context.Context, image, era string) error
}

// An Inventory is the offers of a state folder, in memory as far as they were
// asked for. Its methods may be called at the same time.
type Inventory struct {
	offers Store
	eras   EraStore

	// mu guards known, unsaved, changed and renewed.
	mu    sync.RWMutex
	known map[Key]Offer
	// unsaved are those that the store did not take.
	unsaved map[Key]bool
	// changed is closed and replaced by each change of an offer.
	changed chan struct{}
	// renewed is when a server was last asked, by this process.
	renewed map[Key]time.Time
	// uses counts lookups.
	uses uses

	// eraMu guards era, which is nil until it was read.
	eraMu sync.Mutex
	era   map[string]string
}

// New returns an inventory over the two stores, which may be one value. It
// reads nothing yet.
func New(offers Store, eras EraStore) *Inventory {
	return &Inventory{offers: offers, eras: eras, known: map[Key]Offer{}, unsaved: map[Key]bool{}, changed: make(chan struct{}), renewed: map[Key]time.Time{}}
}

// Load reads the offers of the keys into memory, in one query.
func (i *Inventory) Load(ctx context.Context, keys []Key) error {
	found, err := i.offers.Offers(ctx, keys)
	if err != nil {
		return fmt.Errorf("read offers: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, offer := range found {
		if _, newer := i.known[key]; !newer {
			i.known[key] = offer
		}
	}
	return nil
}

// Offer returns what was last offered under a key, from memory or else from
// the store, where another process may have put it; ok is false if nothing
// was.
func (i *Inventory) Offer(ctx context.Context, key Key) (offer Offer, ok bool, err error) {
	offer, ok, err = i.offer(ctx, key)
	if ok {
		i.uses.hits.Add(1)
	} else {
		i.uses.misses.Add(1)
	}
	return offer, ok, err
}

func (i *Inventory) offer(ctx context.Context, key Key) (offer Offer, ok bool, err error) {
	i.mu.RLock()
	offer, ok = i.known[key]
	i.mu.RUnlock()
	if ok {
		return offer, true, nil
	}
	if err := i.Load(ctx, []Key{key}); err != nil {
		return Offer{}, false, err
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	offer, ok = i.known[key]
	return offer, ok, nil
}

// Put keeps an offer, and writes it if it differs from the one before. It
// reports whether it did differ. What the store does not take is still in
// memory, and is written by the next Put.
func (i *Inventory) Put(ctx context.Context, key Key, offer Offer) (changed bool, err error) {
	before, ok, err := i.offer(ctx, key)
	changed = err != nil || !ok || !before.Same(offer)
	i.mu.Lock()
	i.renewed[key] = time.Now()
	if !changed && !i.unsaved[key] {
		i.mu.Unlock()
		return false, nil
	}
	i.known[key], i.unsaved[key] = offer, true
	if changed {
		close(i.changed)
		i.changed = make(chan struct{})
	}
	i.mu.Unlock()
	if err := i.offers.PutOffer(ctx, key, offer); err != nil {
		return changed, fmt.Errorf("keep offer: %w", err)
	}
	i.mu.Lock()
	delete(i.unsaved, key)
	i.mu.Unlock()
	return changed, nil
}

// Stale marks what was last offered under a key as what the server could not
// list again, and reports whether anything was.
func (i *Inventory) Stale(ctx context.Context, key Key, reason string) (bool, error) {
	offer, ok, err := i.offer(ctx, key)
	if err != nil || !ok {
		return false, err
	}
	offer.Stale = reason
	_, err = i.Put(ctx, key, offer)
	return true, err
}

// Era returns the era that an image last spoke, by the image's digest, or
// "" if it never ran.
func (i *Inventory) Era(ctx context.Context, image string) (string, error) {
	i.eraMu.Lock()
	defer i.eraMu.Unlock()
	if err := i.readEras(ctx); err != nil {
		return "", err
	}
	return i.era[image], nil
}

// PutEra keeps the era that an image spoke.
func (i *Inventory) PutEra(ctx context.Context, image, era string) error {
	i.eraMu.Lock()
	defer i.eraMu.Unlock()
	if err := i.readEras(ctx); err != nil {
		return err
	}
	if i.era[image] == era {
		return nil
	}
	if err := i.eras.PutEra(ctx, image, era); err != nil {
		return fmt.Errorf("keep era: %w", err)
	}
	i.era[image] = era
	return nil
}

// readEras needs i.eraMu.
func (i *Inventory) readEras(ctx context.Context) error {
	if i.era != nil {
		return nil
	}
	eras, err := i.eras.Eras(ctx)
	if err != nil {
		return fmt.Errorf("read eras: %w", err)
	}
	i.era = eras
	return nil
}
