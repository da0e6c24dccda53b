package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

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

// Key returns the key of the approval that the request is for.
func (r Request) Key() Key {
	if r.GrantDigest == "" {
		return Key{r.Server, r.Grant.Digest()}
	}
	return Key{r.Server, r.GrantDigest}
}

// Ask records the question whether a server may start with a grant, unless it
// is recorded already, and returns it. What is approved or was denied is not
// asked. [ModeAll] approves what would be asked; [ModePinned] asks nothing.
func (b *Book) Ask(ctx context.Context, request Request) (Question, error) {
	key := request.Key()
	request.GrantDigest = key.GrantDigest
	var q Question
	put := false
	err := b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		verdict := s.grant(key, b.options.Now())
		q, put = newQuestion(request, verdict, b.now()), false
		if verdict.State == Approved || verdict.State == Denied || b.options.Mode == ModePinned {
			return Change{}, nil, nil
		}
		put = true
		if old := s.questions[q.Digest]; old != nil && old.Progress == ProgressPending {
			q = *old
			return Change{}, nil, nil
		}
		return Change{PutQuestions: []Question{q}, DeleteQuestions: b.outdated(s)}, nil, nil
	})
	if err != nil {
		return Question{}, fmt.Errorf("ask for approval of %q: %w", request.Server, err)
	}
	if put && b.options.Mode == ModeAll {
		return q, b.Decide(ctx, q, Decision{Answer: Approve, Channel: ChannelAll, By: request.Principal})
	}
	return q, nil
}

// Withdraw takes back what a caller has asked about a server, and nobody has
// answered. A call that waits for such an answer ends as one that got none.
func (b *Book) Withdraw(ctx context.Context, server string, who principal.Principal) error {
	err := b.change(ctx, func(s *snapshot) (Change, []Event, error) {
		var change Change
		for _, q := range s.questions {
			if q.Server == server && q.Principal.ID == who.ID && q.Progress == ProgressPending {
				change.DeleteQuestions = append(change.DeleteQuestions, q.Digest)
			}
		}
		return change, nil, nil
	})
	if err != nil {
		return fmt.Errorf("withdraw what is asked about %q: %w", server, err)
	}
	return nil
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
