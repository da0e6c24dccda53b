package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// confirmedFor is how long an answer to a call waits for the call to be made
// again, and how long its question is asked.
const confirmedFor = 10 * time.Minute

// maxShown is how much of a call's arguments a person is shown, in bytes.
const maxShown = 4000

// A Call is one call that a rule has a person confirm.
type Call struct {
	Tool string `json:"tool"`
	// Arguments are what it is called with, as far as they are shown. They
	// are kept until somebody has decided.
	Arguments string `json:"arguments,omitempty"`
	// Digest is over all of the arguments.
	Digest string `json:"digest"`
	// Session is the client's session, in one run of one gateway.
	Session string `json:"session"`
	// Why says which rule has it confirmed.
	Why string `json:"why,omitempty"`
}

// NewCall describes a call of a tool with arguments in a session.
func NewCall(tool string, arguments []byte, session, why string) Call {
	sum := sha256.Sum256(arguments)
	shown := string(arguments)
	if len(shown) > maxShown {
		shown = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(shown[:maxShown], ""), len(arguments))
	}
	return Call{Tool: tool, Arguments: shown, Digest: "sha256:" + hex.EncodeToString(sum[:]), Session: session, Why: why}
}

// RequireCall is [Book.Require] for one call of a tool, whose server is
// approved: it returns nil once a person has confirmed it. An answer is for
// one call. One that comes too late for this call is for the next that is the
// same, within ten minutes; an approval for the session is for all calls of
// the tool in that session. A person is asked under [ModeAll] too, because a
// rule says so; under [ModePinned] every call is refused.
func (b *Book) RequireCall(ctx context.Context, request Request, asked Call, person Person, wait time.Duration) error {
	if b.options.Mode == ModePinned {
		return &DeniedError{
			Server: request.Server, Tool: asked.Tool, Call: true,
			Reason: "a person has to confirm each call, and this gateway never asks (approval mode pinned)",
		}
	}
	asked.Session = b.run + "/" + asked.Session
	request.GrantDigest = request.key().GrantDigest
	if b.current.Load().confirmed(request.key(), asked) {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	mine := false
	for {
		q, fresh, err := b.take(ctx, request, asked)
		if err != nil || q.Progress == ProgressApproved {
			return err
		}
		mine = mine && !fresh // the answer was for another call that is the same
		pending := &PendingError{ID: q.ID, Server: q.Server, Tool: asked.Tool, Call: true}
		if q.Progress == ProgressDenied {
			return &DeniedError{ID: q.ID, Server: q.Server, Tool: asked.Tool, Call: true, Reason: "the user denied this call"}
		}
		s := b.current.Load()
		if now := s.questions[q.Digest]; now == nil || now.Progress != ProgressPending {
			continue // it was answered since
		}
		current := b.asked(q.Digest)
		if !mine {
			current, mine = b.ask(ctx, q, person)
			if current == nil {
				mine = true // there is nobody to ask
				if person.Tell != nil {
					person.Tell(ctx, pending.Error())
				}
			}
		}
		var ended <-chan struct{}
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

// take returns the question of a call: with its answer, which is then used up
// unless it is for the session, or pending, and fresh if nobody had asked it.
func (b *Book) take(ctx context.Context, request Request, asked Call) (_ Question, fresh bool, err error) {
	key := request.key()
	q := newQuestion(request, Verdict{}, b.now())
	q.Kind, q.Call, q.GrantDigest = KindCall, &asked, key.GrantDigest
	q.identify()
	err = b.change(ctx, func(s *snapshot) (Change, error) {
		now := b.options.Now()
		fresh = false
		if s.grant(key, now).State != Approved {
			return Change{}, ErrNotApproved
		}
		if s.confirmed(key, asked) {
			q.Progress = ProgressApproved
			return Change{}, nil
		}
		old := s.questions[q.Digest]
		if old != nil && !old.stale(now) {
			q = *old
			if q.Progress == ProgressPending {
				return Change{}, nil
			}
			return Change{DeleteQuestions: []string{q.Digest}}, nil
		}
		fresh = true
		return Change{PutQuestions: []Question{q}, DeleteQuestions: b.outdated(s)}, nil
	})
	if err != nil {
		return Question{}, false, fmt.Errorf("ask for a call of %q of %q: %w", asked.Tool, request.Server, err)
	}
	return q, fresh, nil
}

// confirmed reports that all calls of a tool were approved for the session.
func (s *snapshot) confirmed(key Key, asked Call) bool {
	for _, q := range s.questions {
		if q.Kind == KindCall && q.ForSession && q.Progress == ProgressApproved && q.Server == key.Server &&
			q.GrantDigest == key.GrantDigest && q.Call.Tool == asked.Tool && q.Call.Session == asked.Session {
			return true
		}
	}
	return false
}

// stale reports that nobody waits for the answer to a call any more.
func (q *Question) stale(now time.Time) bool {
	switch {
	case q.Kind != KindCall || q.ForSession:
		return false
	case q.Progress == ProgressPending:
		return now.Sub(q.Asked) > confirmedFor
	}
	return now.Sub(q.Decided) > confirmedFor
}
