package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// maxFound is how many servers mcp_find returns.
const maxFound = 8

// A found server, as mcp_find reports it.
type found struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Source      string          `json:"source"`
	Installed   bool            `json:"installed"`
	Active      bool            `json:"active"`
	Unsupported string          `json:"unsupported,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"`
	// place is "remote" where somebody else runs it, else "local".
	place string
}

func (d *Desk) find(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Query string `json:"query"`
	}
	if err := parse(findServers, arguments, &input); err != nil {
		return nil, err
	}
	if strings.TrimSpace(input.Query) == "" {
		return nil, &ArgumentError{Tool: findServers, Problem: "query is empty"}
	}
	active, err := d.Activations.Active(ctx, client.Principal)
	if err != nil {
		return nil, err
	}
	servers := make([]found, 0, maxFound)
	lines := []string{}
	for _, name := range d.search(client.Principal, input.Query) {
		entry, err := d.Catalog().Server(name)
		if err != nil {
			return nil, err
		}
		known := true // a remote server has nothing to be pulled
		for _, source := range d.Planner.Sources(entry) {
			_, here, err := d.Planner.Images.Known(ctx, source)
			if err != nil {
				return nil, err
			}
			known = known && here
		}
		server := found{
			Name: name, Title: entry.Title, Description: entry.Description, Source: string(entry.Origin.Kind),
			Installed: known, Active: slices.Contains(active, name), Config: entry.Config,
			place: "local",
		}
		if entry.Remote != nil {
			server.place = "remote"
		}
		var unsupported *plan.UnsupportedError
		if errors.As(plan.Supported(entry), &unsupported) {
			server.Unsupported = unsupported.Reason
		}
		servers = append(servers, server)
		lines = append(lines, fmt.Sprintf("- %s (%s): %s", name, server.state(), entry.Description))
	}
	text := fmt.Sprintf("Found %d servers:\n%s", len(servers), strings.Join(lines, "\n"))
	if len(servers) == 1 {
		text = "Found 1 server:\n" + lines[0]
	}
	if len(servers) == 0 {
		text = "Found no servers. Try other words, or fewer."
	}
	return reply(text, map[string]any{"servers": servers})
}

// search returns the servers that fit best, of those that a caller may use.
func (d *Desk) search(who principal.Principal, query string) []string {
	for limit := maxFound; ; limit *= 4 {
		names := d.Find(query, limit)
		complete := len(names) < limit
		names = d.permitted(who, names)
		if complete || len(names) >= maxFound {
			return names[:min(len(names), maxFound)]
		}
	}
}

// permitted returns those of the servers that a caller may use.
func (d *Desk) permitted(who principal.Principal, servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return d.Caller.MayUse(who, name) != nil })
}

func (f found) state() string {
	switch {
	case f.Unsupported != "":
		return f.place + ", cannot be run: " + f.Unsupported
	case f.Active:
		return f.place + ", active"
	case f.place == "remote": // there is nothing to be installed
		return "remote, not active"
	case f.Installed:
		return "local, installed"
	default:
		return "local, not installed"
	}
}

func (d *Desk) add(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Name   string         `json:"name"`
		Config map[string]any `json:"config"`
	}
	if err := parse(addServer, arguments, &input); err != nil {
		return nil, err
	}
	request := call.Request{Client: client, Server: input.Name, Method: addServer, Arguments: arguments}
	if d.Caller.MayUse(client.Principal, input.Name) != nil {
		return nil, d.Caller.Ready(ctx, request) // refused there, and recorded
	}
	entry, err := d.Catalog().Server(input.Name)
	if err != nil {
		return nil, err
	}
	undo, before, err := d.undo(ctx, client, entry.Name)
	if err != nil {
		return nil, err
	}
	settings := input.Config
	if settings == nil {
		settings = before
	}
	if err := entry.CheckSettings(settings); err != nil {
		return nil, err
	}
	if err := d.Activations.Activate(ctx, client.Principal, entry.Name, settings); err != nil {
		return nil, err
	}
	d.Planner.Forget(entry.Name)
	defer d.Changed(ctx)
	err = d.Caller.Ready(ctx, request)
	var pending *consent.PendingError
	var waiting *call.WaitingError
	switch {
	case errors.As(err, &pending), errors.As(err, &waiting):
		return nil, err // it stays active: its tools appear when it is approved and there
	case err != nil:
		return nil, errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	d.Changed(ctx) // the answer has the names as they are listed
	return d.activated(ctx, client, entry)
}

// undo returns what puts a server back as it is now, and its settings.
func (d *Desk) undo(ctx context.Context, client call.Client, server string) (undo func(context.Context) error, settings map[string]any, err error) {
	active, err := d.Activations.Active(ctx, client.Principal)
	if err != nil {
		return nil, nil, err
	}
	settings, err = d.Planner.Settings.Settings(ctx, client.Principal, server)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		defer d.Planner.Forget(server)
		if slices.Contains(active, server) {
			return d.Activations.Activate(ctx, client.Principal, server, settings)
		}
		_, err := d.Activations.Deactivate(ctx, client.Principal, server)
		return err
	}, settings, nil
}

func (d *Desk) activated(ctx context.Context, client call.Client, entry catalog.Server) (json.RawMessage, error) {
	made, err := d.Planner.Plan(ctx, client.Principal, entry.Name)
	if err != nil {
		return nil, err
	}
	offer, _, err := d.Caller.Offer(ctx, made)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(offer.Tools))
	for _, t := range offer.Tools {
		if !d.Caller.Decide(client.Principal, entry.Name, t.Definition).Enabled() {
			continue
		}
		names = append(names, d.Names(tool.Ref{Server: entry.Name, Name: t.Name}))
	}
	slices.Sort(names)
	text := fmt.Sprintf("%s activated. Tools available:\n- %s", entry.Name, strings.Join(names, "\n- "))
	if len(names) == 0 {
		text = entry.Name + " activated. It has no tools."
	}
	return reply(text, map[string]any{"server": entry.Name, "tools": names})
}

func (d *Desk) remove(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Name string `json:"name"`
	}
	if err := parse(removeServer, arguments, &input); err != nil {
		return nil, err
	}
	was, err := d.Activations.Deactivate(ctx, client.Principal, input.Name)
	if err != nil {
		return nil, err
	}
	if !was {
		active, err := d.Activations.Active(ctx, client.Principal)
		if err != nil {
			return nil, err
		}
		return nil, &ArgumentError{
			Tool: removeServer, Problem: fmt.Sprintf("%q is not active; active: %s", input.Name, strings.Join(active, ", ")),
		}
	}
	d.Planner.Forget(input.Name)
	defer d.Changed(ctx)
	stopped, err := d.Fleet.Leave(ctx, client.Principal.ID, input.Name)
	if err != nil {
		return nil, err
	}
	return reply(input.Name+" removed.", map[string]any{"server": input.Name, "stopped": stopped})
}

func (d *Desk) active(ctx context.Context, client call.Client, _ json.RawMessage) (json.RawMessage, error) {
	names, err := d.Activations.Active(ctx, client.Principal)
	if err != nil {
		return nil, err
	}
	names = d.permitted(client.Principal, names)
	type server struct {
		Name  string `json:"name"`
		State string `json:"state"`
		Tools int    `json:"tools"`
		// Stale is why the tools are those of an earlier listing.
		Stale string `json:"stale,omitempty"`
	}
	servers := make([]server, 0, len(names))
	lines := make([]string, 0, len(names))
	for _, name := range names {
		state, offer := d.state(ctx, client.Principal, name)
		servers = append(servers, server{Name: name, State: state, Tools: len(offer.Tools), Stale: offer.Stale})
		line := fmt.Sprintf("- %s (%s, %d tools", name, state, len(offer.Tools))
		if offer.Stale != "" {
			line += ", as listed before: " + offer.Stale
		}
		lines = append(lines, line+")")
	}
	text := "No server is active. Find one with mcp_find."
	if len(lines) > 0 {
		text = "Active servers (they start on their first call):\n" + strings.Join(lines, "\n")
	}
	return reply(text, map[string]any{"servers": servers})
}

// state describes an active server in a word, and returns what it offered last.
func (d *Desk) state(ctx context.Context, who principal.Principal, server string) (string, inventory.Offer) {
	made, err := d.Planner.Plan(ctx, who, server)
	var unknown *catalog.UnknownServerError
	switch {
	case plan.Unresolved(err):
		return stateNoImage, inventory.Offer{}
	case errors.As(err, &unknown):
		return stateUnknown, inventory.Offer{}
	case err != nil:
		return "error: " + err.Error(), inventory.Offer{}
	}
	offer, _, err := d.Caller.Offer(ctx, made)
	if err != nil {
		d.Logger.WarnContext(ctx, "read offer", "server", server, "err", err)
	}
	for _, running := range d.Fleet.Running() {
		if running.Server == server {
			return running.State, offer
		}
	}
	if !d.Caller.Approved(made) {
		return stateApproval, offer
	}
	return stateDormant, offer
}
