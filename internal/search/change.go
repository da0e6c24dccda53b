package search

import (
	"maps"
	"slices"
	"strings"
)

// A change makes the next snapshot from the last. It copies what is small and
// shares the rest: what is added to a slice is put behind what the last
// snapshot sees of it, and what is taken out is taken out of a copy. So there
// is one change at a time, and none of a snapshot that is not the last.
type change struct {
	snapshot
	// own are the lists that this change has copied the head of.
	own        map[int32]bool
	ownNumbers bool
	// newWords are the words of what was added; goneTerms have no entry now.
	newWords  map[string]term
	goneTerms map[term]bool
}

func newChange(last *snapshot) *change {
	return &change{
		snapshot: snapshot{
			entries: slices.Clone(last.entries), live: last.live,
			servers: maps.Clone(last.servers), exact: maps.Clone(last.exact),
			numbers: last.numbers, lists: slices.Clone(last.lists), freeLists: slices.Clone(last.freeLists),
			spellings: last.spellings,
		},
		own:      make(map[int32]bool),
		newWords: make(map[string]term), goneTerms: make(map[term]bool),
	}
}

// remove takes out the entries of a server.
func (c *change) remove(server string) {
	slots, ok := c.servers[server]
	if !ok {
		return
	}
	delete(c.servers, server)
	for _, slot := range slots {
		e := c.entries[slot]
		c.entries[slot] = nil
		c.live--
		c.exact[e.folded] = slices.DeleteFunc(slices.Clone(c.exact[e.folded]), func(i int32) bool { return i == slot })
		if len(c.exact[e.folded]) == 0 {
			delete(c.exact, e.folded)
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
		head := *c.lists[number]
		c.lists[number] = &head
	}
	return c.lists[number]
}

// add puts in what was read.
func (c *change) add(r reading) {
	numbers := make([]int32, len(r.terms))
	for i := range numbers {
		numbers[i] = -1
	}
	for _, read := range r.entries {
		slot := int32(len(c.entries)) //nolint:gosec // entries in memory
		e := read.entry
		e.lists = read.terms
		for i, place := range read.terms {
			if numbers[place] < 0 {
				numbers[place] = c.number(r.terms[place])
				c.owned(numbers[place])
			}
			e.lists[i] = numbers[place]
			l := c.lists[numbers[place]]
			l.postings = append(l.postings, posting{slot, read.shares[i]})
			l.live++
		}
		c.entries = append(c.entries, e)
		c.servers[e.server] = append(c.servers[e.server], slot)
		c.exact[e.folded] = append(c.exact[e.folded], slot)
		c.live++
	}
	for word, place := range r.words {
		c.newWords[word] = r.terms[place]
	}
}

// number returns the number of a term's list, which may be new.
func (c *change) number(t term) int32 {
	if number, ok := c.numbers[t]; ok {
		return number
	}
	c.ownTerms()
	var number int32
	if n := len(c.freeLists); n > 0 {
		number = c.freeLists[n-1]
		c.freeLists = c.freeLists[:n-1]
	} else {
		number = int32(len(c.lists)) //nolint:gosec // terms in memory
		c.lists = append(c.lists, nil)
	}
	c.lists[number] = &list{term: t}
	c.own[number] = true
	c.numbers[t] = number
	return number
}

func (c *change) ownTerms() {
	if !c.ownNumbers {
		c.numbers = maps.Clone(c.numbers)
		c.ownNumbers = true
	}
}

// done returns the next snapshot. The change must not be used after it.
func (c *change) done() *snapshot {
	for number := range c.own {
		l := c.lists[number]
		switch dead := len(l.postings) - l.live; {
		case l.live == 0:
			c.ownTerms()
			delete(c.numbers, l.term)
			c.goneTerms[l.term] = true
			c.lists[number] = nil
			c.freeLists = append(c.freeLists, number)
		case dead > l.live && dead > fewPostings:
			l.postings = c.without(l.postings)
		}
	}
	c.spell()
	if len(c.entries) > 2*c.live+fewEntries {
		c.close()
	}
	next := c.snapshot
	return &next
}

// What is left in a list, and of entries, before the holes are closed.
const (
	fewPostings = 16
	fewEntries  = 4096
)

// close gives the entries new places, without holes.
func (c *change) close() {
	places := make([]int32, len(c.entries))
	kept := make([]*entry, 0, c.live)
	for slot, e := range c.entries {
		if e != nil {
			places[slot] = int32(len(kept)) //nolint:gosec // entries in memory
			kept = append(kept, e)
		}
	}
	for number, l := range c.lists {
		if l == nil {
			continue
		}
		head := list{l.term, c.without(l.postings), l.live}
		for i := range head.postings {
			head.postings[i].entry = places[head.postings[i].entry]
		}
		c.lists[number] = &head
	}
	for _, slots := range []map[string][]int32{c.servers, c.exact} {
		for key, list := range slots {
			moved := make([]int32, len(list))
			for i, slot := range list {
				moved[i] = places[slot]
			}
			slots[key] = moved
		}
	}
	c.entries = kept
}

// spell brings the spellings up to date. One stays as long as anything has its
// stem.
func (c *change) spell() {
	var added []spelling
	for word, t := range c.newWords {
		if _, known := findSpelling(c.spellings, word); !known {
			added = append(added, newSpelling(word, t))
		}
	}
	if len(added) == 0 && len(c.goneTerms) == 0 {
		return
	}
	slices.SortFunc(added, func(a, b spelling) int { return strings.Compare(a.text, b.text) })
	kept := c.spellings
	merged := make([]spelling, 0, len(kept)+len(added))
	for _, s := range added {
		next, _ := findSpelling(kept, s.text)
		merged = append(append(merged, kept[:next]...), s)
		kept = kept[next:]
	}
	merged = append(merged, kept...)
	if len(c.goneTerms) > 0 {
		merged = slices.DeleteFunc(merged, func(s spelling) bool { return c.goneTerms[s.term] })
	}
	c.spellings = merged
}
