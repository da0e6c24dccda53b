package approval

import (
	"context"
	"errors"
)

// ErrConflict is what [Store.Commit] returns when the content moved on.
var ErrConflict = errors.New("approvals were changed meanwhile")

// A Store keeps approvals and questions, for this process and others. Its
// methods may be called at the same time.
type Store interface {
	// Revision returns a number that changes with every commit by anybody.
	// It is cheap: it is called every 250 ms.
	Revision(ctx context.Context) (int64, error)
	// Load returns everything as it was at one revision.
	Load(ctx context.Context) (Content, error)
	// Commit applies the whole change if the content is still at the given
	// revision, and returns the new one. Else it applies nothing and returns
	// [ErrConflict].
	Commit(ctx context.Context, revision int64, change Change) (int64, error)
}

// A Content is all that a Store holds, at a revision. Order does not matter.
type Content struct {
	Revision  int64
	Approvals []Approval
	Questions []Question
}

// A Change is what one commit does. Approvals are put by [Approval.Key],
// questions by their Digest; deletes of what is not there do nothing. Deletes
// come before puts.
type Change struct {
	DeleteApprovals []Key
	DeleteQuestions []string
	PutApprovals    []Approval
	PutQuestions    []Question
}

func (c Change) empty() bool {
	return len(c.DeleteApprovals)+len(c.DeleteQuestions)+len(c.PutApprovals)+len(c.PutQuestions) == 0
}
