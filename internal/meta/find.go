package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/search"
)

// The bounds of a search.
const (
	DefaultHits = 10
	MaxHits     = 100
)

// A Hit is a tool that was found.
type Hit struct {
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	// Relevance is over 0 and at most 1, which is the tool's own name.
	Relevance float64  `json:"relevance"`
	Tags      []string `json:"tags"`
	// Confirmed reports that a person confirms each call.
	Confirmed bool `json:"confirmed,omitempty"`
}

// Search returns the enabled tools that fit a query best, of one server or,
// without a name, of all that a principal can use; at most limit.
func (d *Desk) Search(ctx context.Context, who principal.Principal, query, server string, limit int) ([]Hit, error) {
	shelf, err := d.shelf(ctx, who)
	if err != nil {
		return nil, err
	}
	if server != "" && shelf.stock(server) == nil {
		names := make([]string, len(shelf.stocks))
		for i, stock := range shelf.stocks {
			names[i] = stock.Entry.Name
		}
		return nil, &catalog.UnknownServerError{Name: server, Nearest: catalog.Nearest(server, names)}
	}
	hits := []Hit{}
	for _, found := range shelf.index.Search(search.Query{Text: query, Server: server, Limit: limit}) {
		stock := shelf.stock(found.Server)
		if stock == nil { // it went since the search began
			continue
		}
		item, ok := stock.Item(found.Tool)
		if !ok || !item.Enabled() {
			continue
		}
		listed := item.Listed()
		hits = append(hits, Hit{
			Server: found.Server, Tool: found.Tool, Summary: listed.Summary, Tags: listed.Tags, Confirmed: listed.Confirmed,
			Relevance: math.Max(math.Round(found.Relevance*100)/100, 0.01),
		})
	}
	return hits, nil
}

func (d *Desk) searchTools(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Query  *string `json:"query"`
		Server string  `json:"server"`
		Limit  *int    `json:"limit"`
	}
	if err := parse(searchTools, arguments, &input); err != nil {
		return nil, err
	}
	limit := DefaultHits
	if input.Limit != nil {
		limit = *input.Limit
	}
	switch {
	case input.Query == nil:
		return nil, missing(searchTools, "query")
	case strings.TrimSpace(*input.Query) == "":
		return nil, &ArgumentError{Tool: searchTools, Problem: "query is empty"}
	case limit < 1 || limit > MaxHits:
		return nil, &ArgumentError{Tool: searchTools, Problem: fmt.Sprintf("limit is %d, want 1 to %d", limit, MaxHits)}
	}
	hits, err := d.Search(ctx, client.Principal, *input.Query, input.Server, limit)
	if err != nil {
		return nil, err
	}
	lines := make([]line, len(hits))
	for i, hit := range hits {
		lines[i] = line{hit.Server + "/" + hit.Tool, hit.Summary}
	}
	text := page("", lines, roomFor(len(lines), leastRoom), "get_tool_details has all")
	if len(hits) == 0 {
		text = "No tool of your servers fits. Try other words, or find a server with mcp_find."
	}
	return reply(text, map[string]any{"results": hits})
}
