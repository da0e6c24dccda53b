// Package upstream holds one MCP conversation with a server over a stream, as
// its client, in either era of the protocol.
//
// It decides which era a server speaks, and which request an answer or a
// progress notification belongs to. It refuses a server whose protocol
// version it does not know, and lists that do not end. It guarantees that
// params, results, error data and notifications pass as the bytes that came,
// but for the keys of _meta that belong to one hop; that a call sees its
// progress in order and before its result; and that what one call's consumer
// does, or what a server floods, garbles or leaves unanswered, costs other
// calls nothing and memory only within bounds.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An Era is a generation of the MCP protocol.
type Era string

// The eras. The zero value is an era that is not known yet.
const (
	// Legacy is every version up to 2025-11-25: initialize, then sessions.
	Legacy Era = "legacy"
	// Modern is 2026-07-28 and later: each request stands for itself.
	Modern Era = "modern"
)

// Bounds of what one session keeps.
const (
	maxServing    = 64      // requests of the server in progress
	maxControl    = 1024    // queued notifications and answers to the server
	maxNotes      = 1024    // notifications not yet delivered
	maxNoteBytes  = 4 << 20 // their params
	maxEvents     = 256     // progress of one call not yet delivered
	maxEventBytes = 1 << 20 // its params
)

const (
	// defaultProbe is how long the answer to the probe is awaited.
	defaultProbe = 3 * time.Second
	// noteGrace is how long an answer waits for the delivery of the notifications
	// that came before it.
	noteGrace = 100 * time.Millisecond
	// writeGrace is how long answers may still arrive once nothing can be written.
	writeGrace = time.Second
)

// An Implementation names a program (MCP schema: Implementation).
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Options are the settings of a session. Client is required.
type Options struct {
	// Client is what the session calls itself towards the server.
	Client Implementation
	// Capabilities are the client capabilities to declare in initialize, and to
	// a modern server that is asked what it offers: an object, or nil for none.
	Capabilities json.RawMessage
	// CallCapabilities are those to declare to a modern server in a Call whose
	// params declare none; nil for the same.
	CallCapabilities json.RawMessage
	// Era is what is known of the server; if nothing is, it is probed.
	Era Era
	// ProbeTimeout is how long the answer to the probe is awaited; 3 s if
	// zero. A server that starts slower is recognised all the same.
	ProbeTimeout time.Duration
	// MaxLine is the longest message accepted, in bytes;
	// [jsonrpc.DefaultLimit] if zero.
	MaxLine int
	// MaxEntries is how many tools, prompts, resources and resource templates
	// an offer has at most, of each kind; [DefaultEntries] if zero.
	MaxEntries int
	// Logger receives what is tolerated, at debug level; nil discards it.
	Logger *slog.Logger
	// Notify, if set, is called with each notification of the server that is
	// neither progress nor a cancellation, one after the other and in order.
	// The notifications before a response are delivered before Call returns
	// it, unless Notify takes longer than 100 ms. Changes of the same list are
	// reported once as long as they wait; of other notifications those beyond
	// 1,024 waiting ones are lost and counted. Notify must not call Close, and
	// a Call in it is slow, since it waits for Notify. A modern server
	// notifies only while a Call of subscriptions/listen is under way.
	Notify func(method string, params json.RawMessage)
	// Serve, if set, answers requests of the server except ping, each in a
	// goroutine of its own. Its context ends when the server cancels the
	// request or the session ends. A [*jsonrpc.Error] is passed on as it is,
	// any other error as an internal one. If Serve is nil the server is told
	// that the method does not exist. It must not call Close.
	Serve func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// Info is what a server said of itself.
type Info struct {
	Era Era
	// Both says that a modern server has said that it speaks legacy versions,
	// too.
	Both bool
	// ProtocolVersion is the version in use.
	ProtocolVersion string
	// Server is the server's Implementation as it was sent, or nil.
	Server json.RawMessage
	// Capabilities is the server's capabilities object as it was sent.
	Capabilities json.RawMessage
	Instructions string
}

// Stats counts what a session left out to stay within its bounds.
type Stats struct {
	// Lines were not JSON-RPC, or too long.
	Lines int64
	// Notifications of the server were not delivered, because their consumer
	// was too slow. Changes of lists are never among them.
	Notifications int64
	// Answers came for no call: late, repeated, or never asked for.
	Answers int64
	// Replies and notifications of ours were not sent, because the server
	// does not read.
	Replies int64
}

// A Session is one conversation with a server. Its methods may be called from
// several goroutines.
type Session struct {
	stream   io.ReadWriteCloser
	logger   *slog.Logger
	notify   func(method string, params json.RawMessage)
	serve    func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	client   json.RawMessage
	declared json.RawMessage
	// declaredByCalls are the capabilities of calls that name none.
	declaredByCalls json.RawMessage
	hopHead         []byte // our keys of _meta for a modern server, up to the capabilities
	hopTail         []byte // and from there on
	maxEntries      int
	info            Info

	lastID  atomic.Int64
	lines   atomic.Int64
	answers atomic.Int64
	out     outbox
	notes   inbox

	mu      sync.Mutex
	pending map[int64]*call
	serving map[string]context.CancelFunc

	failOnce sync.Once
	err      error // set before done is closed
	done     chan struct{}
	stop     context.CancelFunc

	closeOnce sync.Once
	closeErr  error
	wg        sync.WaitGroup
}

// Connect starts a conversation and agrees on its era and version with the
// server. It takes the stream over: closing the session closes it, and so
// does a failure of Connect. The stream's Close must end a Read and a Write
// that are under way.
//
// A [*ProbeError] means that the server may not have survived the probe; the
// caller should start a fresh process and connect to it with Era: Legacy.
//
// A stream that ends with an error which has the method Undelivered(id
// json.RawMessage) bool says with it which requests the server cannot have seen.
func Connect(ctx context.Context, stream io.ReadWriteCloser, options Options) (*Session, error) {
	s := &Session{
		stream:     stream,
		logger:     options.Logger,
		notify:     options.Notify,
		serve:      options.Serve,
		declared:   options.Capabilities,
		maxEntries: options.MaxEntries,
		out:        outbox{wake: make(chan struct{}, 1)},
		notes:      inbox{wake: make(chan struct{}, 1), changed: make(map[string]bool)},
		pending:    make(map[int64]*call),
		serving:    make(map[string]context.CancelFunc),
		done:       make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.declared == nil {
		s.declared = json.RawMessage("{}")
	}
	if s.declaredByCalls = options.CallCapabilities; s.declaredByCalls == nil {
		s.declaredByCalls = s.declared
	}
	if s.maxEntries <= 0 {
		s.maxEntries = DefaultEntries
	}
	err := s.introduce(options.Client)
	if err == nil {
		s.run(ctx, options.MaxLine)
		err = s.handshake(ctx, options)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// run starts the session's goroutines. They end with the session.
func (s *Session) run(ctx context.Context, maxLine int) {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	reader := jsonrpc.NewReader(s.stream, jsonrpc.ReaderOptions{
		Limit:   maxLine,
		Dropped: s.drop,
	})
	s.wg.Go(func() { s.read(ctx, reader) })
	s.wg.Go(s.write)
	if s.notify != nil {
		s.wg.Go(s.deliver)
	}
}

// Era returns the era that the server speaks.
func (s *Session) Era() Era { return s.info.Era }

// Info returns what the server said of itself when the session began.
func (s *Session) Info() Info { return s.info }

// Stats returns what was left out so far.
func (s *Session) Stats() Stats {
	return Stats{
		Lines:         s.lines.Load(),
		Notifications: s.notes.count(),
		Answers:       s.answers.Load(),
		Replies:       s.out.count(),
	}
}

// Done is closed when the conversation has ended: the stream failed or ended,
// or Close was called. Close must still be called.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns nil until Done is closed, then why: [ErrClosed] after Close,
// [io.EOF] if the server ended its output, else the stream's error.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the conversation, closes the stream and waits until nothing of
// the session runs. Calls under way return a [*LostError]. It may be called
// more than once; every call waits and returns the stream's answer.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		s.fail(ErrClosed)
		s.closeErr = s.stream.Close()
		s.wg.Wait()
	})
	return s.closeErr
}

// fail ends the conversation. The first reason stays.
func (s *Session) fail(err error) {
	s.failOnce.Do(func() {
		s.err = err
		close(s.done)
		if s.stop != nil {
			s.stop()
		}
	})
}

// read takes in messages until the stream ends. It hands on and never waits
// for a consumer, so the order on the wire is the order in every queue.
func (s *Session) read(ctx context.Context, reader *jsonrpc.Reader) {
	for {
		m, err := reader.Read()
		var long *jsonrpc.LineError
		switch {
		case errors.As(err, &long):
			s.lines.Add(1)
			s.logger.Debug("line dropped", "err", err)
			s.complete(long.ID, answer{err: long})
			continue
		case err != nil:
			s.fail(err)
			return
		}
		switch m.Kind() {
		case jsonrpc.Response:
			s.complete(m.ID, answer{message: m})
		case jsonrpc.Request:
			s.accept(ctx, m)
		case jsonrpc.Notification:
			s.take(m)
		}
	}
}

// drop counts a line that is not JSON-RPC. If it was meant to be the answer to
// a call, that call need not wait for another.
func (s *Session) drop(line []byte, reason string) {
	s.lines.Add(1)
	s.logger.Debug("line dropped", "err", reason)
	if c := s.find(jsonrpc.ResponseID(line)); c != nil {
		s.settle(c, answer{err: &AnswerError{Problem: reason}})
	}
}

// take hands on a notification.
func (s *Session) take(m jsonrpc.Message) {
	switch m.Method {
	case "notifications/progress":
		s.progress(m.Params)
	case "notifications/cancelled":
		s.revoke(m.Params)
	default:
		if s.notify != nil {
			s.notes.push(m.Method, m.Params)
		}
	}
}

// write sends what is queued, one message after the other. When the stream
// breaks, answers that are still to be read get a moment to arrive.
func (s *Session) write() {
	writer := jsonrpc.NewWriter(s.stream)
	var broken error
	var grace <-chan time.Time
	for {
		select {
		case <-s.done:
			return
		case <-grace:
			s.fail(broken)
			return
		case <-s.out.wake:
		}
		for it := s.out.pop(); it != nil; it = s.out.pop() {
			err := writer.Write(it.message)
			if err == nil {
				continue
			}
			s.unsent(it, err)
			var invalid *jsonrpc.MessageError
			if !errors.As(err, &invalid) && broken == nil {
				broken = err
				timer := time.NewTimer(writeGrace)
				defer timer.Stop()
				grace = timer.C
			}
		}
	}
}

// unsent answers for a message that could not be written.
func (s *Session) unsent(it *item, err error) {
	var invalid *jsonrpc.MessageError
	switch {
	case it.call != nil && errors.As(err, &invalid):
		s.settle(it.call, answer{err: err})
	case it.call != nil:
		s.settle(it.call, answer{err: &LostError{Err: err}})
	case errors.As(err, &invalid) && it.message.Kind() == jsonrpc.Response && it.message.Error == nil:
		s.logger.Debug("answer to the server is not JSON", "err", err)
		s.reply(it.message.ID, nil, errInternal())
	default:
		s.logger.Debug("message not sent", "err", err)
	}
}
