package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/login"
	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/remote/mirror"
)

const (
	// noteTime is how long a server may take to accept a notification.
	noteTime = 10 * time.Second
	// maxNotes is how many notifications and answers are on their way at once.
	maxNotes = 32
	// lingering is how long the rest of an answer may take, so that its
	// connection can be used again.
	lingering = time.Second
	// patience is how long requests on their way may take to meet the end of
	// a session that is known to have ended.
	patience = 5 * time.Second
)

// A stream carries lines of JSON-RPC over the requests of HTTP. It is the
// SDK's client transport seen as one connection, so that the peer of stdio
// servers speaks with remote ones too, and no message is decoded further than
// its envelope.
type stream struct {
	conn   mcp.Connection
	door   *door.Door
	log    *slog.Logger
	params mirror.Parameters

	in   *io.PipeReader // lines of the server
	out  *io.PipeWriter
	line []byte // of ours, not yet whole; guarded by writing
	sent chan sdkrpc.Message
	note chan struct{} // holds a token for each note on its way

	writing sync.Mutex

	mu      sync.Mutex
	pending map[any]*posted // requests of ours, by id
	begin   any             // the id of initialize
	over    bool            // no request is sent any more

	failing sync.Once
	err     error // set before done is closed
	done    chan struct{}
	closing sync.Once
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// A posted is a request that was sent to the server.
type posted struct {
	cancel context.CancelFunc
	// taken is closed when the server has begun to answer, or the request did
	// not reach it.
	taken <-chan struct{}
	// refused: the server did not act on it, because it does not know the session.
	refused bool
}

// connect makes a stream through a door, which is the stream's from then on.
func connect(ctx context.Context, d *door.Door, log *slog.Logger) (*stream, error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		d.Close()
		return nil, plain(err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &stream{
		conn: conn, door: d, log: log,
		sent:    make(chan sdkrpc.Message),
		note:    make(chan struct{}, maxNotes),
		pending: make(map[any]*posted),
		done:    make(chan struct{}),
	}
	s.in, s.out = io.Pipe()
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.send(ctx) })
	s.running.Go(func() { s.receive(ctx) })
	return s, nil
}

// Read reads the server's messages as lines.
func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

// Write takes our messages as lines. It waits for no answer.
func (s *stream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.line = append(s.line, p...)
	for {
		line, rest, whole := bytes.Cut(s.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		m, err := sdkrpc.DecodeMessage(line)
		s.line = rest
		if err != nil {
			return 0, fmt.Errorf("message for the remote server: %w", err)
		}
		select {
		case s.sent <- m:
		case <-s.done:
			return 0, cmp.Or(s.goodbye(), io.ErrClosedPipe)
		}
	}
}

// Judge refuses a tool that cannot be called over HTTP.
func (s *stream) Judge(tool json.RawMessage) error {
	if s.door.Older() { // it has no such headers
		return nil
	}
	return mirror.Judge(tool)
}

// goodbye says why the stream has ended, unless we have ended it.
func (s *stream) goodbye() error {
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// send posts what is written. Requests wait for nothing but the end of the
// handshake, whose order counts.
func (s *stream) send(ctx context.Context) {
	for {
		select {
		case <-s.done:
			return
		case m := <-s.sent:
			request, _ := m.(*sdkrpc.Request)
			switch {
			case request != nil && request.IsCall():
				s.call(ctx, request)
			case request != nil && request.Method == "notifications/initialized":
				s.tell(ctx, m)
				if !s.door.Older() {
					s.attend(ctx)
				}
			case request != nil && request.Method == "notifications/cancelled":
				s.spawn(func() { s.revoke(ctx, request) })
			default:
				s.spawn(func() { s.tell(ctx, m) })
			}
		}
	}
}

// attend begins to listen to what the server sends by itself. What it is asked
// next may make it send something, so that waits.
func (s *stream) attend(ctx context.Context) {
	open := make(chan struct{})
	s.running.Go(func() { s.listen(ctx, sync.OnceFunc(func() { close(open) })) })
	timer := time.NewTimer(openTime)
	defer timer.Stop()
	select {
	case <-open:
	case <-timer.C:
	case <-s.done:
	}
}

// spawn runs the sending of one note, when there are not too many.
func (s *stream) spawn(sending func()) {
	select {
	case s.note <- struct{}{}:
	case <-s.done:
		return
	}
	s.running.Go(func() {
		defer func() { <-s.note }()
		sending()
	})
}

// call posts a request. Its context ends some time after its answer came, when
// it is cancelled, or with the stream.
func (s *stream) call(ctx context.Context, request *sdkrpc.Request) {
	ctx, cancel := context.WithCancel(ctx)
	if request.Method == "tools/call" {
		if header := s.params.Header(request.Params); len(header) > 0 {
			ctx = door.WithHeaders(ctx, header)
		}
	}
	id := request.ID.Raw()
	taken := make(chan struct{})
	ours := &posted{cancel: cancel, taken: taken}
	s.mu.Lock()
	over := s.over
	if !over {
		s.pending[id] = ours
	}
	if request.Method == "initialize" {
		s.begin = id
	}
	s.mu.Unlock()
	if over {
		cancel()
		return
	}
	s.running.Go(func() {
		err := s.conn.Write(ctx, request)
		gone := errors.Is(err, mcp.ErrSessionMissing)
		if gone {
			s.mu.Lock()
			ours.refused = true
			s.mu.Unlock()
		}
		close(taken)
		if err == nil || ctx.Err() != nil {
			return
		}
		err = plain(err)
		if unanswered(err) && s.doomed(ctx) {
			return
		}
		if gone {
			s.gone()
			return
		}
		unable := request.Method == "initialize" && !isAnswer(err) || !s.door.Reached()
		if unable || loggedOut(err) {
			s.fail(err)
		}
		if s.forget(id) {
			s.refuse(request.ID, err)
		}
		cancel()
	})
}

// doomed reports whether the stream is about to end, because its server has
// exited: that says more than the connection that broke.
func (s *stream) doomed(ctx context.Context) bool {
	if !s.door.Hosted() { // its exit is not ours to see
		return false
	}
	timer := time.NewTimer(settling)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-ctx.Done():
	case <-timer.C:
		return false
	}
	return true
}

// tell posts a notification or an answer.
func (s *stream) tell(ctx context.Context, m sdkrpc.Message) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if err := s.conn.Write(ctx, m); err != nil && ctx.Err() == nil {
		s.log.DebugContext(ctx, "message not sent", "err", plain(err))
	}
}

// revoke gives a request up. A server of the modern era is told by the end of
// its connection (MCP 2026-07-28, basic/patterns/cancellation), others by the
// notification.
func (s *stream) revoke(ctx context.Context, note *sdkrpc.Request) {
	if s.door.Older() || s.door.Agreed() {
		s.tell(ctx, note)
	}
	var params struct {
		ID any `json:"requestId"`
	}
	if err := json.Unmarshal(note.Params, &params); err != nil {
		return
	}
	id, err := sdkrpc.MakeID(params.ID)
	if err != nil {
		return
	}
	s.mu.Lock()
	given, found := s.pending[id.Raw()]
	delete(s.pending, id.Raw())
	s.mu.Unlock()
	if found {
		given.cancel()
	}
}

// forget takes a request out of the books and reports whether it was there.
func (s *stream) forget(id any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.pending[id]
	delete(s.pending, id)
	return found
}

// refuse answers a request that did not get through.
func (s *stream) refuse(id sdkrpc.ID, err error) {
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	var wanted *login.LoginError
	if errors.As(err, &wanted) { // a login with more rights, for this request
		refusal.Message += "; " + wanted.Hint()
		refusal.Data, _ = json.Marshal(map[string]string{"code": wanted.Code(), "hint": wanted.Hint()}) //nolint:errchkjson // of texts alone
	}
	errors.As(err, &refusal)
	s.put(jsonrpc.Message{ID: rawID(id), Error: refusal})
}

// receive passes on what comes, until the connection ends.
func (s *stream) receive(ctx context.Context) {
	for {
		m, err := s.conn.Read(ctx)
		if err != nil {
			if err = ended(err); errors.Is(err, errSessionGone) {
				s.gone()
			}
			s.fail(err)
			return
		}
		s.pass(m)
	}
}

// pass hands a message of the server to the reader.
func (s *stream) pass(m sdkrpc.Message) {
	switch m := m.(type) {
	case *sdkrpc.Request:
		passed := jsonrpc.Message{Method: m.Method, Params: m.Params}
		if m.IsCall() {
			passed.ID = rawID(m.ID)
		}
		s.put(passed)
	case *sdkrpc.Response:
		s.answered(m)
		s.put(jsonrpc.Message{ID: rawID(m.ID), Result: m.Result, Error: refusalOf(m.Error)})
	}
}

// gone ends the stream because the server does not know the session any more.
// The requests that are on their way meet that themselves first: one that was
// refused for it can be sent again.
func (s *stream) gone() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for taken := s.onTheWay(); taken != nil; taken = s.onTheWay() {
		select {
		case <-taken:
			continue
		case <-s.done:
		case <-timer.C:
		}
		break
	}
	s.fail(&goneError{s})
}

// onTheWay returns the end of the way of a request that the server has not
// taken, or else nil; no request is sent after that.
func (s *stream) onTheWay() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ours := range s.pending {
		select {
		case <-ours.taken:
		default:
			return ours.taken
		}
	}
	s.over = true
	return nil
}

// answered takes note of an answer.
func (s *stream) answered(m *sdkrpc.Response) {
	id := m.ID.Raw()
	s.mu.Lock()
	ours, found := s.pending[id]
	delete(s.pending, id)
	began := s.begin != nil && s.begin == id
	s.mu.Unlock()
	if began {
		var result struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(m.Result, &result) == nil {
			s.door.Agree(result.Version)
		}
	}
	if found {
		// The SDK reads on until the server ends the response, or this does.
		time.AfterFunc(lingering, ours.cancel)
	}
	if !s.door.Agreed() { // only the modern era has such headers
		s.params.Learn(m.Result)
	}
}

// put writes a message for the reader.
func (s *stream) put(m jsonrpc.Message) {
	line, err := m.Append(nil)
	if err != nil {
		s.log.Debug("message of the server dropped", "err", err)
		return
	}
	_, _ = s.out.Write(append(line, '\n')) // fails only when nobody reads any more
}

// fail ends the stream. The first reason stays.
func (s *stream) fail(err error) {
	s.failing.Do(func() {
		s.err = err
		close(s.done)
		s.out.CloseWithError(err)
		s.cancel()
	})
}

// shut ends the session on the server and waits until nothing of the stream
// runs.
func (s *stream) shut() {
	s.closing.Do(func() {
		_ = s.in.Close() // nobody reads any more
		if err := s.conn.Close(); err != nil {
			s.log.Debug("session not ended on the server", "err", plain(err))
		}
		s.fail(io.EOF)
		s.running.Wait()
		s.door.Close()
	})
}

// rawID writes an id as JSON.
func rawID(id sdkrpc.ID) json.RawMessage {
	raw, err := json.Marshal(id.Raw())
	if err != nil { // it is a string or an integer
		return json.RawMessage("null")
	}
	return raw
}

// refusalOf keeps a server's error as it is.
func refusalOf(err error) *jsonrpc.Error {
	if err == nil {
		return nil
	}
	var wire *sdkrpc.Error
	if errors.As(err, &wire) {
		return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the remote server: " + err.Error()}
}

// isAnswer reports whether an error is the server's own, in JSON-RPC.
func isAnswer(err error) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer)
}

// loggedOut reports whether an error is that of every request: there is no
// login that is good for any.
func loggedOut(err error) bool {
	var wanted *login.LoginError
	return errors.As(err, &wanted) && !wanted.Lacking
}

// plain takes from an error of the SDK what it is about: the server's own
// error, or what HTTP says. It leaves the URL out, which may be long.
func plain(err error) error {
	var answer *jsonrpc.Error
	var wrapped *url.Error
	var told toldError
	switch {
	case errors.As(err, &answer):
		return answer
	case errors.As(err, &wrapped):
		if unanswered(wrapped.Err) {
			return fmt.Errorf("no answer from the server: %w", wrapped.Err)
		}
		return wrapped.Err
	case errors.Is(err, mcp.ErrSessionMissing):
		return errSessionGone
	case errors.As(err, &told): // without the SDK's words around it
		return told
	}
	return err
}

// A toldError says what the user can do.
type toldError interface {
	error
	Hint() string
}

// unanswered reports whether an error is the network's.
func unanswered(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// A goneError is the end of a session that the server does not know any more.
type goneError struct{ of *stream }

// Error says that the session has ended.
func (e *goneError) Error() string { return errSessionGone.Error() }

// Undelivered reports whether a request without an answer was refused because
// of the end, or not sent.
func (e *goneError) Undelivered(id json.RawMessage) bool {
	var raw any
	if err := json.Unmarshal(id, &raw); err != nil {
		return false
	}
	key, err := sdkrpc.MakeID(raw)
	if err != nil {
		return false
	}
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	ours, sent := e.of.pending[key.Raw()]
	return !sent || ours.refused
}

// errSessionGone is a server that does not know the session any more, such as
// one that was started anew.
var errSessionGone = errors.New("the remote server has ended the session")

// ended says why a connection has.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the remote server has ended the connection")
	}
	return plain(err)
}
