package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// namesRoom is how many tokens the names of servers have in a description.
const namesRoom = 100

// Described returns own tools as a principal sees them: with the names of the
// servers that are to be searched. Agents do not call a search that does not
// say what it searches.
func (d *Desk) Described(ctx context.Context, who principal.Principal, own []Tool) ([]Tool, error) {
	i := slices.IndexFunc(own, func(t Tool) bool { return t.Name == searchTools })
	if i < 0 {
		return own, nil
	}
	names, err := d.Enabled(ctx, who)
	if err != nil || len(names) == 0 {
		return own, err
	}
	var description string
	if err := json.Unmarshal(jsonrpc.Lookup(own[i].JSON, "description"), &description); err != nil {
		return nil, fmt.Errorf("own tool %q: %w", searchTools, err)
	}
	encoded, err := json.Marshal(description + " Servers: " + Names(names) + ".")
	if err != nil {
		return nil, err
	}
	described := slices.Clone(own)
	changed, err := jsonrpc.With(own[i].JSON, "description", encoded)
	described[i].Definition = tool.Definition{Name: searchTools, JSON: changed}
	return described, err
}

// Names joins the names of servers, and cuts what a description has no room
// for.
func Names(names []string) string {
	room, n := namesRoom, 0
	for ; n < len(names); n++ {
		if room -= cost(names[n]) + 1; room < 0 {
			break
		}
	}
	text := strings.Join(names[:n], ", ")
	if n < len(names) {
		text += fmt.Sprintf(" and %d more", len(names)-n)
	}
	return text
}

// Enabled returns the servers whose tools a principal can find and call: those
// that are active, those that are approved and those that are configured, by
// name.
func (d *Desk) Enabled(ctx context.Context, who principal.Principal) ([]string, error) {
	names, err := d.Activations.Active(ctx, who)
	if err != nil {
		return nil, err
	}
	servers := d.Catalog()
	for _, a := range d.Caller.Book.Approvals() {
		if _, err := servers.Server(a.Server); err == nil { // else it is in no catalog any more
			names = append(names, a.Server)
		}
	}
	if d.Configured != nil {
		names = append(names, d.Configured()...)
	}
	slices.Sort(names)
	return d.permitted(who, slices.Compact(names)), nil
}
