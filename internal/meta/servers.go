package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

// A Status says in one word whether a server can be called.
type Status string

// The statuses.
const (
	Connected    Status = "connected"
	Disconnected Status = "disconnected"
	Broken       Status = "error"
)

// The states of a server that does not run; of one that does, the state is
// the fleet's: starting, ready or stopping.
const (
	stateReady    = "ready"
	stateDormant  = "dormant"
	stateApproval = "waits for approval"
	stateNoImage  = "not resolved"
	stateUnknown  = "not in any catalog"
	stateFailed   = "failed"
)

// A Server is one whose tools can be found and called.
type Server struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	// ToolCount counts all tools, EnabledCount those that rules enable.
	ToolCount    int    `json:"toolCount"`
	EnabledCount int    `json:"enabledCount"`
	Status       Status `json:"status"`
	State        string `json:"state"`
	// StartsOnUse reports that it need not be connected to be called.
	StartsOnUse bool `json:"startsOnUse"`
	// Problem is why it cannot be used, or why its tools are those of an
	// earlier listing.
	Problem string `json:"problem,omitempty"`
}

// Servers returns the servers that a principal can use, by name. It starts
// nothing.
func (d *Desk) Servers(ctx context.Context, who principal.Principal) ([]Server, error) {
	shelf, err := d.shelf(ctx, who)
	if err != nil {
		return nil, err
	}
	running := make(map[string]string)
	for _, status := range d.Fleet.Running() {
		if running[status.Server] != stateReady {
			running[status.Server] = status.State
		}
	}
	servers := make([]Server, 0, len(shelf.stocks))
	for _, stock := range shelf.stocks {
		server := Server{
			Name: stock.Entry.Name, Title: stock.Entry.Title, Description: stock.Entry.Description,
			ToolCount: len(stock.Items), EnabledCount: stock.Enabled(), Status: Disconnected, StartsOnUse: true,
			Problem: stock.Offer.Stale,
		}
		var unknown *catalog.UnknownServerError
		state, runs := running[stock.Entry.Name]
		switch {
		case errors.As(stock.Unplanned, &unknown):
			server.State, server.Status, server.StartsOnUse = stateUnknown, Broken, false
		case plan.Unresolved(stock.Unplanned):
			server.State = stateNoImage
		case stock.Unplanned != nil:
			server.State, server.Status, server.StartsOnUse = stateFailed, Broken, false
			server.Problem = stock.Unplanned.Error()
		case runs:
			server.State = state
		case !stock.Approved:
			server.State = stateApproval
		default:
			server.State = stateDormant
			if problem := d.Caller.Failing(ctx, who, stock.Plan); problem != nil {
				server.State, server.Status, server.Problem = stateFailed, Broken, problem.Error()
			}
		}
		if server.State == stateReady {
			server.Status = Connected
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// said is the server in a line.
func (s Server) said() line {
	about := fmt.Sprintf("%d tools", s.EnabledCount)
	if s.EnabledCount == 1 {
		about = "1 tool"
	}
	switch s.State {
	case stateDormant, stateNoImage, stateReady:
	default:
		about += ", " + s.State
	}
	return line{fmt.Sprintf("%s (%s)", s.Name, about), s.Description}
}

func (d *Desk) listServers(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	if err := parse(listServers, arguments, &struct{}{}); err != nil {
		return nil, err
	}
	servers, err := d.Servers(ctx, client.Principal)
	if err != nil {
		return nil, err
	}
	lines := make([]line, len(servers))
	for i, server := range servers {
		lines[i] = server.said()
	}
	text := page("Each starts on use.", lines, roomFor(len(lines), leastRoom), "structuredContent has all")
	if len(servers) == 0 {
		text = "No server is active or approved yet. Find one with mcp_find and add it with mcp_add."
	}
	return reply(text, map[string]any{"servers": servers})
}
