package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Mode is what happens to what nobody decided on.
type Mode string

// The modes. The zero value is [ModeAsk].
const (
	// ModeAsk records a question and asks a person.
	ModeAsk Mode = "ask"
	// ModeAll approves it, recorded under [ChannelAll].
	ModeAll Mode = "all"
	// ModePinned refuses it and records no question.
	ModePinned Mode = "pinned"
)

// ChannelAll is the channel of what [ModeAll] approved: nobody was asked.
const ChannelAll = "approve-all"

// Options configure a [Book].
type Options struct {
	// Mode is [ModeAsk] if empty.
	Mode Mode
	// Record is told every decision before it takes effect; its error refuses
	// the decision. A book without it can be read, and decides nothing.
	Record func(context.Context, Event) error
	// Now is time.Now if nil.
	Now func() time.Time
	// Poll is how often Run looks for what other processes decided; 250 ms if
	// zero.
	Poll time.Duration
	// Logger discards if nil.
	Logger *slog.Logger
}

// An Event is a decision, for the audit record.
type Event struct {
	Time   time.Time
	Action Action
	Server string
	// Question is empty for what was decided without one.
	Question    string
	GrantDigest string
	// Tools are the names of the tools that were decided on.
	Tools []string
	// Call is the digest of the arguments of the one call that was decided
	// on, and ForSession says that others of its session were with it.
	Call       string
	ForSession bool
	Channel    string
	By         string
}

// An Action is what a decision did.
type Action string

// The actions.
const (
	ActionApproved Action = "approved"
	ActionDenied   Action = "denied"
	ActionRevoked  Action = "revoked"
	// ActionPinned is the first listing after an approval.
	ActionPinned   Action = "pinned"
	ActionImported Action = "imported"
)

// A Book answers from memory what is approved, and keeps up with the store.
// Its methods may be called at the same time. What a method of this book
// changed, the next check of this book sees; what other processes change it
// sees while Run runs.
type Book struct {
	store   Store
	options Options
	// forgiven are the denials that were there when the book was opened: a
	// new gateway may ask again.
	forgiven map[string]time.Time
	current  atomic.Pointer[snapshot]
	// writing is held while current is read, changed and published.
	writing sync.Mutex
}

// Open reads the store.
func Open(ctx context.Context, store Store, options Options) (*Book, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Poll <= 0 {
		options.Poll = 250 * time.Millisecond
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	switch options.Mode {
	case "":
		options.Mode = ModeAsk
	case ModeAsk, ModeAll, ModePinned:
	default:
		return nil, fmt.Errorf("approval mode %q: want ask, all or pinned", options.Mode)
	}
	b := &Book{store: store, options: options, forgiven: map[string]time.Time{}}
	content, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	for _, q := range content.Questions {
		if q.Progress == ProgressDenied {
			b.forgiven[q.Digest] = q.Decided
		}
	}
	b.current.Store(index(content, nil, b.forgiven))
	return b, nil
}

// Run keeps the book up to date with what other processes decide, until ctx
// ends. A store that cannot be read is logged and tried again: until then the
// book answers what it knew.
func (b *Book) Run(ctx context.Context) error {
	ticker := time.NewTicker(b.options.Poll)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := b.Refresh(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			b.options.Logger.Error("read approvals", "err", err)
		}
		failing = err != nil
	}
}

// Refresh reads what other processes decided. Run does so on its own.
func (b *Book) Refresh(ctx context.Context) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	return b.refresh(ctx)
}

// refresh needs b.writing.
func (b *Book) refresh(ctx context.Context) error {
	before := b.current.Load()
	revision, err := b.store.Revision(ctx)
	if err != nil {
		return err
	}
	if revision == before.revision {
		return nil
	}
	content, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	b.publish(content)
	return nil
}

// publish needs b.writing.
func (b *Book) publish(content Content) {
	before := b.current.Load()
	b.current.Store(index(content, before, b.forgiven))
	close(before.replaced)
}

// change commits what decide makes of the newest content, after it has recorded
// the events of that. If another process was faster, decide is called again, but
// nothing is recorded twice.
func (b *Book) change(ctx context.Context, decide func(*snapshot) (Change, []Event, error)) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	recorded := false
	for {
		if err := b.refresh(ctx); err != nil {
			return fmt.Errorf("read approvals: %w", err)
		}
		now := b.current.Load()
		change, events, err := decide(now)
		if err != nil || change.empty() {
			return err
		}
		if !recorded {
			for _, event := range events {
				if err := b.options.Record(ctx, event); err != nil {
					return fmt.Errorf("record decision: %w", err)
				}
			}
			recorded = true
		}
		revision, err := b.store.Commit(ctx, now.revision, change)
		switch {
		case errors.Is(err, ErrConflict):
			continue
		case err != nil:
			return fmt.Errorf("write approvals: %w", err)
		}
		b.publish(now.content(change, revision))
		return nil
	}
}

// Check says whether a server may start with a grant.
func (b *Book) Check(key Key) Verdict {
	return b.current.Load().grant(key, b.options.Now())
}

// CheckTool says whether a tool of a server that runs under a grant may be
// called, given the digest of its definition. It approves only if the grant
// is still approved as well.
func (b *Book) CheckTool(key Key, name, digest string) Verdict {
	return b.current.Load().tool(key, name, digest, b.options.Now())
}

// Approvals returns all approvals, expired ones included, by server and age.
// They are not to be changed.
func (b *Book) Approvals() []Approval { return b.current.Load().sortedApprovals() }

// Questions returns the questions of the given progress, or all, oldest first.
// They are not to be changed.
func (b *Book) Questions(progress ...Progress) []Question {
	now := b.options.Now()
	return slices.DeleteFunc(b.current.Load().sortedQuestions(progress), func(q Question) bool { return q.stale(now) })
}

// now is the time of a decision, in the form in which it can be stored.
func (b *Book) now() time.Time { return b.options.Now().UTC().Round(0) }
