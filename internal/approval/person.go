package approval

import (
	"context"
	"errors"
	"time"
)

// A Person is how the user can be reached from where a call comes: by a form
// in the client, at the terminal, or not at all. The zero value is nobody.
type Person struct {
	// Ask puts a question in front of the person and returns the answer. It
	// returns early when ctx ends, which also says that the question was
	// answered elsewhere. It may outlast the call that caused it. An error
	// leaves the question to other channels. If it is nil, the person cannot
	// be asked from here.
	Ask func(ctx context.Context, question Question) (Reply, error)
	// Tell shows a line of text: that an answer is awaited, and where to give
	// it. It is used where Ask is nil, and may be nil.
	Tell func(ctx context.Context, text string)
}

// A Reply is a person's answer, and how it was obtained.
type Reply struct {
	Answer Answer
	// Channel is required for [Approve] and [Deny].
	Channel string
	Expires time.Time
	// ForSession is an approval of all calls of the tool, see [Decision].
	ForSession bool
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
// clients wait; it goes when it is decided elsewhere or the book is closed.
func (b *Book) ask(ctx context.Context, q Question, person Person) (current *ask, mine bool) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if current := b.open[q.Digest]; current != nil {
		return current, false
	}
	if person.Ask == nil || b.closed {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.options.AskLimit)
	a := &ask{cancel: cancel, ended: make(chan struct{})}
	b.open[q.Digest] = a
	b.asks.Go(func() {
		defer cancel()
		a.err = b.answer(ctx, q, person)
		b.asking.Lock()
		delete(b.open, q.Digest)
		b.asking.Unlock()
		close(a.ended)
	})
	b.asks.Go(func() { b.withdraw(ctx, q.Digest, a) })
	return a, true
}

// asked returns the open ask of a question, or nil.
func (b *Book) asked(digest string) *ask {
	b.asking.Lock()
	defer b.asking.Unlock()
	return b.open[digest]
}

func (b *Book) answer(ctx context.Context, q Question, person Person) error {
	reply, err := person.Ask(ctx, q)
	if err != nil {
		b.options.Logger.DebugContext(ctx, "ask person", "server", q.Server, "err", err)
		return err
	}
	if reply.Answer == Dismiss {
		return errDismissed
	}
	err = b.Decide(context.WithoutCancel(ctx), q, Decision{
		Answer: reply.Answer, Channel: reply.Channel, By: q.Principal, Expires: reply.Expires, ForSession: reply.ForSession,
	})
	var gone *GoneError
	if err != nil && !errors.As(err, &gone) {
		b.options.Logger.ErrorContext(ctx, "keep decision", "server", q.Server, "err", err)
	}
	return err
}

// withdraw takes a question back once it is not pending any more.
func (b *Book) withdraw(ctx context.Context, digest string, a *ask) {
	for {
		s := b.current.Load()
		if q := s.questions[digest]; q == nil || q.Progress != ProgressPending {
			a.cancel()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.replaced:
		}
	}
}
