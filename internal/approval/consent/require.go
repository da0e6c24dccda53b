package consent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/tool"
)

// Require returns nil once the grant is approved. If nobody decided yet, it
// records the question and asks the person, if that person can be asked here;
// at the same time it watches for an answer from another process. After wait
// it returns a [PendingError]; the person may still answer then, and the next
// call finds the answer. A denied grant is a [DeniedError].
//
// Calls that need the same grant share one question, in front of one person.
// [approval.Book.Run] must be running for answers from other processes to be seen.
func (d *Desk) Require(ctx context.Context, request approval.Request, person Person, wait time.Duration) error {
	key := request.Key()
	request.GrantDigest = key.GrantDigest
	check := func() approval.Verdict { return d.book.Check(key) }
	verdict := check()
	if verdict.State == approval.Approved {
		return nil
	}
	matter := matter{server: request.Server, check: check}
	if err := d.refused(matter, verdict); err != nil {
		return err
	}
	q, err := d.book.Ask(ctx, request)
	if err != nil {
		return err
	}
	matter.find = func() (approval.Question, bool) { return d.book.Question(q.Digest) }
	return d.await(ctx, matter, person, wait)
}

// RequireTool is [Desk.Require] for a tool: it returns nil once the tool's
// definition is approved. A definition that Pin has not seen yet is compared
// first. It returns [approval.ErrNotApproved] if the grant is not approved, and
// [ErrNotListed] if nothing was pinned yet.
func (d *Desk) RequireTool(ctx context.Context, request approval.Request, definition tool.Definition, person Person, wait time.Duration) error {
	key := request.Key()
	request.GrantDigest = key.GrantDigest
	digest := definition.Digest()
	check := func() approval.Verdict { return d.book.CheckTool(key, definition.Name, digest) }
	verdict := check()
	switch {
	case verdict.State == approval.Approved:
		return nil
	case d.book.Check(key).State != approval.Approved:
		return fmt.Errorf("tool %q of %q: %w", definition.Name, request.Server, approval.ErrNotApproved)
	case !d.book.Listed(key):
		return fmt.Errorf("tool %q of %q: %w", definition.Name, request.Server, ErrNotListed)
	}
	matter := matter{
		server: request.Server, tool: definition.Name, check: check,
		find: func() (approval.Question, bool) { return d.book.ToolQuestion(key, definition.Name, digest) },
	}
	if err := d.refused(matter, verdict); err != nil {
		return err
	}
	if _, err := d.book.Pin(ctx, request, []tool.Definition{definition}); err != nil {
		return err
	}
	return d.await(ctx, matter, person, wait)
}

// A matter is what somebody waits for.
type matter struct {
	server, tool string
	check        func() approval.Verdict
	// find returns the question that decides it, if there is one.
	find func() (approval.Question, bool)
}

// refused returns the error for a verdict that waiting cannot change.
func (d *Desk) refused(m matter, verdict approval.Verdict) error {
	denied := &DeniedError{Server: m.server, Tool: m.tool}
	switch {
	case verdict.State == approval.Denied:
		denied.ID, denied.Reason = verdict.Question, "the user denied it"
	case d.book.Mode() == approval.ModePinned:
		denied.Reason = "it is not approved, and this gateway never asks (approval mode pinned)"
	default:
		return nil
	}
	return denied
}

func (d *Desk) await(ctx context.Context, m matter, person Person, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	asked := map[string]bool{}
	var pending *PendingError
	for {
		// In this order: what is decided between two looks, the later one sees.
		changed := d.book.Changed()
		q, found := m.find()
		verdict := m.check()
		if verdict.State == approval.Approved {
			return nil
		}
		if err := d.refused(m, verdict); err != nil {
			return err
		}
		if !found || q.Progress != approval.ProgressPending {
			// Approved and revoked, or replaced, between two looks: what is
			// asked now is for the next call to find.
			if pending == nil {
				pending = &PendingError{Server: m.server, Tool: m.tool}
			}
			return pending
		}
		pending = &PendingError{ID: q.ID, Server: m.server, Tool: m.tool, State: verdict.State}

		var current *ask
		if !asked[q.Digest] {
			var mine bool
			current, mine = d.ask(ctx, q, person)
			// Somebody else's person may fail to answer; ours is asked then.
			asked[q.Digest] = mine || current == nil
			if current == nil && person.Tell != nil {
				person.Tell(ctx, pending.Error())
			}
		} else {
			current = d.asked(q.Digest)
		}
		again, err := next(ctx, timer.C, changed, current)
		if err != nil {
			return err
		}
		if !again {
			return pending
		}
	}
}

// next waits for a change of the book, for the end of the wait, or until the
// person is done with what is in front of them; current is nil if that is
// nothing. It reports whether there is a reason to look again.
func next(ctx context.Context, wait <-chan time.Time, changed <-chan struct{}, current *ask) (again bool, err error) {
	var ended <-chan struct{}
	if current != nil {
		ended = current.ended
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-wait:
		return false, nil
	case <-changed:
		return true, nil
	case <-ended:
		return !errors.Is(current.err, errDismissed), nil
	}
}
