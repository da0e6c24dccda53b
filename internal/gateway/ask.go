package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/gateway/wire"
)

const channel = "elicitation"

// forSession is the answer that approves a call and all others of its tool in
// the session.
const forSession = "approve for this session"

// person is how the user behind a legacy client can be asked; behind a modern
// one the answer comes with the retry of the call, see park.go.
func (g *Gateway) person(connection *mcp.ServerSession) consent.Person {
	tell := func(ctx context.Context, text string) {
		g.Logger.InfoContext(ctx, "waiting for a person", "question", text)
	}
	if connection == nil {
		return consent.Person{Tell: tell}
	}
	hello := connection.InitializeParams()
	if hello == nil || era.IsModern(hello.ProtocolVersion) || !takesForms(hello.Capabilities) {
		return consent.Person{Tell: tell}
	}
	return consent.Person{Ask: func(ctx context.Context, question approval.Question) (consent.Reply, error) {
		asked, err := json.Marshal(form(question))
		if err != nil {
			return consent.Reply{}, err
		}
		answer, err := wire.Request(ctx, connection, era.Elicit, asked)
		if err != nil {
			return consent.Reply{}, err
		}
		return reply(answer)
	}}
}

func takesForms(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// form is a question as MCP elicitation. The decision is a field, so that no
// client approves by accepting an empty form.
func form(question approval.Question) *mcp.ElicitParams {
	answers, about := []string{"deny", "approve"}, fmt.Sprintf("May %s be used with these rights?", question.Server)
	if question.Kind == approval.KindCall {
		answers, about = append(answers, forSession), "May this call be made?"
	}
	return &mcp.ElicitParams{
		Mode:    "form",
		Message: "dockgate: " + strings.Join(question.Lines(), "\n"),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"decision": map[string]any{
					"type": "string", "title": "Decision", "enum": answers, "description": about,
				},
			},
			"required": []string{"decision"},
		},
	}
}

// reply reads the answer to a form. Closing it decides nothing.
func reply(raw json.RawMessage) (consent.Reply, error) {
	var answer mcp.ElicitResult
	if err := json.Unmarshal(raw, &answer); err != nil {
		return consent.Reply{}, fmt.Errorf("the answer to a form: %w", err)
	}
	switch {
	case answer.Action == "decline":
		return consent.Reply{Answer: approval.Deny, Channel: channel}, nil
	case answer.Action != "accept":
		return consent.Reply{Answer: approval.Dismiss}, nil
	}
	switch decision := answer.Content["decision"]; decision {
	case forSession:
		return consent.Reply{Answer: approval.Approve, Channel: channel, ForSession: true}, nil
	case "approve":
		return consent.Reply{Answer: approval.Approve, Channel: channel}, nil
	case "deny":
		return consent.Reply{Answer: approval.Deny, Channel: channel}, nil
	default:
		return consent.Reply{}, fmt.Errorf("the form came back with the decision %v", decision)
	}
}
