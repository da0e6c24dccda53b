// Package consent gets a person's consent to what is not approved yet. It puts
// the question in front of whoever can be reached, and waits for an answer from
// wherever it comes.
//
// It decides who is asked, and how long a call waits. It refuses what a person
// has denied, and what nobody may be asked about. It guarantees that a question
// is in front of one person at a time, goes when it is decided elsewhere, and
// may be answered after the call that caused it has ended. It approves nothing by
// itself: answers become decisions of the [approval.Book].
package consent

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
)

// DefaultWait is how long a call waits for an answer before it is told that
// the question is pending.
const DefaultWait = 25 * time.Second

// askLimit is how long a person may take to answer.
const askLimit = 10 * time.Minute

// A Desk is where calls wait for a person. Its methods may be called at the
// same time. Close it when done.
type Desk struct {
	book *approval.Book
	log  *slog.Logger
	// run tells the sessions of this desk from those of others.
	run string

	mu     sync.Mutex
	open   map[string]*ask // what is in front of a person, by the digest of the question
	closed bool
	asks   sync.WaitGroup
}

// New returns a desk for what a book says. A nil logger discards.
func New(book *approval.Book, log *slog.Logger) *Desk {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Desk{book: book, log: log, run: rand.Text()[:12], open: make(map[string]*ask)}
}

// Close takes back the questions that are in front of a person and waits for
// them. They stay in the book.
func (d *Desk) Close() error {
	d.mu.Lock()
	d.closed = true
	for _, a := range d.open {
		a.cancel()
	}
	d.mu.Unlock()
	d.asks.Wait()
	return nil
}

var errDismissed = errors.New("the question was dismissed")

// An ask is a question that is in front of a person now.
type ask struct {
	cancel context.CancelFunc
	// ended is closed when the person is done with it; err is valid then.
	ended chan struct{}
	err   error
}

// ask puts a question in front of a person, or joins the one who has it. It
// returns nil if the person cannot be asked, and whether it was this person.
// The question stays there when ctx ends, because people answer later than
// clients wait; it goes when it is decided elsewhere or the desk is closed.
func (d *Desk) ask(ctx context.Context, q approval.Question, person Person) (current *ask, mine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if current := d.open[q.Digest]; current != nil {
		return current, false
	}
	if person.Ask == nil || d.closed {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	a := &ask{cancel: cancel, ended: make(chan struct{})}
	d.open[q.Digest] = a
	d.asks.Go(func() {
		defer cancel()
		a.err = d.answer(ctx, q, person)
		d.mu.Lock()
		delete(d.open, q.Digest)
		d.mu.Unlock()
		close(a.ended)
	})
	d.asks.Go(func() { d.withdraw(ctx, q.Digest, a) })
	return a, true
}

// asked returns the open ask of a question, or nil.
func (d *Desk) asked(digest string) *ask {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[digest]
}

func (d *Desk) answer(ctx context.Context, q approval.Question, person Person) error {
	reply, err := person.Ask(ctx, q)
	if err != nil {
		d.log.DebugContext(ctx, "ask person", "server", q.Server, "err", err)
		return err
	}
	if reply.Answer == approval.Dismiss {
		return errDismissed
	}
	err = d.book.Decide(context.WithoutCancel(ctx), q, approval.Decision{
		Answer: reply.Answer, Channel: reply.Channel, By: q.Principal, Expires: reply.Expires, ForSession: reply.ForSession,
	})
	var gone *approval.GoneError
	if err != nil && !errors.As(err, &gone) {
		d.log.ErrorContext(ctx, "keep decision", "server", q.Server, "err", err)
	}
	return err
}

// withdraw takes a question back once it is not pending any more.
func (d *Desk) withdraw(ctx context.Context, digest string, a *ask) {
	for {
		changed := d.book.Changed()
		if q, ok := d.book.Question(digest); !ok || q.Progress != approval.ProgressPending {
			a.cancel()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
