package endpoint

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// maxProblem bounds a text of the SDK's that becomes an error message.
const maxProblem = 4 << 10

// An answer is the response to one request of MCP. It puts the results of
// servers in, keeps streams alive, bounds how long a client takes to read, and
// makes JSON-RPC errors of what the SDK refuses in plain text.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	visit   *gateway.Visit
	era     era
	// every is how often a stream says that it is there.
	every time.Duration
	ctx   context.Context //nolint:containedctx // it says whether the caller may still use the gateway
	stay  *stay

	mu      sync.Mutex
	begun   bool
	ended   bool
	last    bool          // the result was written
	problem *bytes.Buffer // of a refusal in plain text
	status  int
	beat    *time.Timer // nil for what is no stream
}

// newAnswer returns the answer to a request whose context is of
// [access.Authenticator.Watch].
func newAnswer(ctx context.Context, w http.ResponseWriter, visit *gateway.Visit, era era, stay *stay, every time.Duration) *answer {
	return &answer{w: w, control: http.NewResponseController(w), visit: visit, era: era, every: every, ctx: ctx, stay: stay}
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.w.Header() }

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.w }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(status)
}

// begin sends the headers. a.mu is held.
func (a *answer) begin(status int) {
	if a.begun || a.shut() {
		return
	}
	a.begun, a.status = true, status
	header := a.w.Header()
	kind := header.Get("Content-Type")
	switch {
	case status >= http.StatusBadRequest && !strings.HasPrefix(kind, "application/json"):
		a.problem = &bytes.Buffer{}
		return // see end
	case strings.HasPrefix(kind, "text/event-stream"):
		header.Set("X-Accel-Buffering", "no")
		a.beat = time.AfterFunc(a.every, a.comment)
	}
	header.Set("X-Content-Type-Options", "nosniff")
	a.w.WriteHeader(status)
}

// Write implements [http.ResponseWriter]. What is written in one go is one
// message or event.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut() {
		return 0, http.ErrHandlerTimeout
	}
	a.begin(http.StatusOK)
	if a.problem != nil {
		if room := maxProblem - a.problem.Len(); room > 0 {
			a.problem.Write(p[:min(room, len(p))])
		}
		return len(p), nil
	}
	a.bound()
	last, err := a.visit.WriteTo(a.w, p)
	if err != nil {
		return 0, err
	}
	a.last = last
	return len(p), nil
}

// bound gives a client a while to take what comes. a.mu is held.
func (a *answer) bound() {
	// Not every connection can: a test's recorder, say. It has no slow client.
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// FlushError is for [http.ResponseController].
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	// What was written last goes out with the end of the response, which comes
	// at once: in one packet, for which the client wakes once.
	if a.last || a.problem != nil || a.shut() {
		return nil
	}
	a.begin(http.StatusOK)
	a.bound()
	return a.control.Flush()
}

// comment writes a comment (HTML: "Server-sent events") and plans the next.
func (a *answer) comment() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut() {
		return
	}
	a.bound()
	if _, err := a.w.Write([]byte(": keep-alive\n\n")); err != nil {
		return // the request's context ends with its connection
	}
	if err := a.control.Flush(); err == nil {
		a.beat.Reset(a.every)
	}
}

// refuse answers what no answer was begun to.
func (a *answer) refuse(refused refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.shut() {
		a.begun = true
		refused.write(a.w)
	}
}

// shut reports whether nothing is written any more: the response is complete,
// or its caller may not use the gateway any more, and is told so where no
// answer was begun. a.mu is held.
func (a *answer) shut() bool {
	if a.ended {
		return true
	}
	denied := denial(context.Cause(a.ctx))
	if denied == nil {
		denied = a.stay.denied.Load()
	}
	if denied == nil {
		return false
	}
	if a.ended = true; !a.begun {
		a.begun = true
		a.w.Header().Del(sessionHeader)
		refused := refuseCaller(a.w, denied)
		refused.id = visitID(a.visit)
		refused.write(a.w)
	}
	return true
}

// denial is why a caller may not use the gateway any more, by the cause that
// [access.Authenticator.Watch] gives; nil if they may.
func denial(cause error) *access.RefusedError {
	var denied *access.RefusedError
	if !errors.As(cause, &denied) {
		return nil
	}
	return denied
}

// end completes the response; nothing is written after it.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shut()
	a.ended = true
	if a.beat != nil {
		a.beat.Stop()
	}
	if a.problem != nil {
		a.translate().write(a.w)
	}
}

// translate makes a refusal of the SDK's plain text. a.mu is held.
func (a *answer) translate() refusal {
	made := refusal{status: a.status, code: jsonrpc.CodeInvalidRequest, reason: strings.TrimSpace(a.problem.String())}
	if a.status >= http.StatusInternalServerError {
		made.code = jsonrpc.CodeInternalError
	}
	if messages := a.visit.Messages(); len(messages) == 1 && messages[0].Kind() == jsonrpc.Request {
		made.id = messages[0].ID
		if a.status == http.StatusBadRequest && !known(messages[0].Method) {
			made.code = jsonrpc.CodeMethodNotFound
			// A legacy client takes any other status for the end of its session.
			made.status = http.StatusOK
			if a.era == modern {
				made.status = http.StatusNotFound
			}
		}
	}
	return made
}

// wait registers a stream that only waits for news, so that it ends first when
// the endpoint stops.
func (e *Endpoint) wait(ctx context.Context, a *answer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		cancel()
	}
	e.waiting[a] = cancel
	return ctx, func() {
		e.mu.Lock()
		delete(e.waiting, a)
		e.mu.Unlock()
		cancel()
	}
}
