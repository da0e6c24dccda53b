package call

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/tool"
	"github.com/dockgate/dockgate/internal/upstream"
)

// Offer returns what a planned server offered when it ran last; ok is false
// if it never ran with this plan.
func (c *Caller) Offer(ctx context.Context, made plan.Plan) (offer inventory.Offer, ok bool, err error) {
	spoken, err := c.Offers.Era(ctx, made.Spec.Program())
	if err != nil || spoken == "" {
		return inventory.Offer{}, false, err
	}
	return c.Offers.Offer(ctx, OfferKey(made, spoken))
}

// offered returns what the server of a call offers to the client.
func (c *Caller) offered(ctx context.Context, r Request, made plan.Plan) (inventory.Offer, error) {
	spoken, err := c.Offers.Era(ctx, made.Spec.Program())
	if err != nil || spoken == "" {
		return inventory.Offer{}, err
	}
	offer, _, err := c.Offers.Offer(ctx, r.offerKey(made, spoken))
	return offer, err
}

// Renewed returns when a planned server was last asked what it offers; zero if
// it never was.
func (c *Caller) Renewed(ctx context.Context, made plan.Plan) (time.Time, error) {
	offer, ok, err := c.Offer(ctx, made)
	if err != nil || !ok {
		return time.Time{}, err
	}
	spoken, err := c.Offers.Era(ctx, made.Spec.Program())
	if at := c.Offers.Renewed(OfferKey(made, spoken)); at.After(offer.Taken) {
		return at, err
	}
	return offer.Taken, err
}

// Preload reads what planned servers offered into memory, in one query.
func (c *Caller) Preload(ctx context.Context, plans map[string]plan.Plan) error {
	var wanted []inventory.Key
	for _, made := range plans {
		spoken, err := c.Offers.Era(ctx, made.Spec.Program())
		if err != nil {
			return err
		}
		if spoken != "" {
			wanted = append(wanted, OfferKey(made, spoken))
		}
	}
	return c.Offers.Load(ctx, wanted)
}

// told returns the capabilities that a server is told of for a call: its
// client's if the entry says so and its whole list is known, else all. What is
// listed are the tools for all.
func (c *Caller) told(ctx context.Context, r Request, made plan.Plan) string {
	if made.Entry.Isolation != catalog.PerCapabilities {
		return fleet.Capabilities
	}
	if _, known, err := c.Offer(ctx, made); err != nil || !known {
		return fleet.Capabilities
	}
	return era.AbilitiesOf(r.Capabilities).Capabilities()
}

func (r Request) offerKey(made plan.Plan, spoken string) inventory.Key {
	key := OfferKey(made, spoken)
	key.Capabilities = r.told
	return key
}

// OfferKey is what the offer of a planned server to any client is kept under.
func OfferKey(made plan.Plan, spoken string) inventory.Key {
	return inventory.Key{Spec: made.Digest, Capabilities: fleet.Capabilities, Era: spoken}
}

// listed keeps what a server offers and pins its tools: the first listing by
// the approval of the server, what is new or changed later by its own.
func (c *Caller) listed(ctx context.Context, r Request, made plan.Plan, info upstream.Info, offer upstream.Offer) error {
	for _, reason := range offer.Refused {
		c.Logger.WarnContext(ctx, "tool left out", "server", r.Server, "err", reason)
	}
	for _, reason := range offer.Missing {
		c.Logger.WarnContext(ctx, "list left out", "server", r.Server, "err", reason)
	}
	for _, list := range offer.Cut {
		c.Logger.WarnContext(ctx, "list is too long and was cut", "server", r.Server, "list", list)
	}
	tools := c.named(ctx, r, offer.Tools)
	held, err := c.Book.Pin(ctx, Question(r.Principal, made), tools)
	if err != nil {
		return err
	}
	for _, change := range held {
		c.Logger.InfoContext(ctx, "tool is held until it is approved", "server", r.Server, "tool", change.Name)
	}
	var instructions json.RawMessage
	if info.Instructions != "" {
		if instructions, err = json.Marshal(info.Instructions); err != nil {
			return err
		}
	}
	spoken, err := c.Offers.Era(ctx, made.Spec.Program()) // the fleet has just kept it
	if err != nil {
		return err
	}
	now := inventory.Offer{
		Tools:   inventory.NewTools(tools),
		Prompts: offer.Prompts, Resources: offer.Resources, Templates: offer.Templates,
		Capabilities: info.Capabilities, Info: info.Server, Instructions: instructions,
		Taken: time.Now(),
	}
	if r.told != fleet.Capabilities {
		if now, err = c.forAll(ctx, r, made, spoken, now); err != nil {
			return err
		}
	}
	_, err = c.Offers.Put(ctx, OfferKey(made, spoken), now)
	return err
}

// forAll keeps what a server offers to clients that cannot do everything, and
// returns what it offers to any.
func (c *Caller) forAll(ctx context.Context, r Request, made plan.Plan, spoken string, now inventory.Offer) (inventory.Offer, error) {
	before, _, err := c.Offers.Offer(ctx, r.offerKey(made, spoken))
	if err != nil {
		return now, err
	}
	all, _, err := c.Offers.Offer(ctx, OfferKey(made, spoken))
	if err != nil {
		return now, err
	}
	if _, err := c.Offers.Put(ctx, r.offerKey(made, spoken), now); err != nil {
		return now, err
	}
	return all.Revised(before, now), nil
}

// unlisted lets a server that cannot say what it offers go on with what it
// offered before, which is marked; without that it gives the reason back.
func (c *Caller) unlisted(ctx context.Context, r Request, made plan.Plan, reason error) error {
	spoken, err := c.Offers.Era(ctx, made.Spec.Program())
	if err != nil {
		return err
	}
	kept, err := c.Offers.Stale(ctx, r.offerKey(made, spoken), cut(reason.Error()))
	if err != nil || !kept {
		return cmp.Or(err, reason)
	}
	c.Logger.WarnContext(ctx, "keeping the old list", "server", r.Server, "err", reason)
	return nil
}

// named returns the tools without those that repeat a name: a name stands for
// one tool, the first.
func (c *Caller) named(ctx context.Context, r Request, listed []tool.Definition) []tool.Definition {
	seen := make(map[string]bool, len(listed))
	tools := make([]tool.Definition, 0, len(listed))
	for _, definition := range listed {
		if seen[definition.Name] {
			c.Logger.WarnContext(ctx, "tool left out, its name is taken", "server", r.Server, "tool", definition.Name)
			continue
		}
		seen[definition.Name] = true
		if era.NeedsTasks(definition.JSON) {
			c.Logger.WarnContext(ctx, "tool left out, it can be called as a task only", "server", r.Server, "tool", definition.Name)
			continue
		}
		tools = append(tools, definition)
	}
	return tools
}
