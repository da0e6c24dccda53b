package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A call is a request that waits for its answer. Its progress is queued here
// and delivered by the goroutine that waits, so that a slow consumer delays
// only itself.
type call struct {
	id     int64
	method string
	item   *item
	answer chan answer // holds one; sent to by whoever removes the call from pending

	report func(json.RawMessage)
	wake   chan struct{} // nil without report

	mu     sync.Mutex
	events []json.RawMessage
	bytes  int
}

// An answer ends a call: a response, or an error of this end.
type answer struct {
	message jsonrpc.Message
	err     error
	// before is closed when the notifications that came before the response
	// have been delivered; nil if they have.
	before <-chan struct{}
}

// Call sends a request and waits for its result. Params must be an object or
// nil. They are sent as they are, but for the keys of _meta that belong to one
// hop: those are dropped and, for a modern server, set anew. Such a server gets
// the log level and the client capabilities that the params name.
//
// An error response is returned as a [*jsonrpc.Error]. If ctx ends first, the
// server is told, with ctx's cause as the reason, and ctx's error is returned;
// a call that was never written is just withdrawn. If the conversation ends
// first, the error is a [*LostError].
//
// If progress is set, the server is asked for progress, and progress is called
// with the params of each notification as the server sent them, in order, by
// the goroutine of the caller, before Call returns. Their progressToken is
// ours, for the caller to replace ([jsonrpc.With]). If the consumer is slow,
// the oldest of more than 256 waiting notifications are lost.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	return s.call(ctx, method, params, s.declaredByCalls, progress)
}

// call is Call with the capabilities that are declared to a modern server
// unless the params declare others.
func (s *Session) call(ctx context.Context, method string, params, capabilities json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := s.begin(s.info.Era, method, params, capabilities, progress)
	if err != nil {
		return nil, err
	}
	return s.wait(ctx, c)
}

// Notify sends a notification, in the order of the calls made before. It does
// not wait until the server reads it.
func (s *Session) Notify(method string, params json.RawMessage) error {
	if err := s.Err(); err != nil {
		return &LostError{Err: err}
	}
	s.out.push(&item{message: jsonrpc.Message{Method: method, Params: params}})
	return nil
}

// begin queues a request in the form of the given era.
func (s *Session) begin(spoken Era, method string, params, capabilities json.RawMessage, progress func(json.RawMessage)) (*call, error) {
	if err := s.Err(); err != nil {
		return nil, &LostError{Err: err}
	}
	c := &call{
		id:     s.lastID.Add(1),
		method: method,
		answer: make(chan answer, 1),
		report: progress,
	}
	token := int64(0)
	if progress != nil {
		c.wake = make(chan struct{}, 1)
		token = c.id
	}
	params, err := s.compose(spoken, params, capabilities, token)
	if err != nil {
		return nil, err
	}
	id := strconv.AppendInt(nil, c.id, 10)
	c.item = &item{call: c, message: jsonrpc.Message{ID: id, Method: method, Params: params}}
	s.mu.Lock()
	s.pending[c.id] = c
	s.mu.Unlock()
	s.out.push(c.item)
	return c, nil
}

// wait delivers a call's progress until its answer comes, its context ends,
// or the conversation does.
func (s *Session) wait(ctx context.Context, c *call) (json.RawMessage, error) {
	for {
		select {
		case a := <-c.answer:
			return c.end(ctx, a)
		case <-c.wake:
			c.deliver()
		case <-ctx.Done():
			if !s.forget(c) {
				return c.end(ctx, <-c.answer)
			}
			if !s.out.withdraw(c.item) {
				s.cancel(ctx, c)
			}
			return nil, ctx.Err()
		case <-s.done:
			if !s.forget(c) {
				return c.end(ctx, <-c.answer)
			}
			c.deliver()
			return nil, &LostError{Delivered: s.delivered(c), Err: s.err}
		}
	}
}

// cancel tells the server that a call was given up
// (basic/utilities/cancellation). An answer that still comes is dropped.
func (s *Session) cancel(ctx context.Context, c *call) {
	quoted, err := json.Marshal(reason(ctx))
	if err != nil { // no text does that
		quoted = json.RawMessage(`""`)
	}
	params := append([]byte(`{"requestId":`), c.item.message.ID...)
	params = append(append(append(params, `,"reason":`...), quoted...), '}')
	s.out.push(&item{message: jsonrpc.Message{Method: "notifications/cancelled", Params: params}})
}

// reason says why a context has ended: its cause, if it has one of its own.
func reason(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		return "timed out"
	case errors.Is(cause, context.Canceled):
		return "cancelled by the client"
	default:
		return cause.Error()
	}
}

// forget removes a call that waits for its answer, and reports whether it
// still did. If not, its answer is in the channel or about to be.
func (s *Session) forget(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waiting := s.pending[c.id]
	delete(s.pending, c.id)
	return waiting
}

// settle ends a call, unless it was given up or has ended.
func (s *Session) settle(c *call, a answer) {
	if s.forget(c) {
		c.answer <- a
	}
}

// complete ends the call with the given id. Answers to no call are late, or
// of a server that miscounts.
func (s *Session) complete(id json.RawMessage, a answer) {
	c := s.find(id)
	if c == nil {
		s.answers.Add(1)
		s.logger.Debug("answer to no call dropped")
		return
	}
	if a.message.Result != nil && a.message.Error != nil {
		s.logger.Debug("answer with both result and error taken as error")
	}
	a.before = s.notes.newest()
	s.settle(c, a)
}

// find returns the pending call with the given id or progress token.
func (s *Session) find(raw json.RawMessage) *call {
	id, ok := jsonrpc.Integer(raw)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id]
}

// progress queues a progress notification at the call it is for.
func (s *Session) progress(params json.RawMessage) {
	c := s.find(jsonrpc.Lookup(params, era.MetaProgress))
	if c == nil || c.report == nil {
		s.logger.Debug("progress of no call dropped")
		return
	}
	if lost := c.queue(params); lost > 0 {
		s.notes.drop(lost)
	}
}

// queue adds a notification and returns how many older ones it displaced:
// progress only grows, so the newest says most.
func (c *call) queue(params json.RawMessage) (lost int) {
	c.mu.Lock()
	for len(c.events) > 0 && (len(c.events) >= maxEvents || c.bytes+len(params) > maxEventBytes) {
		c.bytes -= len(c.events[0])
		c.events = c.events[1:]
		lost++
	}
	c.events = append(c.events, params)
	c.bytes += len(params)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return lost
}

// deliver reports the progress that is queued.
func (c *call) deliver() {
	if c.report == nil {
		return
	}
	for {
		c.mu.Lock()
		events := c.events
		c.events, c.bytes = nil, 0
		c.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, params := range events {
			c.report(params)
		}
	}
}

// end turns an answer into what Call returns, after everything that came
// before it has been delivered.
func (c *call) end(ctx context.Context, a answer) (json.RawMessage, error) {
	c.deliver()
	if a.before != nil {
		timer := time.NewTimer(noteGrace)
		defer timer.Stop()
		select {
		case <-a.before:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	switch {
	case a.err != nil:
		return nil, a.err
	case a.message.Error != nil:
		return nil, a.message.Error
	case a.message.Result == nil:
		return nil, errNoAnswer
	}
	return a.message.Result, nil
}

// delivered reports whether the server may have seen the request of a call,
// once the conversation has ended: unless it was not written, or the stream
// says that it did not pass it on.
func (s *Session) delivered(c *call) bool {
	var end interface{ Undelivered(id json.RawMessage) bool }
	return !s.out.withdraw(c.item) && (!errors.As(s.err, &end) || !end.Undelivered(c.item.message.ID))
}
