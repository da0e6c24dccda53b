package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// TakeAnswer returns the question whether a call of a tool may be made, whose
// server is approved: with its answer, or pending, and fresh if nobody had asked
// it. An answer is for one call, and used up by this. One that came too late for
// its call is for the next that is the same, within ten minutes; an approval for
// the session is for all calls of the tool in that session.
func (b *Book) TakeAnswer(ctx context.Context, request Request, asked Call) (_ Question, fresh bool, err error) {
	key := request.Key()
	q := newQuestion(request, Verdict{}, b.now())
	q.Kind, q.Call, q.GrantDigest = KindCall, &asked, key.GrantDigest
	q.identify()
	if b.current.Load().confirmed(key, asked) {
		q.Progress = ProgressApproved
		return q, false, nil
	}
	err = b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		now := b.options.Now()
		fresh = false
		if s.grant(key, now).State != Approved {
			return Change{}, nil, ErrNotApproved
		}
		if s.confirmed(key, asked) {
			q.Progress = ProgressApproved
			return Change{}, nil, nil
		}
		old := s.questions[q.Digest]
		if old != nil && !old.stale(now) {
			q = *old
			if q.Progress == ProgressPending {
				return Change{}, nil, nil
			}
			return Change{DeleteQuestions: []string{q.Digest}}, nil, nil
		}
		fresh = true
		return Change{PutQuestions: []Question{q}, DeleteQuestions: b.outdated(s)}, nil, nil
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
