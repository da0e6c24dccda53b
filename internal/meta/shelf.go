package meta

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/search"
)

// A shelf is what one principal can find. It stays as it is until something
// changes.
type shelf struct {
	stocks []Stock // by name
	// index has their tools; the shelf that comes after this one has it too.
	index *search.Index
}

// stock returns the stock of a server, or nil.
func (s *shelf) stock(server string) *Stock {
	i, found := slices.BinarySearchFunc(s.stocks, server, func(s Stock, name string) int { return strings.Compare(s.Entry.Name, name) })
	if !found {
		return nil
	}
	return &s.stocks[i]
}

// maxShelves bounds the principals whose shelves are kept.
const maxShelves = 64

type shelves struct {
	mu   sync.Mutex
	each map[principal.Principal]*shelf
}

// shelf returns what a principal can find.
func (d *Desk) shelf(ctx context.Context, who principal.Principal) (*shelf, error) {
	d.shelves.mu.Lock()
	defer d.shelves.mu.Unlock()
	if found := d.shelves.each[who]; found != nil {
		return found, nil
	}
	filled, err := d.fill(ctx, who, &shelf{})
	if err != nil {
		return nil, err
	}
	if d.shelves.each == nil || len(d.shelves.each) >= maxShelves {
		d.shelves.each = make(map[principal.Principal]*shelf)
	}
	d.shelves.each[who] = filled
	return filled, nil
}

// Refresh brings up to date what principals can find, after anything changed
// that decides it: servers, approvals, offers, rules.
func (d *Desk) Refresh(ctx context.Context) {
	d.shelves.mu.Lock()
	defer d.shelves.mu.Unlock()
	for who, before := range d.shelves.each {
		filled, err := d.fill(ctx, who, before)
		if err != nil { // made anew when it is asked for
			d.Logger.WarnContext(ctx, "read what can be found", "err", err)
			delete(d.shelves.each, who)
			continue
		}
		d.shelves.each[who] = filled
	}
}

// fill makes the shelf that takes the place of the one before.
func (d *Desk) fill(ctx context.Context, who principal.Principal, before *shelf) (*shelf, error) {
	names, err := d.Enabled(ctx, who)
	if err != nil {
		return nil, err
	}
	plans := make(map[string]plan.Plan, len(names))
	for _, name := range names {
		if made, err := d.Planner.Plan(ctx, who, name); err == nil { // what there is no plan of, its stock says
			plans[name] = made
		}
	}
	if err := d.Caller.Preload(ctx, plans); err != nil {
		return nil, err
	}
	filled := &shelf{stocks: make([]Stock, 0, len(names))}
	for _, name := range names {
		stock, err := d.Stock(ctx, who, name)
		var unknown *catalog.UnknownServerError
		if errors.As(err, &unknown) { // it was in a catalog when it was chosen
			stock, err = Stock{Entry: catalog.Server{Name: name}, Unplanned: err}, nil
		}
		if err != nil {
			return nil, err
		}
		filled.stocks = append(filled.stocks, stock)
	}
	filled.reindex(before)
	return filled, nil
}

// reindex brings the index of the shelf before up to date.
func (s *shelf) reindex(before *shelf) {
	if s.index = before.index; s.index == nil {
		servers := make([]search.Server, len(s.stocks))
		for i := range s.stocks {
			servers[i] = s.stocks[i].searched()
		}
		s.index = search.NewTools(servers)
		return
	}
	for i := range s.stocks {
		if old := before.stock(s.stocks[i].Entry.Name); old == nil || !old.same(s.stocks[i]) {
			s.index.Put(s.stocks[i].searched())
		}
	}
	for _, old := range before.stocks {
		if s.stock(old.Entry.Name) == nil {
			s.index.Remove(old.Entry.Name)
		}
	}
}

// searched is what a search reads of a stock.
func (s Stock) searched() search.Server {
	server := search.Server{
		Name: s.Entry.Name, Title: s.Entry.Title, Description: s.Entry.Description, Keywords: s.Entry.Keywords, Tags: s.Entry.Tags,
	}
	for _, item := range s.Items {
		found := search.ToolOf(item.Definition)
		found.Tags, found.Disabled = item.Tags, !item.Enabled()
		server.Tools = append(server.Tools, found)
	}
	return server
}

// same reports that two stocks have the same tools to be found.
func (s Stock) same(other Stock) bool {
	return s.Entry.Title == other.Entry.Title && s.Entry.Description == other.Entry.Description &&
		slices.Equal(s.Entry.Keywords, other.Entry.Keywords) && slices.Equal(s.Entry.Tags, other.Entry.Tags) &&
		slices.EqualFunc(s.Items, other.Items, func(a, b Item) bool {
			return a.Verdict == b.Verdict && slices.Equal(a.Tags, b.Tags) && string(a.JSON) == string(b.JSON)
		})
}
