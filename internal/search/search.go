// Package search ranks the tools of MCP servers, or the servers themselves, for
// a query in words.
//
// It finds by words, not by meaning. Fields count by their weight (BM25F),
// identifiers are split into their words, and words are reduced to their stems.
// What a text says in other words is found by general English: a group of
// synonyms stands for each of its words, and a topic for what is said about one
// subject (package words). A word that no text has stands for those that begin
// with it or are a typing mistake away. A query of several sentences asks for
// several things, and finds each.
//
// The same entries and query give the same hits in the same order, however the
// index came to hold them. A query never waits for a change: it works on the
// index as it was when the query began.
package search

import (
	"sync"
	"sync/atomic"

	"github.com/dockgate/dockgate/internal/search/words"
)

// A Server is one MCP server with its tools.
type Server struct {
	// Name is unique within an index.
	Name        string
	Title       string
	Description string
	Keywords    []string
	Tags        []string
	Tools       []Tool
}

// A Tool is one tool of a server.
type Tool struct {
	// Name is unique within its server.
	Name        string
	Title       string
	Description string
	// Tags come on top of those of the server.
	Tags       []string
	Parameters []Parameter
	// Disabled tools are found only by a query that includes them.
	Disabled bool
}

// A Parameter is one of a tool's parameters.
type Parameter struct {
	Name        string
	Description string
}

// A Query is what is looked for.
type Query struct {
	// Text is words, or a name. Without a word it finds nothing.
	Text string
	// Server, if set, is the only server of which anything is found.
	Server string
	// Tag, if set, is a tag that the tool or its server has, whatever its case.
	Tag string
	// IncludeDisabled finds disabled tools too.
	IncludeDisabled bool
	// Limit is the most hits that are wanted; without it there are none.
	Limit int
}

// A Hit is a tool or a server that was found.
type Hit struct {
	Server string
	// Tool is empty where servers are found.
	Tool string
	// Relevance is over 0 and at most 1: how much of what the query asks for the
	// hit has. Only a query that is the name, whatever its case and separators,
	// gives 1.
	Relevance float64
}

// An Index finds tools, or servers. It is safe for concurrent use, and its
// queries take no lock.
type Index struct {
	kind       kind
	vocabulary *words.Vocabulary
	// changing is held by who replaces current.
	changing sync.Mutex
	current  atomic.Pointer[snapshot]
}

// A kind is what an index finds.
type kind int

const (
	findsTools kind = iota
	findsServers
)

// NewTools returns an index that finds the tools of servers.
func NewTools(servers []Server) *Index { return build(findsTools, servers) }

// NewServers returns an index that finds servers, by their own words and by
// those of their tools.
func NewServers(servers []Server) *Index { return build(findsServers, servers) }

func build(k kind, servers []Server) *Index {
	x := &Index{kind: k, vocabulary: words.Load()}
	next := newChange(newSnapshot())
	for _, read := range readAll(x.vocabulary, k, unique(servers)) {
		next.add(read)
	}
	x.current.Store(next.done())
	return x
}

// unique leaves out servers of whose name there is another behind them.
func unique(servers []Server) []Server {
	last := make(map[string]int, len(servers))
	for i := range servers {
		last[servers[i].Name] = i
	}
	if len(last) == len(servers) {
		return servers
	}
	var kept []Server
	for i := range servers {
		if last[servers[i].Name] == i {
			kept = append(kept, servers[i])
		}
	}
	return kept
}

// Put adds a server, or replaces what the index has of it.
func (x *Index) Put(server Server) {
	r := newReader(x.vocabulary)
	r.readServer(x.kind, &server)
	x.changing.Lock()
	defer x.changing.Unlock()
	next := newChange(x.current.Load())
	next.remove(server.Name)
	next.add(r.reading)
	x.current.Store(next.done())
}

// Remove removes a server and its tools. It need not be there.
func (x *Index) Remove(server string) {
	x.changing.Lock()
	defer x.changing.Unlock()
	next := newChange(x.current.Load())
	next.remove(server)
	x.current.Store(next.done())
}

// Len returns the number of tools, or servers, that the index has.
func (x *Index) Len() int { return x.current.Load().live }

// Search returns what fits a query, best first. What fits as well is in the
// order of the names.
func (x *Index) Search(q Query) []Hit {
	if q.Limit <= 0 {
		return nil
	}
	s := x.current.Load()
	return s.best(rank(s, x.kind, understand(x.vocabulary, q.Text)), q)
}
