package search

import (
	"slices"
)

// A posting is an entry that has a term.
type posting struct {
	entry int32
	// share is how much of the term the entry has, below 1.
	share float32
}

// A list is the entries that have a term. Entries that were removed stay in it
// until they are the larger part.
type list struct {
	term     term
	postings []posting
	// live is the number of postings whose entry is still there.
	live int
}

// An entry is a tool or a server in an index.
type entry struct {
	server, tool string
	disabled     bool
	// tags are in lower case.
	tags []string
	// folded is the name as it is compared with a query.
	folded string
	// lists are the numbers of the lists that have the entry.
	lists []int32
}

// A snapshot is an index as it was at one time. A query works on one, and
// nothing that it can see there is changed.
type snapshot struct {
	// entries has holes where entries were removed.
	entries []*entry
	live    int
	servers map[string][]int32
	// exact maps folded names to entries.
	exact map[string][]int32
	// numbers maps terms to their lists; lists has holes.
	numbers map[term]int32
	lists   []*list
	// freeLists are the holes.
	freeLists []int32
	// spellings are the words of the index as they are written, sorted.
	spellings []spelling
}

func newSnapshot() *snapshot {
	return &snapshot{servers: map[string][]int32{}, exact: map[string][]int32{}, numbers: map[term]int32{}}
}

// list returns the postings of a term and how many of them count.
func (s *snapshot) list(t term) ([]posting, int) {
	if number, ok := s.numbers[t]; ok {
		return s.lists[number].postings, s.lists[number].live
	}
	return nil, 0
}

// without returns postings whose entries are there.
func (s *snapshot) without(postings []posting) []posting {
	return slices.DeleteFunc(slices.Clone(postings), func(p posting) bool { return s.entries[p.entry] == nil })
}
