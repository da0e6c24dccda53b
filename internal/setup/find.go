package setup

import (
	"sync"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/search"
)

// finder ranks the servers of a catalog. It reads them at the first query: a
// start has no time for it.
func finder(servers *catalog.Catalog) func(query string, limit int) []string {
	index := sync.OnceValue(func() *search.Index { return search.NewServers(searchable(servers)) })
	return func(query string, limit int) []string {
		var names []string
		for _, hit := range index().Search(search.Query{Text: query, Limit: limit}) {
			names = append(names, hit.Server)
		}
		return names
	}
}

// searchable is what the search reads of a catalog: servers that never ran are
// found by the tools that their entries name.
func searchable(servers *catalog.Catalog) []search.Server {
	all := make([]search.Server, 0, len(servers.Servers()))
	for _, s := range servers.Servers() {
		server := search.Server{Name: s.Name, Title: s.Title, Description: s.Description, Keywords: s.Keywords, Tags: s.Tags}
		for _, t := range s.Tools {
			server.Tools = append(server.Tools, search.Tool{Name: t.Name, Description: t.Description})
		}
		all = append(all, server)
	}
	return all
}
