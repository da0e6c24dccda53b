package call

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/tool"
)

// Question returns what a person is asked before a planned server may start.
func Question(who principal.Principal, made plan.Plan) approval.Request {
	return approval.Request{
		Server: made.Entry.Name, Grant: made.Grant, GrantDigest: made.GrantDigest, Principal: who,
		Details: approval.Details{Title: made.Entry.Title, Description: made.Entry.Description, Origin: made.Entry.Origin},
	}
}

// approved returns nil once the server may start with its grant.
func (c *Caller) approved(ctx context.Context, r Request, made plan.Plan) error {
	if c.Approved(made) {
		return nil
	}
	c.tell(r, "waiting for the approval of "+r.Server)
	return c.desk.Require(ctx, Question(r.Principal, made), c.approver(r), c.wait(r))
}

// approver is who is asked during a call: the caller, if they may approve, or
// else whoever runs "dockgate approve" meanwhile.
func (c *Caller) approver(r Request) consent.Person {
	if c.Approver == nil || c.Approver(r.Principal) {
		return r.Person
	}
	return consent.Person{Tell: r.Person.Tell}
}

// wait is how long a person is waited for: not longer than the client waits.
func (c *Caller) wait(r Request) time.Duration {
	wait := cmp.Or(r.ApprovalWait, c.ApprovalWait)
	if r.until.IsZero() {
		return wait
	}
	return min(wait, time.Until(r.until))
}

// known refuses a call for a tool that the server did not have when it ran
// last, so that a typo starts nothing.
func (c *Caller) known(ctx context.Context, r Request, made plan.Plan) error {
	if r.Method != methodCallTool {
		return nil
	}
	offer, ok, err := c.Offer(ctx, made)
	if err != nil || !ok {
		return err
	}
	if _, found := offer.Tool(r.Item); !found {
		return c.unknownTool(r, offer.Tools)
	}
	return nil
}

// pinned returns nil once the tool is the one that was approved. If a person
// has to be asked, wait says how long they are waited for.
func (c *Caller) pinned(ctx context.Context, r Request, made plan.Plan, wait func() time.Duration) error {
	if r.Method != methodCallTool {
		return nil
	}
	offer, err := c.offered(ctx, r, made)
	if err != nil {
		return err
	}
	listed, found := offer.Tool(r.Item)
	if !found {
		return c.unknownTool(r, offer.Tools)
	}
	key := approval.Key{Server: r.Server, GrantDigest: made.GrantDigest}
	if c.Book.CheckTool(key, r.Item, listed.Pin).State == approval.Approved {
		return nil
	}
	c.tell(r, "waiting for the approval of the tool "+r.Item)
	patience := wait()
	err = c.desk.RequireTool(ctx, Question(r.Principal, made), listed.Definition, c.approver(r), patience)
	if !errors.Is(err, consent.ErrNotListed) {
		return err
	}
	// The server was approved anew while it ran: what it listed then is the
	// first listing under this approval.
	definitions := make([]tool.Definition, len(offer.Tools))
	for i, t := range offer.Tools {
		definitions[i] = t.Definition
	}
	if _, err := c.Book.Pin(ctx, Question(r.Principal, made), definitions); err != nil {
		return err
	}
	return c.desk.RequireTool(ctx, Question(r.Principal, made), listed.Definition, c.approver(r), patience)
}

// unknownTool names the tools that there are, as far as rules enable them.
func (c *Caller) unknownTool(r Request, tools []inventory.Tool) error {
	set := c.rules(r.Principal)
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		if set.Decide(r.Server, t.Definition).Enabled() {
			names = append(names, t.Name)
		}
	}
	return UnknownTool(r.Server, r.Item, names)
}
