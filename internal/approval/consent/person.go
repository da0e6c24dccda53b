package consent

import (
	"context"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
)

// A Person is how the user can be reached from where a call comes: by a form
// in the client, at the terminal, or not at all. The zero value is nobody.
type Person struct {
	// Ask puts a question in front of the person and returns the answer. It
	// returns early when ctx ends, which also says that the question was
	// answered elsewhere. It may outlast the call that caused it. An error
	// leaves the question to other channels. If it is nil, the person cannot
	// be asked from here.
	Ask func(ctx context.Context, question approval.Question) (Reply, error)
	// Tell shows a line of text: that an answer is awaited, and where to give
	// it. It is used where Ask is nil, and may be nil.
	Tell func(ctx context.Context, text string)
}

// A Reply is a person's answer, and how it was obtained.
type Reply struct {
	Answer approval.Answer
	// Channel is required for [approval.Approve] and [approval.Deny].
	Channel string
	Expires time.Time
	// ForSession is an approval of all calls of the tool, see [approval.Decision].
	ForSession bool
}
