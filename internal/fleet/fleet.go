// Package fleet decides which servers run. It starts one on its first call,
// lets the calls that follow share it, stops it when it has been idle, and
// starts it again after a crash.
//
// It refuses to start anything while it closes, a server that keeps failing
// before its back-off is over, and more servers at a time than their owner's
// quota. It guarantees that starting is done once however many ask, that a
// server stops by itself only between calls, that a call which never reached a
// server is tried once more, that what is started in advance is in nobody's
// way, and that after Close nothing that it started is left.
//
// It does not ask whether a server may run: who orders has asked.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A Runner starts containers, and reaches servers elsewhere: the one seam to
// the engine.
type Runner interface {
	// Start follows the contract of [sandbox.Process].
	Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error)
}

// Eras remembers which generation of the protocol a server speaks.
type Eras interface {
	// Era returns what was learned of a server, by [sandbox.Spec.Program], or "".
	Era(ctx context.Context, program string) (string, error)
	// PutEra keeps what was learned.
	PutEra(ctx context.Context, program, era string) error
}

// An Order says what to run, and for whom.
type Order struct {
	// Spec is complete but for the values of its secrets.
	Spec sandbox.Spec
	// Digest is Spec.Digest(), computed once by who orders.
	Digest string
	// Scope keeps containers of one server apart: empty shares one, else a
	// principal or a session.
	Scope string
	// Capabilities are what the server is told that its clients can do, as MCP
	// has it; empty is [Capabilities]. Servers that are told other things are
	// kept apart.
	Capabilities string
	// Era is the client's generation of the protocol; empty is legacy.
	Era upstream.Era
	// Both says that the server is known to speak either. It then has a
	// container for each generation that clients use.
	Both bool
	// Owner is the principal whose quota the server counts in.
	Owner string
	// Quota is the owner's; the zero Quota is that of the fleet.
	Quota Quota
	// Limits bound waiting; zero values are the defaults.
	Limits Limits
	// Listed is told what the server offers, after its start before any call
	// is let through, and again after each list_changed. An error ends a start.
	Listed func(ctx context.Context, info upstream.Info, offer upstream.Offer) error
	// Unlisted, if not nil, is told why what the server offers could not be
	// read. Nil lets the server go on with what it offered before; an error
	// ends a start.
	Unlisted func(ctx context.Context, info upstream.Info, reason error) error
	// Queued, if not nil, is told once if the server has to wait for a place.
	Queued func(reason *QuotaError)
	// From is the client that orders. What a server asks while all of its
	// calls are of one client is for that client.
	From From
	// Ask, if not nil, passes a request of the server on to that client, and
	// returns its answer. It is called while the order is under way only, and
	// its context ends with it. Params and answer pass as the bytes they are; a
	// [*jsonrpc.Error] does too.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// LogLevel is which log messages the client wants while it has a call;
	// empty is none. Log, if not nil, gets the params of each that comes
	// meanwhile, graver or not. It must not block.
	LogLevel string
	Log      func(params json.RawMessage)
	// Check, if not nil, is asked before a call is passed on to a server that
	// has listed, each time; its error is the call's.
	Check func(ctx context.Context) error

	lane int // see Fleet.lane
}

// From names a client: its principal, and its session.
type From struct {
	Principal, Session string
	// Call names the call if the protocol has no session that would tell the
	// programs of one principal apart.
	Call string
}

// key is where an order's instance is found. Callers who share a server may
// have different settings for it, and neither gets the other's: so what is
// shared is one server as it was started. A scope of its own has one server of
// each name, which other settings replace.
func (o Order) key() key {
	k := key{server: o.Spec.Server, scope: o.Scope, capabilities: o.capabilities()}
	if o.Scope == "" {
		k.digest = o.Digest
	}
	k.lane = o.lane
	if o.Both {
		k.era = o.era()
	}
	return k
}

func (o Order) capabilities() string { return cmp.Or(o.Capabilities, Capabilities) }

func (o Order) era() upstream.Era { return cmp.Or(o.Era, upstream.Legacy) }

type key struct {
	server, scope, capabilities, digest string
	era                                 upstream.Era
	lane                                int
}

// An Event is a change of a server's state that an audit records.
type Event struct {
	// Kind is "start", "start-failed", "stop" or "crash".
	Kind      string
	Server    string
	Scope     string
	Container string
	Image     string
	Duration  time.Duration
	// Err is why, for "start-failed" and "crash".
	Err error
}

// Options are what a Fleet needs. All but the quota are required.
type Options struct {
	Runner Runner
	Client upstream.Implementation
	Eras   Eras
	// Unlock returns the spec with the values of its secrets, just before a
	// start. Its error refuses the start and costs no back-off.
	Unlock func(ctx context.Context, spec sandbox.Spec) (sandbox.Spec, error)
	// Record is told of every start and stop. An error from it refuses the
	// start; one about a stop is logged.
	Record func(Event) error
	// Heard, if not nil, is told what servers notify that is not for one call
	// alone. It must not block.
	Heard func(Notice)
	// MaxEntries is how many entries of each kind a server may offer; see
	// [upstream.Options].
	MaxEntries int
	// Quota is each owner's. The zero Quota bounds nothing.
	Quota  Quota
	Logger *slog.Logger
}

// A Fleet holds the running servers. Its methods may be called from several
// goroutines.
type Fleet struct {
	opts Options

	mu        sync.Mutex
	closing   bool
	instances map[key]*instance
	replaced  map[*instance]struct{} // still in use, but another Spec took their place
	setbacks  map[suspect]setback
	watched   map[key]map[string]int // how many have subscribed to a resource, by its URI
	asking    map[string]bool        // servers of which each client gets one of its own
	both      map[string]bool        // images that speak either generation, by the digests of their pins
	queue     []*waiter              // for a place, in the order of their coming
	ahead     []Order                // to be started in advance
	advancing bool                   // somebody works on ahead
	lives     sync.WaitGroup
}

// New returns a Fleet in which nothing runs.
func New(opts Options) *Fleet {
	return &Fleet{
		opts:      opts,
		instances: make(map[key]*instance),
		replaced:  make(map[*instance]struct{}),
		setbacks:  make(map[suspect]setback),
		asking:    make(map[string]bool),
		both:      make(map[string]bool),
		watched:   make(map[key]map[string]int),
	}
}

// Call sends one request to the ordered server, starting it if need be, and
// returns the raw result. Progress, if not nil, gets the raw params of each
// progress notification before Call returns; the server is asked for progress
// in any case, because it is a sign of life.
//
// Errors: a *jsonrpc.Error is the server's own answer; *StartError,
// *BackoffError, *QuotaError, *LostError and *TimeoutError are ours; else it
// is ctx's. A server that has a call when ctx ends is told the cause.
func (f *Fleet) Call(ctx context.Context, order Order, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	result, delivered, err := f.call(ctx, order, method, params, progress)
	if err != nil && !delivered {
		result, _, err = f.call(ctx, order, method, params, progress)
	}
	return result, err
}

// Ready starts the ordered server if need be and waits until it has listed
// what it offers. Until the Hold is released the server does not stop by
// itself, nor make room for another.
func (f *Fleet) Ready(ctx context.Context, order Order) (*Hold, error) {
	i, err := f.acquire(ctx, order)
	if err != nil {
		return nil, err
	}
	hold := &Hold{fleet: f, instance: i}
	if order.Scope != "" { // what it asks at its start can only be for this client
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer i.alight(i.board(ctx, &order, nil))
	}
	if err := i.wait(ctx); err != nil {
		hold.Release()
		return nil, err
	}
	return hold, nil
}

// A Hold keeps a server that is ready.
type Hold struct {
	fleet    *Fleet
	instance *instance
	once     sync.Once
}

// Release gives the server free. It may be called more than once, and of nil.
func (h *Hold) Release() {
	if h != nil {
		h.once.Do(func() { h.fleet.release(h.instance) })
	}
}

// call makes one attempt; delivered is false if the server cannot have seen
// the request because it was gone by then.
func (f *Fleet) call(ctx context.Context, order Order, method string, params json.RawMessage, progress func(json.RawMessage)) (_ json.RawMessage, delivered bool, _ error) {
	i, err := f.acquire(ctx, order)
	if err != nil {
		return nil, true, err
	}
	defer f.release(i)
	if err := i.wait(ctx); err != nil {
		return nil, true, err
	}
	if order.Check != nil {
		if err := order.Check(ctx); err != nil {
			return nil, true, err
		}
	}
	f.tune(ctx, i, order.LogLevel)
	bounded := newDeadline(ctx, order.Spec.Server, order.Limits.withDefaults())
	defer bounded.stop()
	defer i.alight(i.board(bounded.ctx, &order, bounded))                               //nolint:contextcheck // it is ctx's child
	result, err := i.session.Call(bounded.ctx, method, params, bounded.watch(progress)) //nolint:contextcheck // it is ctx's child
	var answer *jsonrpc.Error
	var lost *upstream.LostError
	switch {
	case err == nil, errors.As(err, &answer):
		f.answered(i)
		return result, true, err
	case errors.As(err, &lost):
		f.lose(i)
		select {
		case <-i.done: // how it went is known then, and counts for the next start
			return nil, lost.Delivered, i.end
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
	case ctx.Err() != nil:
		f.abandoned(ctx, i)
		return nil, true, ctx.Err()
	case bounded.expired() != nil:
		f.abandoned(ctx, i)
		f.probe(ctx, i)
		return nil, true, bounded.expired()
	default:
		return nil, true, fmt.Errorf("server %q: %w", order.Spec.Server, err)
	}
}

// acquire returns the instance for an order, new or running, with one use
// more. It waits for a place if there is none. Release gives the use back.
func (f *Fleet) acquire(ctx context.Context, order Order) (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var w *waiter
	for {
		i, err := f.join(ctx, order, w)
		if err == nil && i == nil && w == nil {
			w, err = f.enqueue(order)
		}
		if i != nil || err != nil {
			f.dequeue(w)
			return i, err
		}
		if err := f.linger(ctx, w); err != nil {
			f.dequeue(w)
			return nil, err
		}
	}
}

// join returns the instance for an order with one use more, or nil if there
// is no place for it yet. f.mu is held.
func (f *Fleet) join(ctx context.Context, order Order, w *waiter) (*instance, error) {
	if f.closing {
		return nil, ErrClosed
	}
	order.Both = order.Both || f.both[order.Spec.Program()] // learned since it was made
	order.lane = f.lane(order)
	i := f.current(order)
	if i == nil || !i.users[order.Owner] {
		f.move(order)
	}
	if i == nil {
		if err := f.rested(order); err != nil {
			return nil, err
		}
		if err := f.fits(order); err != nil {
			return nil, err
		}
		if !f.turn(order, w) || !f.clear(order) {
			return nil, nil //nolint:nilnil // the two together say that there is no place yet
		}
		i = f.begin(ctx, order)
	}
	i.users[order.Owner] = true
	if i.uses == 0 {
		i.client = order.From
	}
	i.uses++
	f.settle(i)
	return i, nil
}

// move takes an owner off those instances of a server that were started with
// other settings than the owner has now. f.mu is held.
func (f *Fleet) move(order Order) {
	for _, other := range f.instances {
		if other.users[order.Owner] && other.at.sibling(order.key()) && other.at != order.key() {
			f.leave(other, order.Owner)
		}
	}
}

// leave takes an owner off those who use an instance, and the instance away if
// there is nobody left. f.mu is held.
func (f *Fleet) leave(i *instance, owner string) {
	delete(i.users, owner)
	if len(i.users) == 0 {
		f.replace(i)
	}
}

// sibling reports whether both are one server in one scope and lane, however
// started, and do not run beside each other for clients that differ in what
// they can do or in their era.
func (k key) sibling(other key) bool {
	return k.server == other.server && k.scope == other.scope && k.lane == other.lane && k.capabilities == other.capabilities && (k.era == other.era || k.era == "" || other.era == "")
}

// current returns the instance that serves an order, or nil; one that cannot
// is taken out of the way. f.mu is held.
func (f *Fleet) current(order Order) *instance {
	i := f.instances[order.key()]
	if i != nil && (i.leaving() || i.order.Digest != order.Digest || i.age() >= retireAge) {
		f.replace(i)
		return nil
	}
	return i
}

// begin starts a new instance. f.mu is held.
func (f *Fleet) begin(ctx context.Context, order Order) *instance {
	// Who ordered may leave; the start goes on for those who come after.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i := &instance{
		order: order, at: order.key(), users: map[string]bool{order.Owner: true}, limits: order.Limits.withDefaults(), cancel: cancel, born: time.Now(), used: time.Now(),
		started: make(chan struct{}), done: make(chan struct{}), relist: make(chan struct{}, 1), subscribed: make(chan struct{}, 1),
	}
	// Two containers of one server would write to the same mounts: the new one
	// waits for those that stop. One that still has calls is not waited for.
	for _, other := range f.all() {
		if other.at.sibling(order.key()) && other.leaving() {
			i.after = append(i.after, other.done)
		}
	}
	f.instances[order.key()] = i
	f.lives.Go(func() { f.live(ctx, i) })
	return i
}

func (f *Fleet) release(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.uses--
	i.used = time.Now()
	f.settle(i)
	f.stir()
}

// lose keeps an instance whose stream has ended from further calls.
func (f *Fleet) lose(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.lost = true
}

// Runs reports whether the ordered server is ready for a call.
func (f *Fleet) Runs(order Order) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.instances[order.key()]
	return i != nil && i.ready && !i.leaving() && i.order.Digest == order.Digest
}

// replace takes an instance out of the way of the next one; it ends when its
// last call has returned. f.mu is held.
func (f *Fleet) replace(i *instance) {
	delete(f.instances, i.at)
	f.replaced[i] = struct{}{}
	i.outdated = true
	f.settle(i)
}

// settle re-checks what must hold after every change of an instance, and is
// the only place that ends one by itself: not in use, and either outdated, or
// not watched and old, or idle for long enough, exactly once. f.mu is held.
func (f *Fleet) settle(i *instance) {
	switch {
	case i.ending:
	case i.uses > 0:
		i.disarm()
	case i.outdated:
		f.end(i)
	case len(f.watched[i.at]) > 0:
		i.disarm()
		i.overdue = false
	case i.overdue, i.age() >= renewAge:
		f.end(i)
	case i.ready && i.idle == nil:
		var timer *time.Timer
		timer = time.AfterFunc(i.unused(), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if i.idle == timer { // else a call came while this waited for the lock
				i.overdue = true
				f.settle(i)
			}
		})
		i.idle = timer
	}
}

// end tells an instance to stop, whoever uses it. f.mu is held.
func (f *Fleet) end(i *instance) {
	if !i.ending {
		i.ending = true
		i.disarm()
		i.cancel()
	}
}

// Stop ends the servers with this name, in every scope, and waits until they
// are gone. It reports how many there were. Their failures are forgotten.
func (f *Fleet) Stop(ctx context.Context, server string) (int, error) {
	return f.stop(ctx, key{server: server}, func(i *instance) bool { return i.order.Spec.Server == server })
}

// Leave ends the servers with this name that an owner has used and nobody
// else, and waits until they are gone. It reports how many there were.
func (f *Fleet) Leave(ctx context.Context, owner, server string) (int, error) {
	return f.stop(ctx, key{server: server}, func(i *instance) bool {
		if i.order.Spec.Server != server || !i.users[owner] {
			return false
		}
		delete(i.users, owner)
		return len(i.users) == 0
	})
}

// StopScope ends the servers of one scope, and waits until they are gone.
func (f *Fleet) StopScope(ctx context.Context, scope string) error {
	_, err := f.stop(ctx, key{scope: scope}, func(i *instance) bool { return i.order.Scope == scope })
	return err
}

// stop ends the instances that are chosen, and forgets the failures of the
// server, or the scope, that is named.
func (f *Fleet) stop(ctx context.Context, named key, chosen func(*instance) bool) (int, error) {
	f.mu.Lock()
	maps.DeleteFunc(f.setbacks, func(s suspect, _ setback) bool {
		return s.key.server == named.server || named.scope != "" && s.key.scope == named.scope
	})
	var ended []*instance
	for _, i := range f.all() {
		if chosen(i) {
			f.end(i)
			ended = append(ended, i)
		}
	}
	f.mu.Unlock()
	for _, i := range ended {
		select {
		case <-i.done:
		case <-ctx.Done():
			return len(ended), ctx.Err()
		}
	}
	return len(ended), nil
}

// all returns every instance. f.mu is held.
func (f *Fleet) all() []*instance {
	var all []*instance
	for _, i := range f.instances {
		all = append(all, i)
	}
	for i := range f.replaced {
		all = append(all, i)
	}
	return all
}

// Close ends every server and waits until nothing is left. It may be called
// more than once.
func (f *Fleet) Close() error {
	f.mu.Lock()
	f.closing = true
	for _, i := range f.all() {
		f.end(i)
	}
	f.stir()
	f.mu.Unlock()
	f.lives.Wait()
	return nil
}

// Digests returns the digests of the Specs that run.
func (f *Fleet) Digests() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	digests := make(map[string]bool)
	for _, i := range f.all() {
		digests[i.order.Digest] = true
	}
	return digests
}

// A Status describes a running server.
type Status struct {
	Server    string
	Scope     string
	Container string
	// State is "starting", "ready" or "stopping".
	State string
	// Calls are the calls in flight.
	Calls int
}

func (s Status) compare(other Status) int {
	return cmp.Or(cmp.Compare(s.Server, other.Server), cmp.Compare(s.Scope, other.Scope))
}

// Running describes the servers that run, by name and scope.
func (f *Fleet) Running() []Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	var running []Status
	for _, i := range f.all() {
		running = append(running, i.status())
	}
	slices.SortFunc(running, Status.compare)
	return running
}
