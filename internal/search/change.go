package search

import (
	"slices"

	"github.com/dockgate/dockgate/internal/search/near"
)

// A change makes the next snapshot from the last. It copies what it writes to
// and shares the rest: what is added to a slice is put behind what the last
// snapshot sees of it, and what is taken out is taken out of a copy. So there
// is one change at a time, and none of a snapshot that is not the last.
type change struct {
	entries   pagesChange[*entry]
	live      int
	servers   tableChange[string, []int32]
	exact     tableChange[string, []int32]
	numbers   tableChange[term, int32]
	lists     pagesChange[*list]
	freeLists []int32
	spellings near.Words[term]
	// own are the lists that this change has copied the head of.
	own map[int32]bool
	// newWords are the words of what was added; goneTerms have no entry now.
	newWords  map[string]term
	goneTerms near.Set[term]
}

func newChange(last *snapshot) *change {
	return &change{
		entries: changePages(last.entries), live: last.live,
		servers: changeTable(last.servers), exact: changeTable(last.exact),
		numbers: changeTable(last.numbers), lists: changePages(last.lists), freeLists: slices.Clone(last.freeLists),
		spellings: last.spellings,
		own:       make(map[int32]bool),
		newWords:  make(map[string]term),
	}
}

// remove takes out the entries of a server.
func (c *change) remove(server string) {
	slots, ok := c.servers.get(server)
	if !ok {
		return
	}
	c.servers.remove(server)
	for _, slot := range slots {
		e := c.entries.at(slot)
		c.entries.set(slot, nil)
		c.live--
		same, _ := c.exact.get(e.folded)
		if same = slices.DeleteFunc(slices.Clone(same), func(i int32) bool { return i == slot }); len(same) == 0 {
			c.exact.remove(e.folded)
		} else {
			c.exact.put(e.folded, same)
		}
		for _, number := range e.lists {
			c.owned(number).live--
		}
	}
}

// owned returns a list whose head may be changed.
func (c *change) owned(number int32) *list {
	if !c.own[number] {
		c.own[number] = true
		head := *c.lists.at(number)
		c.lists.set(number, &head)
	}
	return c.lists.at(number)
}

// add puts in what was read.
func (c *change) add(r reading) {
	numbers := make([]int32, len(r.terms))
	for i := range numbers {
		numbers[i] = -1
	}
	for _, read := range r.entries {
		e := read.entry
		slot := c.entries.add(e)
		e.lists = read.terms
		for i, place := range read.terms {
			if numbers[place] < 0 {
				numbers[place] = c.number(r.terms[place])
				c.owned(numbers[place])
			}
			e.lists[i] = numbers[place]
			l := c.lists.at(numbers[place])
			l.postings = append(l.postings, posting{slot, read.shares[i]})
			l.live++
		}
		for _, slots := range []struct {
			table tableChange[string, []int32]
			key   string
		}{{c.servers, e.server}, {c.exact, e.folded}} {
			at := slots.table.writable(slots.key)
			at[slots.key] = append(at[slots.key], slot)
		}
		c.live++
	}
	for word, place := range r.words {
		c.newWords[word] = r.terms[place]
	}
}

// number returns the number of a term's list, which may be new.
func (c *change) number(t term) int32 {
	if number, ok := c.numbers.get(t); ok {
		return number
	}
	var number int32
	if n := len(c.freeLists); n > 0 {
		number = c.freeLists[n-1]
		c.freeLists = c.freeLists[:n-1]
		c.lists.set(number, &list{term: t})
	} else {
		number = c.lists.add(&list{term: t})
	}
	c.own[number] = true
	c.numbers.put(t, number)
	return number
}

// done returns the next snapshot. The change must not be used after it.
func (c *change) done() *snapshot {
	for number := range c.own {
		l := c.lists.at(number)
		switch dead := len(l.postings) - l.live; {
		case l.live == 0:
			c.numbers.remove(l.term)
			c.goneTerms.Add(l.term)
			c.lists.set(number, nil)
			c.freeLists = append(c.freeLists, number)
		case dead > l.live && dead > fewPostings:
			l.postings = c.without(l.postings)
		}
	}
	c.spellings = c.spellings.Next(c.newWords, &c.goneTerms)
	if c.entries.length > 2*c.live+fewEntries {
		c.close()
	}
	return &snapshot{
		entries: c.entries.pages, live: c.live, servers: c.servers.table, exact: c.exact.table,
		numbers: c.numbers.table, lists: c.lists.pages, freeLists: c.freeLists, spellings: c.spellings,
	}
}

// without returns postings whose entries are there.
func (c *change) without(postings []posting) []posting {
	return slices.DeleteFunc(slices.Clone(postings), func(p posting) bool { return c.entries.at(p.entry) == nil })
}

// What is left in a list, and of entries, before the holes are closed.
const (
	fewPostings = 16
	fewEntries  = 4096
)

// close gives the entries new places, without holes.
func (c *change) close() {
	moved := make([]int32, c.entries.length)
	kept := changePages(pages[*entry]{})
	for slot := range moved {
		if e := c.entries.at(int32(slot)); e != nil { //nolint:gosec // entries in memory
			moved[slot] = kept.add(e)
		}
	}
	for i := range c.lists.length {
		number := int32(i) //nolint:gosec // terms in memory
		l := c.lists.at(number)
		if l == nil {
			continue
		}
		head := list{l.term, c.without(l.postings), l.live}
		for i := range head.postings {
			head.postings[i].entry = moved[head.postings[i].entry]
		}
		c.lists.set(number, &head)
	}
	for _, t := range []tableChange[string, []int32]{c.servers, c.exact} {
		for _, part := range t.parts {
			for key, slots := range part {
				places := make([]int32, len(slots))
				for i, slot := range slots {
					places[i] = moved[slot]
				}
				t.put(key, places)
			}
		}
	}
	c.entries = kept
}
