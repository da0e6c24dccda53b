package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
)

// A Decision is what somebody decided, and how it was obtained.
type Decision struct {
	Answer Answer
	// Channel is required: "terminal", "elicitation", "file", …
	Channel string
	By      principal.Principal
	// Expires limits an approval; zero is none.
	Expires time.Time
	// ForSession approves, with a call, all others of its tool in its session.
	ForSession bool
}

// An Answer is what a person said to a question.
type Answer int

// The answers. The zero value decides nothing.
const (
	// Dismiss closes the question and leaves it pending.
	Dismiss Answer = iota
	Approve
	Deny
)

var (
	errNoChannel = errors.New("a decision needs a channel")
	errNoRecord  = errors.New("decisions are refused: this book has no audit record")
	errNoAnswer  = errors.New("a decision is to approve or to deny")
)

// A GoneError says that a question cannot be answered any more.
type GoneError struct {
	ID     string
	Server string
	// Progress is what was decided meanwhile, or empty if the question was
	// replaced by another one.
	Progress Progress
}

// Error returns what became of the question.
func (e *GoneError) Error() string {
	if e.Progress == "" {
		return fmt.Sprintf("question %s about %q is not asked any more", e.ID, e.Server)
	}
	return fmt.Sprintf("question %s about %q was %s meanwhile", e.ID, e.Server, e.Progress)
}

// Hint returns what to do.
func (e *GoneError) Hint() string {
	if e.Progress == ProgressApproved {
		return "to take an approval back, run dockgate revoke " + e.Server
	}
	return "see what is asked now with dockgate approve"
}

// Decide answers a question as it was shown: what becomes approved is exactly
// the content of shown, and only if the store still asks that. A denied
// question may be approved later; an approved one is revoked, not denied.
// Deciding the same twice is no error.
func (b *Book) Decide(ctx context.Context, shown Question, decision Decision) error {
	if err := b.mayDecide(decision); err != nil {
		return err
	}
	if decision.Answer != Approve && decision.Answer != Deny {
		return errNoAnswer
	}
	err := b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		q, err := answered(s, shown, decision, b.now())
		if err != nil || q == nil {
			return Change{}, nil, err
		}
		change := Change{PutQuestions: []Question{*q}}
		if decision.Answer == Approve && q.Kind != KindCall {
			approved, err := s.approve(q, decision)
			if err != nil {
				return Change{}, nil, err
			}
			change.PutApprovals = []Approval{approved}
		}
		event := Event{
			Time: q.Decided, Action: ActionDenied, Server: q.Server, Question: q.ID, GrantDigest: q.GrantDigest,
			Channel: decision.Channel, By: decision.By.String(),
		}
		if decision.Answer == Approve {
			event.Action = ActionApproved
		}
		for _, c := range q.Tools {
			event.Tools = append(event.Tools, c.Name)
		}
		if q.Kind == KindCall {
			event.Tools, event.Call = []string{q.Call.Tool}, q.Call.Digest
			event.ForSession = q.ForSession
		}
		return change, []Event{event}, nil
	})
	if err != nil {
		return fmt.Errorf("decide on %q: %w", shown.Server, err)
	}
	return nil
}

func (b *Book) mayDecide(decision Decision) error {
	switch {
	case b.options.Record == nil:
		return errNoRecord
	case decision.Channel == "":
		return errNoChannel
	case expired(decision.Expires, b.options.Now()):
		return fmt.Errorf("the approval would have expired at %s", decision.Expires.Format(time.RFC3339))
	default:
		return nil
	}
}

// answered returns the question with the decision in it, or nil if it was
// decided so already.
func answered(s *snapshot, shown Question, decision Decision, now time.Time) (*Question, error) {
	// What counts is the content that was shown, not what it claims to be.
	shown.GrantDigest = shown.Grant.Digest()
	shown.identify()
	stored := s.questions[shown.Digest]
	if stored == nil {
		return nil, &GoneError{ID: shown.ID, Server: shown.Server}
	}
	q := *stored
	wanted := ProgressDenied
	if decision.Answer == Approve {
		wanted = ProgressApproved
	}
	switch {
	case q.Progress == wanted && wanted == ProgressDenied && !s.denied[q.Digest]:
		// Denied to an earlier gateway; this denial is for this one too.
	case q.Progress == wanted:
		return nil, nil
	case q.Progress == ProgressApproved:
		return nil, &GoneError{ID: q.ID, Server: q.Server, Progress: q.Progress}
	}
	q.Progress, q.Decided, q.Channel, q.By = wanted, now, decision.Channel, decision.By
	if q.Kind == KindCall {
		q.ForSession = decision.ForSession && decision.Answer == Approve
		decided := *q.Call
		decided.Arguments = ""
		q.Call = &decided
	}
	return &q, nil
}

// approve returns the approval that an approved question leads to.
func (s *snapshot) approve(q *Question, decision Decision) (Approval, error) {
	before := s.approvals[Key{q.Server, q.GrantDigest}]
	if q.Kind == KindTools {
		if before == nil {
			return Approval{}, &GoneError{ID: q.ID, Server: q.Server}
		}
		approved := *before
		approved.Tools = maps.Clone(before.Tools)
		if approved.Tools == nil {
			approved.Tools = map[string]Pin{}
		}
		for _, c := range q.Tools {
			approved.Tools[c.Name] = Pin{Digest: c.Digest, JSON: c.After, Expires: decision.Expires}
		}
		return approved, nil
	}
	approved := Approval{
		Server: q.Server, Grant: q.Grant, GrantDigest: q.GrantDigest, Decided: q.Decided,
		Expires: decision.Expires, Channel: decision.Channel, By: decision.By,
	}
	if before != nil {
		// The same grant again, after it expired: its tools are known.
		approved.Tools = before.Tools
	}
	return approved, nil
}

// Revoke takes back every approval of a server and returns them; none is no
// error. Its open questions about tools go as well. Only the Channel and By of
// the decision count.
func (b *Book) Revoke(ctx context.Context, server string, decision Decision) ([]Approval, error) {
	if err := b.mayDecide(Decision{Channel: decision.Channel}); err != nil {
		return nil, err
	}
	var revoked []Approval
	err := b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		revoked = nil
		var change Change
		var events []Event
		for _, a := range s.sortedApprovals() {
			if a.Server == server {
				revoked = append(revoked, a)
				change.DeleteApprovals = append(change.DeleteApprovals, a.Key())
				events = append(events, Event{
					Time: b.now(), Action: ActionRevoked, Server: server, GrantDigest: a.GrantDigest,
					Channel: decision.Channel, By: decision.By.String(),
				})
			}
		}
		if len(revoked) == 0 {
			return Change{}, nil, nil
		}
		for _, q := range s.questions {
			if q.Server == server && (q.Progress == ProgressApproved || q.Kind == KindTools || q.Kind == KindCall) {
				change.DeleteQuestions = append(change.DeleteQuestions, q.Digest)
			}
		}
		return change, events, nil
	})
	if err != nil {
		return nil, fmt.Errorf("revoke %q: %w", server, err)
	}
	return revoked, nil
}
