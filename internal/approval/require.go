package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/tool"
)

// DefaultWait is how long a call waits for an answer before it is told that
// the question is pending.
const DefaultWait = 25 * time.Second

// pendingFor and decidedFor are how long a question is kept.
const (
	pendingFor = 24 * time.Hour
	decidedFor = 30 * 24 * time.Hour
)

// A Request asks for the right to start a server.
type Request struct {
	Server  string
	Details Details
	Grant   sandbox.Grant
	// GrantDigest is Grant's digest where the caller has it; if it is empty,
	// it is computed.
	GrantDigest string
	Principal   principal.Principal
}

func (r Request) key() Key {
	if r.GrantDigest == "" {
		return Key{r.Server, r.Grant.Digest()}
	}
	return Key{r.Server, r.GrantDigest}
}

// Require returns nil once the grant is approved. If nobody decided yet, it
// records the question and asks the person, if that person can be asked here;
// at the same time it watches for an answer from another process. After wait
// it returns a [PendingError]; the person may still answer then, and the next
// call finds the answer. A denied grant is a [DeniedError].
//
// Calls that need the same grant share one question, in front of one person.
// [Book.Run] must be running for answers from other processes to be seen.
func (b *Book) Require(ctx context.Context, request Request, person Person, wait time.Duration) error {
	key := request.key()
	request.GrantDigest = key.GrantDigest
	verdict := b.CheckDigest(key)
	if verdict.State == Approved {
		return nil
	}
	matter := matter{
		server: request.Server,
		check:  func(s *snapshot) Verdict { return s.grant(key, b.options.Now()) },
		find: func(s *snapshot) *Question {
			q := newQuestion(request, Verdict{}, time.Time{})
			return s.questions[q.Digest]
		},
	}
	if err := b.refused(matter, verdict); err != nil {
		return err
	}
	var q Question
	err := b.change(ctx, func(s *snapshot) (Change, error) {
		verdict := s.grant(key, b.options.Now())
		if verdict.State == Approved || verdict.State == Denied {
			return Change{}, nil
		}
		q = newQuestion(request, verdict, b.now())
		if old := s.questions[q.Digest]; old != nil && old.Progress == ProgressPending {
			q = *old
			return Change{}, nil
		}
		return Change{PutQuestions: []Question{q}, DeleteQuestions: b.outdated(s)}, nil
	})
	if err != nil {
		return fmt.Errorf("ask for approval of %q: %w", request.Server, err)
	}
	if b.options.Mode == ModeAll && q.Digest != "" {
		return b.Decide(ctx, q, Decision{Answer: Approve, Channel: ChannelAll, By: request.Principal})
	}
	return b.await(ctx, matter, person, wait)
}

// RequireTool is [Book.Require] for a tool: it returns nil once the tool's
// definition is approved. A definition that Pin has not seen yet is compared
// first. It returns [ErrNotApproved] if the grant is not approved, and
// [ErrNotListed] if nothing was pinned yet.
func (b *Book) RequireTool(ctx context.Context, request Request, definition tool.Definition, person Person, wait time.Duration) error {
	key := request.key()
	request.GrantDigest = key.GrantDigest
	digest := definition.Digest()
	verdict := b.CheckTool(key, definition.Name, digest)
	if verdict.State == Approved {
		return nil
	}
	a := b.current.Load().approvals[key]
	switch {
	case a == nil || expired(a.Expires, b.options.Now()):
		return fmt.Errorf("tool %q of %q: %w", definition.Name, request.Server, ErrNotApproved)
	case a.Tools == nil:
		return fmt.Errorf("tool %q of %q: %w", definition.Name, request.Server, ErrNotListed)
	}
	matter := matter{
		server: request.Server, tool: definition.Name,
		check: func(s *snapshot) Verdict { return s.tool(key, definition.Name, digest, b.options.Now()) },
		find: func(s *snapshot) *Question {
			q := s.toolQuestion(key)
			if q != nil && q.holds(definition.Name, digest) {
				return q
			}
			return nil
		},
	}
	if err := b.refused(matter, verdict); err != nil {
		return err
	}
	if _, err := b.Pin(ctx, request, []tool.Definition{definition}); err != nil {
		return err
	}
	return b.await(ctx, matter, person, wait)
}

// outdated returns the questions that nobody will answer or look up any more.
func (b *Book) outdated(s *snapshot) []string {
	now := b.options.Now()
	var digests []string
	for _, q := range s.questions {
		if q.Progress == ProgressPending && now.Sub(q.Asked) > pendingFor ||
			q.Progress != ProgressPending && now.Sub(q.Decided) > decidedFor || q.stale(now) {
			digests = append(digests, q.Digest)
		}
	}
	return digests
}

// A matter is what somebody waits for.
type matter struct {
	server, tool string
	check        func(*snapshot) Verdict
	// find returns the question that decides it, or nil.
	find func(*snapshot) *Question
}

// refused returns the error for a verdict that waiting cannot change.
func (b *Book) refused(m matter, verdict Verdict) error {
	denied := &DeniedError{Server: m.server, Tool: m.tool}
	switch {
	case verdict.State == Denied:
		denied.ID, denied.Reason = verdict.Question, "the user denied it"
	case b.options.Mode == ModePinned:
		denied.Reason = "it is not approved, and this gateway never asks (approval mode pinned)"
	default:
		return nil
	}
	return denied
}

func (b *Book) await(ctx context.Context, m matter, person Person, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	asked := map[string]bool{}
	var pending *PendingError
	for {
		s := b.current.Load()
		verdict := m.check(s)
		if verdict.State == Approved {
			return nil
		}
		if err := b.refused(m, verdict); err != nil {
			return err
		}
		q := m.find(s)
		if q == nil || q.Progress != ProgressPending {
			// Approved and revoked, or replaced, between two looks: what is
			// asked now is for the next call to find.
			if pending == nil {
				pending = &PendingError{Server: m.server, Tool: m.tool}
			}
			return pending
		}
		pending = &PendingError{ID: q.ID, Server: m.server, Tool: m.tool, State: verdict.State}

		var ended <-chan struct{}
		var current *ask
		if !asked[q.Digest] {
			var mine bool
			current, mine = b.ask(ctx, *q, person)
			// Somebody else's person may fail to answer; ours is asked then.
			asked[q.Digest] = mine || current == nil
			if current == nil && person.Tell != nil {
				person.Tell(ctx, pending.Error())
			}
		} else {
			current = b.asked(q.Digest)
		}
		if current != nil {
			ended = current.ended
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return pending
		case <-s.replaced:
		case <-ended:
			if errors.Is(current.err, errDismissed) {
				return pending
			}
		}
	}
}
