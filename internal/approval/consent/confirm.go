package consent

import (
	"context"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
)

// RequireCall is [Desk.Require] for one call of a tool, whose server is
// approved: it returns nil once a person has confirmed it. For which calls an
// answer counts is described at [approval.Book.TakeAnswer]. A person is asked
// under [approval.ModeAll] too, because a rule says so; under
// [approval.ModePinned] every call is refused.
func (d *Desk) RequireCall(ctx context.Context, request approval.Request, asked approval.Call, person Person, wait time.Duration) error {
	if d.book.Mode() == approval.ModePinned {
		return &DeniedError{
			Server: request.Server, Tool: asked.Tool, Call: true,
			Reason: "a person has to confirm each call, and this gateway never asks (approval mode pinned)",
		}
	}
	asked.Session = d.run + "/" + asked.Session
	request.GrantDigest = request.Key().GrantDigest
	timer := time.NewTimer(wait)
	defer timer.Stop()
	mine := false
	for {
		q, fresh, err := d.book.TakeAnswer(ctx, request, asked)
		if err != nil || q.Progress == approval.ProgressApproved {
			return err
		}
		mine = mine && !fresh // the answer was for another call that is the same
		pending := &PendingError{ID: q.ID, Server: q.Server, Tool: asked.Tool, Call: true}
		if q.Progress == approval.ProgressDenied {
			return &DeniedError{ID: q.ID, Server: q.Server, Tool: asked.Tool, Call: true, Reason: "the user denied this call"}
		}
		changed := d.book.Changed()
		if now, ok := d.book.Question(q.Digest); !ok || now.Progress != approval.ProgressPending {
			continue // it was answered since
		}
		current := d.asked(q.Digest)
		if !mine {
			current, mine = d.ask(ctx, q, person)
			if current == nil {
				mine = true // there is nobody to ask
				if person.Tell != nil {
					person.Tell(ctx, pending.Error())
				}
			}
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
