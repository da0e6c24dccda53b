package call

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

// A DisabledError is a call of a tool that the rules disable.
type DisabledError struct {
	Server, Tool string
	// Why are the reasons, in sentences.
	Why []string
}

// Error gives the reasons.
func (e *DisabledError) Error() string {
	return fmt.Sprintf("tool %q of %q is disabled: %s", e.Tool, e.Server, strings.Join(e.Why, "; "))
}

// Code says what kind of failure it is.
func (e *DisabledError) Code() string { return CodeDisabled }

// Hint says where the rules are shown.
func (e *DisabledError) Hint() string {
	return fmt.Sprintf("the user can see every rule with: dockgate explain %s %s", e.Server, e.Tool)
}

// Decide says what the rules are for a caller and a tool of a server.
func (c *Caller) Decide(who principal.Principal, server string, definition tool.Definition) rules.Decision {
	return c.rules(who).Decide(server, definition)
}

// rules returns the rules that hold for a caller now.
func (c *Caller) rules(who principal.Principal) rules.Rules {
	if c.Rules == nil {
		return rules.Rules{}
	}
	return c.Rules(who)
}

// ruled refuses a call of a tool that the rules disable, before anything is
// pulled, asked or started for it. What the server does not have is left to
// be refused as that.
func (c *Caller) ruled(ctx context.Context, r Request) error {
	set := c.rules(r.Principal)
	if r.Method != methodCallTool || set.Empty() {
		return nil
	}
	definition, known := tool.Definition{Name: r.Item}, false
	if made, err := c.Planner.Plan(ctx, r.Principal, r.Server); err == nil {
		offer, listed, err := c.Offer(ctx, made)
		if err != nil {
			return err
		}
		if found, ok := offer.Tool(r.Item); ok {
			definition, known = found.Definition, true
		} else if listed {
			return nil
		}
	}
	if !known && set.ReadsClaims() {
		return nil // it is decided once the server has listed it
	}
	return allowed(set, r, definition)
}

// enabled refuses a call of a tool that the rules disable as its server lists
// it now, and returns why a person has to confirm it; "" if nobody has to.
func (c *Caller) enabled(ctx context.Context, r Request, made plan.Plan) (confirm string, err error) {
	set := c.rules(r.Principal)
	if r.Method != methodCallTool || set.Empty() {
		return "", nil
	}
	offer, err := c.offered(ctx, r, made)
	if err != nil {
		return "", err
	}
	listed, found := offer.Tool(r.Item)
	if !found {
		return "", c.unknownTool(r, offer.Tools)
	}
	if err := allowed(set, r, listed.Definition); err != nil {
		return "", err
	}
	if set.Decide(r.Server, listed.Definition).Verdict != rules.Ask {
		return "", nil
	}
	why := set.Explain(r.Server, listed.Definition).Why
	return why[len(why)-1], nil
}

// allowed refuses a call of a tool that the rules disable.
func allowed(set rules.Rules, r Request, definition tool.Definition) error {
	if set.Decide(r.Server, definition).Enabled() {
		return nil
	}
	return &DisabledError{Server: r.Server, Tool: r.Item, Why: set.Explain(r.Server, definition).Why}
}

// permitted returns nil once the tool is the one that was approved, the rules
// enable it and, if they say so, a person has confirmed this call. Where a
// person has to be asked, wait says how long they are waited for.
func (c *Caller) permitted(ctx context.Context, r Request, made plan.Plan, wait func() time.Duration) error {
	if err := c.pinned(ctx, r, made, wait); err != nil {
		return err
	}
	why, err := c.enabled(ctx, r, made)
	if err != nil || why == "" {
		return err
	}
	c.tell(r, "waiting for a person to confirm the call of "+r.Item)
	asked := approval.NewCall(r.Item, r.Arguments, r.Session, why)
	if err := c.desk.RequireCall(ctx, Question(r.Principal, made), asked, r.Person, wait()); err != nil {
		return err
	}
	// While the person thought, somebody may have taken the approval back.
	return c.pinned(ctx, r, made, func() time.Duration { return 0 })
}
