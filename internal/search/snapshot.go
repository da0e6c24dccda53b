package search

import "github.com/dockgate/dockgate/internal/search/near"

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
	entries pages[*entry]
	live    int
	servers table[string, []int32]
	// exact maps folded names to entries.
	exact table[string, []int32]
	// numbers maps terms to their lists; lists has holes.
	numbers table[term, int32]
	lists   pages[*list]
	// freeLists are the holes.
	freeLists []int32
	// spellings are the words of the index as they are written.
	spellings near.Words[term]
}

// The parts of the tables: some dozens of keys each in a large index.
const (
	serverParts = 32
	exactParts  = 256
	termParts   = 1024
)

func newSnapshot() *snapshot {
	return &snapshot{
		servers: newTable[string, []int32](serverParts), exact: newTable[string, []int32](exactParts),
		numbers: newTable[term, int32](termParts),
	}
}

// list returns the postings of a term and how many of them count.
func (s *snapshot) list(t term) ([]posting, int) {
	if number, ok := s.numbers.get(t); ok {
		l := s.lists.at(number)
		return l.postings, l.live
	}
	return nil, 0
}
