package meta

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/rules"
)

// A Listed is a tool in a list.
type Listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Enabled bool   `json:"enabled"`
	// Confirmed reports that a person confirms each call.
	Confirmed bool     `json:"confirmed,omitempty"`
	Tags      []string `json:"tags"`
}

// Listed returns a tool as lists show it.
func (i Item) Listed() Listed {
	return Listed{
		Name: i.Name, Summary: summary(i.described()), Enabled: i.Enabled(), Confirmed: i.Verdict == rules.Ask,
		Tags: append([]string{}, i.Tags...),
	}
}

// described returns the tool's description, or else its title.
func (i Item) described() string {
	if text := member(i.JSON, "description"); text != "" {
		return text
	}
	return i.title()
}

func (i Item) title() string {
	if text := member(i.JSON, "title"); text != "" {
		return text
	}
	return member(jsonrpc.Lookup(i.JSON, "annotations"), "title")
}

// member returns a member of an object that is text, or "".
func member(object json.RawMessage, name string) string {
	var text string
	if json.Unmarshal(jsonrpc.Lookup(object, name), &text) != nil {
		return ""
	}
	return text
}

func (d *Desk) listTools(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Server          *string `json:"server"`
		IncludeDisabled bool    `json:"includeDisabled"`
	}
	if err := parse(listTools, arguments, &input); err != nil {
		return nil, err
	}
	if input.Server == nil {
		return nil, missing(listTools, "server")
	}
	stock, err := d.Stock(ctx, client.Principal, *input.Server)
	if err != nil {
		return nil, err
	}
	tools := []Listed{}
	lines := []line{}
	for _, item := range stock.Items {
		if !item.Enabled() && !input.IncludeDisabled {
			continue
		}
		listed := item.Listed()
		tools = append(tools, listed)
		name := listed.Name
		if !listed.Enabled {
			name += " (disabled)"
		}
		lines = append(lines, line{name, listed.Summary})
	}
	enabled := stock.Enabled()
	head := fmt.Sprintf("%s, %d tools:", *input.Server, enabled)
	if disabled := len(stock.Items) - enabled; disabled > 0 {
		head = fmt.Sprintf("%s, %d tools, %d disabled:", *input.Server, enabled, disabled)
	}
	text := page(head, lines, roomFor(len(lines), leastToolsRoom), "structuredContent has all")
	if len(stock.Items) == 0 {
		text = *input.Server + " has not listed its tools yet: they are known once it was approved and has run. Make it ready with mcp_add."
	}
	return reply(text, map[string]any{"server": *input.Server, "tools": tools})
}
