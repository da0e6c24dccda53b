// Package call is the way of a call. Whatever reaches a tool, a prompt or a
// resource of a server comes through [Caller.Do]: a direct call, execute_tool,
// the command line.
//
// In one place it asks whether the caller may use the server and whether rules
// disable the tool, plans the server, asks whether it is approved, asks whether
// the tool is the one that was approved, records the decision, denials
// included, and only then passes the request on. If the record fails the answer
// is a refusal. Arguments and results pass as the bytes they are.
package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/upstream"
)

// methodCallTool is the method whose items are tools, which alone are subject to
// rules and approved by themselves.
const methodCallTool = "tools/call"

// A Client is who calls, and how to reach them while the call lasts.
type Client struct {
	Principal principal.Principal
	// Session names the client's session, for the record and for servers of
	// which each session has its own.
	Session string
	// Call names the call where no session does: each may be another program's.
	Call string
	// Modern says that the client uses the generation of the protocol without
	// sessions. Rounds says that it answers by itself what a server of that
	// generation asks before it has a result.
	Modern, Rounds bool
	// Capabilities and LogLevel are what a server of that generation is told of
	// the client; nil and empty for nothing. A server of the other generation is
	// told of LogLevel alone, unless its containers are kept apart by what
	// clients can do.
	Capabilities json.RawMessage
	LogLevel     string
	// Log, if not nil, gets the params of a server's log messages during the
	// call. It must not block.
	Log func(json.RawMessage)
	// Ask, if not nil, passes a request of a server on to the client, and
	// returns its answer; see [fleet.Order].
	Ask func(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
	// Via is how the call came: "direct", "execute_tool", "command line".
	Via string
	// Person is how whoever may approve can be asked during this call.
	Person consent.Person
	// Progress is nil unless the client sent a token. It gets the params of
	// the server's progress notifications.
	Progress func(json.RawMessage)
	// Waiting is nil unless the client sent a token. It is told in words what
	// the call waits for before the server has it.
	Waiting func(text string)
	// ApprovalWait is how long a call waits for a person; zero is the Caller's.
	ApprovalWait time.Duration
}

// SessionScope is the scope of servers that belong to the client's session alone.
func (c Client) SessionScope() string { return c.Principal.ID + "/" + c.Session }

func (c Client) from() fleet.From {
	return fleet.From{Principal: c.Principal.ID, Session: c.Session, Call: c.Call}
}

// A Request is one call.
type Request struct {
	Client
	Server string
	// Method is the MCP method: tools/call, prompts/get, resources/read, …
	Method string
	// Item is the tool's or prompt's own name, or the resource's URI.
	Item string
	// Params are the method's params for the server, with its own names.
	Params json.RawMessage
	// Arguments are the part of Params whose digest is recorded.
	Arguments json.RawMessage

	until time.Time // the end of the client's patience; zero is none
	told  string    // the capabilities that the server is told of; "" if not decided yet
}

// Options are what a Caller needs. What has no default is required.
type Options struct {
	Planner *plan.Planner
	Book    *approval.Book
	Record  Recorder
	Fleet   *fleet.Fleet
	Offers  *inventory.Inventory
	// ApprovalWait is how long a call waits for a person.
	ApprovalWait time.Duration
	Logger       *slog.Logger
	// Patience is how long a call without a progress token takes at most; zero
	// is [DefaultPatience].
	Patience time.Duration
	// MaxCall is how long any call takes at most, once its server has it; zero
	// means no bound.
	MaxCall time.Duration
	// Rules returns the tool rules that hold for a caller now; nil means none.
	Rules func(who principal.Principal) rules.Rules
	// Permit refuses a server that a caller's role does not have; nil refuses
	// none.
	Permit func(who principal.Principal, server string) error
	// Approver reports whether a caller may answer, through their client, what a
	// person is asked about a server; nil means that everybody may.
	Approver func(who principal.Principal) bool
	// Bound returns the quota of a caller, and what takes the place of MaxCall;
	// nil means that nobody has bounds of their own.
	Bound func(who principal.Principal) (fleet.Quota, time.Duration)
}

// A Caller passes calls on. Its methods may be called from several goroutines.
type Caller struct {
	Options
	desk  *consent.Desk
	pulls pulls
}

// New returns a Caller; Close ends it.
func New(o Options) *Caller {
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	return &Caller{Options: o, desk: consent.New(o.Book, o.Logger)}
}

// Do makes one call and returns the server's raw result.
//
// Errors: a *jsonrpc.Error is the server's own; *consent.PendingError and
// *consent.DeniedError say that a person has to act or has refused;
// *WaitingError that a pull or a start takes longer than clients wait;
// *PatienceError that the call itself does; *UnknownItemError that the server
// does not have the item; *DisabledError that the rules disable the tool;
// *access.DeniedError and *access.RoleError that the caller's role does not have
// the server; *RecordError that the call was refused, or its answer withheld,
// because it could not be recorded. Others are the planner's, the engine's and
// the fleet's.
func (c *Caller) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	return c.pass(ctx, r, c.exchange)
}

// pass passes a request on to its server, if it may have it, and records both
// that and how it ended. Send gets a context that ends with the client's
// patience.
func (c *Caller) pass(ctx context.Context, r Request, send func(context.Context, fleet.Order, Request) (json.RawMessage, error)) (json.RawMessage, error) {
	began := time.Now()
	patient, r, stop := c.patient(ctx, r)
	defer stop()
	order, hold, err := c.admit(ctx, patient, r)
	defer hold.Release()
	if err := cmp.Or(c.decided(r, order, err), err); err != nil {
		return nil, err
	}
	result, err := send(patient, order, r)
	err = impatient(patient, err)
	if err := c.answered(r, result, err, time.Since(began)); err != nil {
		return nil, err
	}
	return result, err
}

// Subscribe subscribes to a resource: Item is its URI. It goes the way of
// every call, and its errors are those of [Caller.Do].
func (c *Caller) Subscribe(ctx context.Context, r Request) (*fleet.Subscription, error) {
	var subscription *fleet.Subscription
	_, err := c.pass(ctx, r, func(ctx context.Context, order fleet.Order, r Request) (_ json.RawMessage, err error) {
		subscription, err = c.Fleet.Subscribe(ctx, order, r.Item)
		return nil, err
	})
	if err != nil {
		subscription.Close(context.WithoutCancel(ctx)) // it was made, but not recorded
		return nil, err
	}
	return subscription, nil
}

// CallTool makes a tools/call of params that have only a name and arguments.
func (c *Caller) CallTool(ctx context.Context, client Client, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	name, err := json.Marshal(tool)
	if err != nil {
		return nil, err
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := slices.Concat([]byte(`{"name":`), name, []byte(`,"arguments":`), arguments, []byte("}"))
	return c.Do(ctx, Request{
		Client: client, Server: server, Method: methodCallTool, Item: tool, Params: params, Arguments: arguments,
	})
}

// MayUse returns nil if a caller may use a server, whether it is approved
// or not, else why not.
func (c *Caller) MayUse(who principal.Principal, server string) error {
	if c.Permit == nil {
		return nil
	}
	return c.Permit(who, server)
}

// Approved reports whether a planned server may start.
func (c *Caller) Approved(made plan.Plan) bool {
	key := approval.Key{Server: made.Entry.Name, GrantDigest: made.GrantDigest}
	return c.Book.Check(key).State == approval.Approved
}

// Ready makes a server ready for calls without making one, with the same
// approval: it is what mcp_add does.
func (c *Caller) Ready(ctx context.Context, r Request) error {
	patient, r, stop := c.patient(ctx, r)
	defer stop()
	_, hold, err := c.admit(ctx, patient, r)
	hold.Release()
	if err == nil {
		return nil
	}
	return cmp.Or(c.decided(r, fleet.Order{}, err), err)
}

// Warm starts a server in the background, if it is approved, its image was
// resolved and there is a place that nobody else needs. It is for what is
// likely to be called soon.
func (c *Caller) Warm(ctx context.Context, client Client, server string) {
	if !client.Principal.Known() || c.MayUse(client.Principal, server) != nil {
		return
	}
	made, err := c.Planner.Plan(ctx, client.Principal, server)
	if err != nil {
		c.Logger.DebugContext(ctx, "server cannot be started in advance", "server", server, "err", err)
		return
	}
	if c.Approved(made) {
		r := Request{Client: Client{Principal: client.Principal, Session: client.Session, Modern: client.Modern}, Server: server}
		c.Fleet.Warm(c.order(ctx, r, made)) //nolint:contextcheck // it goes on when who asked has left
	}
}

// Failing returns why a planned server cannot be started now, after it has
// failed; nil if it can.
func (c *Caller) Failing(ctx context.Context, who principal.Principal, made plan.Plan) error {
	if !c.Fleet.Failed(made.Entry.Name) { // an order of each server of a long list takes long
		return nil
	}
	return c.Fleet.Rested(c.order(ctx, Request{Client: Client{Principal: who}, Server: made.Entry.Name}, made))
}

// admit brings a call to the point where the server may have it. If the server
// had to be started, hold keeps it from being stopped until the call is made.
func (c *Caller) admit(ctx, patient context.Context, r Request) (order fleet.Order, hold *fleet.Hold, err error) {
	if !r.Principal.Known() {
		return order, nil, ErrNobody
	}
	if err := c.MayUse(r.Principal, r.Server); err != nil {
		return order, nil, err
	}
	if err := c.ruled(ctx, r); err != nil {
		return order, nil, err
	}
	made, err := c.present(patient, r)
	if err != nil {
		return order, nil, err
	}
	if err := c.approved(ctx, r, made); err != nil {
		return order, nil, err
	}
	r.told = c.told(ctx, r, made)
	order = c.order(ctx, r, made)
	if !c.Fleet.Runs(order) {
		if err := c.known(ctx, r, made); err != nil {
			return order, nil, err
		}
		c.tell(r, fmt.Sprintf("starting %s", r.Server))
		if hold, err = c.Fleet.Ready(patient, order); err != nil {
			return order, nil, waiting(r, "starting", err)
		}
	}
	// A place is not kept while a person thinks.
	return order, hold, c.permitted(ctx, r, made, func() time.Duration { hold.Release(); return c.wait(r) })
}

// present returns the plan of a server whose image is there: at once when the
// server runs, else after a look at the engine, else after a pull.
func (c *Caller) present(ctx context.Context, r Request) (plan.Plan, error) {
	made, err := c.Planner.Plan(ctx, r.Principal, r.Server)
	if err == nil && c.Fleet.Runs(c.order(ctx, r, made)) {
		return made, nil
	}
	if err != nil && !plan.Unresolved(err) {
		return plan.Plan{}, err
	}
	if err := c.pull(ctx, r); err != nil {
		return plan.Plan{}, err
	}
	return c.Planner.Plan(ctx, r.Principal, r.Server)
}

// order describes a call to the fleet.
func (c *Caller) order(ctx context.Context, r Request, made plan.Plan) fleet.Order {
	if r.told == "" {
		r.told = c.told(ctx, r, made)
	}
	order := fleet.Order{
		Spec: made.Spec, Digest: made.Digest, Owner: r.Principal.ID, From: r.from(), Era: r.era(), Capabilities: r.told,
		Limits: fleet.Limits{
			Start: made.Entry.Timeouts.Start, List: made.Entry.Timeouts.List, Idle: made.Entry.Timeouts.Idle,
			Call: made.Entry.Timeouts.Call, CallMax: made.Entry.Timeouts.CallMax, MaxCall: c.MaxCall,
		},
		Queued: func(*fleet.QuotaError) { c.tell(r, "waiting for a place to start "+r.Server) },
	}
	if c.Bound != nil {
		order.Quota, order.Limits.MaxCall = c.Bound(r.Principal)
	}
	if spoken, err := c.Offers.Era(ctx, made.Spec.Program()); err == nil && spoken == fleet.Both {
		order.Both = true
	}
	switch made.Entry.Isolation {
	case catalog.PerPrincipal:
		order.Scope = r.Principal.ID
	case catalog.PerSession:
		order.Scope = r.SessionScope()
	case catalog.Shared, catalog.PerCapabilities:
	}
	if c.Fleet.Asks(r.Server) { // nobody could know whom it means
		order.Scope = r.SessionScope()
	}
	order.LogLevel, order.Log = r.LogLevel, r.Log
	if r.Ask != nil {
		order.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			return r.Ask(ctx, r.Server, method, params)
		}
	}
	order.Listed = func(ctx context.Context, info upstream.Info, offer upstream.Offer) error {
		return c.listed(ctx, r, made, info, offer)
	}
	order.Unlisted = func(ctx context.Context, _ upstream.Info, reason error) error {
		return c.unlisted(ctx, r, made, reason)
	}
	// The server may have been started anew since, and may list other tools.
	order.Check = func(ctx context.Context) error {
		err := c.pinned(ctx, r, made, func() time.Duration { return 0 })
		if err == nil {
			_, err = c.enabled(ctx, r, made)
		}
		return err
	}
	return order
}

func (c Client) era() upstream.Era {
	if c.Modern {
		return upstream.Modern
	}
	return upstream.Legacy
}

// tell says what a call waits for, if the client wants to know.
func (c *Caller) tell(r Request, text string) {
	if r.Waiting != nil {
		r.Waiting(text)
	}
}

// Close takes back what a person is asked and gives up pulls that still go on
// after their callers have left, and waits for their end.
func (c *Caller) Close() error {
	c.pulls.close()
	return c.desk.Close()
}
