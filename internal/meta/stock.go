package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// A Stock is what is known of a server without starting it.
type Stock struct {
	Entry catalog.Server
	// Plan is the zero Plan if Unplanned says why there is none.
	Plan      plan.Plan
	Unplanned error
	// Approved reports that it may start.
	Approved bool
	// Offer is what it offered last, if it was Listed and is Approved.
	Offer  inventory.Offer
	Listed bool
	// Items are its tools, disabled ones too: as they were approved or, if it
	// was not listed yet, as the catalog has them.
	Items []Item
}

// An Item is a tool that is known, with what the rules say of it.
type Item struct {
	tool.Definition
	rules.Decision
}

// Item returns the tool of a name.
func (s Stock) Item(name string) (Item, bool) {
	i := slices.IndexFunc(s.Items, func(i Item) bool { return i.Name == name })
	if i < 0 {
		return Item{}, false
	}
	return s.Items[i], true
}

// Enabled returns how many of the tools may be called.
func (s Stock) Enabled() int {
	n := 0
	for _, item := range s.Items {
		if item.Enabled() {
			n++
		}
	}
	return n
}

// Stock returns what is known of a server of the catalog. It starts nothing
// and asks no engine. Nothing that nobody approved is in it, and nothing of a
// server that the principal may not use.
func (d *Desk) Stock(ctx context.Context, who principal.Principal, server string) (Stock, error) {
	if err := d.Caller.MayUse(who, server); err != nil {
		return Stock{}, err
	}
	entry, err := d.Catalog().Server(server)
	if err != nil {
		return Stock{}, err
	}
	s := Stock{Entry: entry}
	if s.Plan, s.Unplanned = d.Planner.Plan(ctx, who, server); s.Unplanned == nil {
		s.Approved = d.Caller.Approved(s.Plan)
	}
	if s.Approved {
		if s.Offer, s.Listed, err = d.Caller.Offer(ctx, s.Plan); err != nil {
			return Stock{}, err
		}
	}
	key := approval.Key{Server: server, GrantDigest: s.Plan.GrantDigest}
	if !s.Listed {
		if s.Approved {
			d.pinned(who, key, &s)
		}
		if len(s.Items) > 0 {
			return s, nil
		}
		return s, d.snapshot(who, &s)
	}
	s.Items = make([]Item, 0, len(s.Offer.Tools))
	for _, t := range s.Offer.Tools {
		definition := t.Definition
		if d.Caller.Book.CheckTool(key, t.Name, t.Pin).State != approval.Approved {
			definition.JSON = d.Caller.Book.Pinned(key, t.Name)
		}
		if definition.JSON != nil {
			s.Items = append(s.Items, Item{definition, d.Caller.Decide(who, server, definition)})
		}
	}
	return s, nil
}

// pinned takes the tools as they were approved. They are known even where
// nothing is kept of what the server offered.
func (d *Desk) pinned(who principal.Principal, key approval.Key, s *Stock) {
	for _, name := range d.Caller.Book.PinnedNames(key) {
		if pinned := d.Caller.Book.Pinned(key, name); pinned != nil {
			definition := tool.Definition{Name: name, JSON: pinned}
			s.Items = append(s.Items, Item{definition, d.Caller.Decide(who, key.Server, definition)})
		}
	}
}

// snapshot takes the tools of the catalog's entry.
func (d *Desk) snapshot(who principal.Principal, s *Stock) error {
	for _, t := range s.Entry.Tools {
		definition, err := Promised(t)
		if err != nil {
			return fmt.Errorf("snapshot of %q: %w", s.Entry.Name, err)
		}
		s.Items = append(s.Items, Item{definition, d.Caller.Decide(who, s.Entry.Name, definition)})
	}
	return nil
}

// Promised returns the definition of a tool that its server has not listed yet,
// as the catalog has it.
func Promised(t catalog.ToolSnapshot) (tool.Definition, error) {
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	t.Examples, t.Run = nil, nil // they are the catalog's own
	encoded, err := json.Marshal(t)
	return tool.Definition{Name: t.Name, JSON: encoded}, err
}
