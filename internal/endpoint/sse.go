package endpoint

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

// SSEPath is where clients of MCP 2024-11-05 are served (basic/transports,
// "HTTP with SSE"): a GET opens a session, whose answers it carries, and POSTs
// bring the messages. To the gateway that is a pair of streams.
const SSEPath = "/sse"

// A pair is a session of that kind. Its lines are written by POSTs.
type pair struct {
	principal principal.Principal
	in        *io.PipeWriter
}

func (e *Endpoint) serveSSE(w http.ResponseWriter, r *http.Request) {
	visitor, stay, ok := e.admit(w, r)
	if !ok {
		return
	}
	defer stay.leave()
	switch r.Method {
	case http.MethodGet:
		e.openPair(w, r, visitor)
	case http.MethodPost:
		e.feedPair(w, r, visitor.Principal, stay)
	default:
		w.Header().Set("Allow", "GET, POST")
		refusal{status: http.StatusMethodNotAllowed, code: jsonrpc.CodeInvalidRequest, reason: "use GET or POST"}.write(w)
	}
}

// openPair serves a session until its client leaves.
func (e *Endpoint) openPair(w http.ResponseWriter, r *http.Request, visitor access.Visitor) {
	leave := e.accounts.listen(visitor.Principal)
	if leave == nil {
		busy(w, http.StatusTooManyRequests, "10", "too many streams are open").write(w)
		return
	}
	defer leave()
	watched, stop := e.Access.Watch(r.Context(), visitor)
	defer stop()
	a := newAnswer(watched, w, &gateway.Visit{}, legacy, &stay{}, e.Limits.KeepAlive)
	defer a.end()
	ctx, done := e.wait(watched, a)
	defer done()
	id := rand.Text()
	in, lines := io.Pipe()
	e.mu.Lock()
	e.pairs[id] = pair{visitor.Principal, lines}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.pairs, id)
	}()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	if err := event(a, "endpoint", []byte(SSEPath+"?session="+id)); err != nil {
		return // the client has left
	}
	if err := e.Gateway.ServeVisit(ctx, in, &events{answer: a}, &gateway.Visit{
		Principal: visitor.Principal, Begun: e.accounts.stay(visitor.Principal).begin,
	}); err != nil {
		e.Logger.DebugContext(ctx, "client of an event stream has ended", "err", err)
	}
}

// feedPair hands the message of a POST to its session.
func (e *Endpoint) feedPair(w http.ResponseWriter, r *http.Request, who principal.Principal, stay *stay) {
	e.mu.Lock()
	to, ok := e.pairs[r.URL.Query().Get("session")]
	e.mu.Unlock()
	switch {
	case !ok:
		refusal{status: http.StatusNotFound, code: jsonrpc.CodeInvalidRequest, reason: "no such session"}.write(w)
		return
	case to.principal != who:
		forbidden("the session is another caller's").write(w)
		return
	}
	visit, refused := e.visit(w, r, who)
	if refused == nil {
		refused = e.afford(w, stay, visit)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	for _, m := range visit.Messages() {
		line, err := m.Append(nil)
		if err == nil {
			_, err = to.in.Write(append(line, '\n'))
		}
		if err != nil {
			refusal{status: http.StatusNotFound, code: jsonrpc.CodeInvalidRequest, reason: "the session has ended"}.write(w)
			return
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// events writes lines as events of a stream.
type events struct {
	answer *answer
	line   []byte // what has come of a line
}

// maxKept bounds the memory that a stream keeps for its next line.
const maxKept = 64 << 10

// Write implements [io.Writer].
func (s *events) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		line, rest, found := bytes.Cut(s.line, []byte("\n"))
		if !found {
			return len(p), nil
		}
		if err := event(s.answer, "message", line); err != nil {
			return 0, err
		}
		if s.line = append(s.line[:0], rest...); cap(s.line) > maxKept {
			s.line = bytes.Clone(s.line)
		}
	}
}

// Close implements [io.Closer]: the stream ends with its request.
func (s *events) Close() error { return nil }

func event(a *answer, name string, data []byte) error {
	var b bytes.Buffer
	b.Grow(len(data) + 32)
	fmt.Fprintf(&b, "event: %s\ndata: ", name)
	b.Write(data)
	b.WriteString("\n\n")
	if _, err := a.Write(b.Bytes()); err != nil {
		return err
	}
	return a.FlushError()
}
