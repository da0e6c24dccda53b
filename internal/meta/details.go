package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// Details are all that is known of a tool.
type Details struct {
	Server      string   `json:"server"`
	Tool        string   `json:"tool"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Enabled     bool     `json:"enabled"`
	Confirmed   bool     `json:"confirmed,omitempty"`
	Tags        []string `json:"tags"`
	// Parameters are the schema's outermost, those that are required first.
	Parameters []Parameter `json:"parameters"`
	Examples   []Example   `json:"examples"`
	// InputSchema and OutputSchema are as the server sent them.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// A Parameter is one of a tool's arguments.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`

	schema json.RawMessage
}

// Details returns what is known of a tool, a disabled one too. An unknown one
// is a [*call.UnknownItemError].
func (d *Desk) Details(ctx context.Context, who principal.Principal, server, name string) (Details, error) {
	stock, err := d.Stock(ctx, who, server)
	if err != nil {
		return Details{}, err
	}
	item, ok := stock.Item(name)
	if !ok {
		return Details{}, stock.unknown(name)
	}
	schema := jsonrpc.Lookup(item.JSON, "inputSchema")
	if schema == nil {
		schema = json.RawMessage("{}")
	}
	details := Details{
		Server: server, Tool: name, Title: item.title(), Description: item.described(),
		Enabled: item.Enabled(), Confirmed: item.Verdict == rules.Ask, Tags: append([]string{}, item.Tags...),
		Parameters: parameters(schema), InputSchema: schema,
		OutputSchema: jsonrpc.Lookup(item.JSON, "outputSchema"), Annotations: jsonrpc.Lookup(item.JSON, "annotations"),
	}
	details.Examples = examples(stock.Entry, details)
	return details, nil
}

// unknown is the answer to a name that no enabled tool has.
func (s Stock) unknown(name string) error {
	var names []string
	for _, item := range s.Items {
		if item.Enabled() {
			names = append(names, item.Name)
		}
	}
	return call.UnknownTool(s.Entry.Name, name, names)
}

// parameters returns the outermost properties of a schema: the required ones
// and then the others, each in the order in which the schema has them.
func parameters(schema json.RawMessage) []Parameter {
	var required []string
	_ = json.Unmarshal(jsonrpc.Lookup(schema, "required"), &required) //nolint:errcheck // what is no list requires nothing
	found := []Parameter{}
	for name, property := range properties(schema) {
		property := resolve(schema, property)
		found = append(found, Parameter{
			Name: name, Type: typeOf(schema, property), Description: oneLine(member(property, "description")),
			Required: slices.Contains(required, name), schema: property,
		})
	}
	slices.SortStableFunc(found, func(a, b Parameter) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return found
}

// text is the details as a model reads them: how the tool is called, whole,
// and as much of what it does as there is room for.
func (d Details) text() string {
	room := detailsRoom
	signature := d.signature()
	notes := ""
	if !d.Enabled {
		notes = "\nDisabled by tool rules."
	}
	if d.Confirmed {
		notes = "\nThe user confirms each call."
	}
	room -= cost(signature) + cost(notes) + 14 // for saying that it is cut
	about := cutTo(oneLine(d.Description), max(room*2/3, 12))
	cut := about != oneLine(d.Description)
	room -= cost(about)
	var b strings.Builder
	b.WriteString(signature)
	if about != "" {
		b.WriteString("\n" + about)
	}
	for _, p := range d.Parameters {
		if p.Description == "" {
			continue
		}
		told := p.Name + ": " + p.Description
		if cost(told)+1 > room {
			told = cutTo(told, room-1)
			cut = true
		}
		if told == "" || !strings.HasPrefix(told, p.Name+": ") {
			break
		}
		b.WriteString("\n" + told)
		room -= cost(told) + 1
	}
	if len(d.Examples) > 0 && len(d.Parameters) > 0 {
		if example := "\nExample: " + string(d.Examples[0].Parameters); cost(example) <= room {
			b.WriteString(example)
		}
	}
	b.WriteString(notes)
	if cut {
		b.WriteString("\n(cut; structuredContent has all)")
	}
	return b.String()
}

// maxSignature is how many tokens the parameters have in a text.
const maxSignature = 300

// signature is how the tool is called: "create_issue(repo: string, body?: string)".
func (d Details) signature() string {
	var words []string
	room := maxSignature
	for i, p := range d.Parameters {
		mark := "?"
		if p.Required {
			mark = ""
		}
		word := p.Name + mark + ": " + p.Type
		if room -= cost(word) + 1; room < 0 {
			words = append(words, fmt.Sprintf("… %d more in structuredContent", len(d.Parameters)-i))
			break
		}
		words = append(words, word)
	}
	return d.Tool + "(" + strings.Join(words, ", ") + ")"
}

func (d *Desk) toolDetails(ctx context.Context, client call.Client, arguments json.RawMessage) (json.RawMessage, error) {
	var input struct {
		Server *string `json:"server"`
		Tool   *string `json:"tool"`
	}
	if err := parse(toolDetails, arguments, &input); err != nil {
		return nil, err
	}
	switch {
	case input.Server == nil:
		return nil, missing(toolDetails, "server")
	case input.Tool == nil:
		return nil, missing(toolDetails, "tool")
	}
	details, err := d.Details(ctx, client.Principal, *input.Server, *input.Tool)
	if err != nil {
		return call.Failure(err, tool.Ref{Server: *input.Server, Name: *input.Tool})
	}
	if d.Anticipate && details.Enabled {
		d.Caller.Warm(ctx, client, details.Server)
	}
	return reply(details.text(), details)
}
