package call

import (
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
)

// Question returns what a person is asked before a planned server may start,
// for callers that ask without a call.
func Question(who principal.Principal, made plan.Plan) approval.Request {
	return question(Request{Client: Client{Principal: who}, Server: made.Entry.Name}, made)
}
