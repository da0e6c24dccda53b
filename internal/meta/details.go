package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/schema"
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
	Parameters []schema.Parameter `json:"parameters"`
	Examples   []Example          `json:"examples"`
	// InputSchema and OutputSchema are as the server sent them.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// An Example shows how a tool is called.
type Example struct {
	Description string `json:"description"`
	// Parameters are the arguments, an object.
	Parameters json.RawMessage `json:"parameters"`
	// Made reports that nobody wrote it: the values are placeholders.
	Made bool `json:"made,omitempty"`
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
	input := jsonrpc.Lookup(item.JSON, "inputSchema")
	if input == nil {
		input = json.RawMessage("{}")
	}
	details := Details{
		Server: server, Tool: name, Title: item.title(), Description: item.described(),
		Enabled: item.Enabled(), Confirmed: item.Verdict == rules.Ask, Tags: append([]string{}, item.Tags...),
		Parameters: schema.Parameters(input), InputSchema: input,
		OutputSchema: jsonrpc.Lookup(item.JSON, "outputSchema"), Annotations: jsonrpc.Lookup(item.JSON, "annotations"),
		Examples: examples(stock.Entry, name, input),
	}
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

// examples returns the examples of the catalog; without those the schema's;
// without those one that is made from the required parameters, and says so.
func examples(entry catalog.Server, tool string, input json.RawMessage) []Example {
	found := []Example{}
	for _, t := range entry.Tools {
		for _, example := range t.Examples {
			if t.Name == tool && example.Parameters != nil {
				found = append(found, Example{Description: example.Description, Parameters: example.Parameters})
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, example := range schema.Examples(input) {
		found = append(found, Example{Description: "From the tool's schema", Parameters: example})
	}
	if len(found) > 0 {
		return found
	}
	example := Example{Description: "Made from the required parameters: the values are placeholders", Made: true}
	var own bool
	if example.Parameters, own = schema.Instance(input); own {
		example.Description, example.Made = "From the tool's schema", false
	}
	return []Example{example}
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
		return call.Failure(call.Phrased(err, d.Phrase), tool.Ref{Server: *input.Server, Name: *input.Tool})
	}
	if d.Anticipate && details.Enabled {
		d.Caller.Warm(ctx, client, details.Server)
	}
	return reply(details.text(), details)
}
