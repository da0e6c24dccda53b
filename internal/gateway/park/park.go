// Package park keeps calls that go on while their client, which uses the
// protocol without sessions, asks its person. Such a client is answered with
// what is asked and a handle, and makes the call again with the answer and the
// handle (MCP 2026-07-28, basic/patterns/mrtr).
//
// It decides whom a handle belongs to and how long it works. It refuses a
// handle that it did not give to that principal, for that call, and lately; and
// more calls at a time than one principal, or all together, may park. It
// guarantees that nobody can guess a handle, that each works once, and that a
// call whose answer never comes is given up.
package park

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/fleet"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

// Bounds of what is parked.
const (
	// TTL is how long an answer is waited for.
	TTL = 10 * time.Minute
	// Most is how many calls are parked at a time, and MostEach how many of one
	// principal's.
	Most     = 1000
	MostEach = 100
	// gathering is for how long a call must have asked nothing more before its
	// client gets what it asked.
	gathering = fleet.AtOnce
)

// Prefix tells a handle from other states.
const Prefix = "dockgate:"

// ErrExpired is why a call was given up whose answer did not come.
var ErrExpired = errors.New("the answer to what the call asked did not come in time")

// A Call goes on in the background while its client asks. Of is what else its
// owner knows of it.
type Call[T any] struct {
	Of T
	// Principal is whose call it is.
	Principal principal.Principal
	// Same identifies the request: its retry must be the same but for the answer.
	Same string

	ctx       context.Context //nolint:containedctx // it is the call's own life, which outlives its requests
	cancel    context.CancelCauseFunc
	questions chan Question
	done      chan struct{}
	result    json.RawMessage
	err       error
}

// A Question is what a call waits for.
type Question struct {
	Input era.Input

	answer    chan json.RawMessage // holds one
	withdrawn <-chan struct{}
}

// open reports whether its asker still waits for the answer.
func (q Question) open() bool {
	select {
	case <-q.withdrawn:
		return false
	default:
		return true
	}
}

// Start runs the call until it ends, whoever waits for it, once. Do gets a
// context that ends when the call is given up. Run starts a function in a
// goroutine that its caller waits for.
func (c *Call[T]) Start(ctx context.Context, run func(func()), do func(context.Context) (json.RawMessage, error)) {
	c.questions, c.done = make(chan Question), make(chan struct{})
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	run(func() {
		defer c.cancel(nil)
		defer close(c.done)
		c.result, c.err = do(c.ctx)
	})
}

// Ask hands a question to the client when it is there next, and waits for the
// answer. If none comes for ten minutes, the call is given up.
func (c *Call[T]) Ask(ctx context.Context, input era.Input) (json.RawMessage, error) {
	question := Question{Input: input, answer: make(chan json.RawMessage, 1), withdrawn: ctx.Done()}
	late := time.AfterFunc(TTL, func() { c.cancel(ErrExpired) })
	defer late.Stop()
	select {
	case c.questions <- question:
	case <-c.ctx.Done():
		return nil, c.Reason() //nolint:contextcheck // the call outlives the request
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-question.answer:
		return answer, nil
	case <-c.ctx.Done():
		return nil, c.Reason() //nolint:contextcheck // the call outlives the request
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Questions yields what the call asks, one after the other.
func (c *Call[T]) Questions() <-chan Question { return c.questions }

// Gather returns those of the questions that still want an answer, with what
// else the call asks at the same time, each with a key of its own. A server
// that asks several things at once sends them one after the other, and its
// client is to get them together.
func (c *Call[T]) Gather(questions ...Question) []Question {
	quiet := time.NewTimer(gathering)
	defer quiet.Stop()
	for more := true; more; {
		select {
		case question := <-c.questions:
			questions = append(questions, question)
			quiet.Reset(gathering)
		case <-quiet.C:
			more = false
		case <-c.done:
			return nil
		}
	}
	questions = slices.DeleteFunc(questions, func(q Question) bool { return !q.open() })
	keys := make(map[string]bool)
	for i := range questions {
		input := &questions[i].Input
		for base, n := input.Key, 2; keys[input.Key]; n++ {
			input.Key = fmt.Sprintf("%s-%d", base, n)
		}
		keys[input.Key] = true
	}
	return questions
}

// Done is closed when the call has ended.
func (c *Call[T]) Done() <-chan struct{} { return c.done }

// Result is what came of the call, after Done is closed.
func (c *Call[T]) Result() (json.RawMessage, error) { return c.result, c.err }

// GiveUp ends the call for a reason, which may be nil, and waits for its end.
func (c *Call[T]) GiveUp(reason error) {
	c.cancel(reason)
	<-c.done
}

// Reason is why the call was given up, or nil.
func (c *Call[T]) Reason() error { return context.Cause(c.ctx) }

// A Leg is a call with the questions its client was sent.
type Leg[T any] struct {
	Call      *Call[T]
	Questions []Question

	until time.Time
}

// Answer gives the call the answers that came, which are found by the keys of
// the questions, and returns the questions that have none. It may be called
// once.
func (l Leg[T]) Answer(find func(key string) json.RawMessage) (open []Question) {
	for _, question := range l.Questions {
		if answer := find(question.Input.Key); len(answer) > 0 {
			question.answer <- answer
		} else {
			open = append(open, question)
		}
	}
	return open
}

// over reports that nobody needs a leg any more. A call may have ended without
// the answer, and then the retry brings the result.
func (l Leg[T]) over() bool {
	return time.Now().After(l.until) || errors.Is(l.Call.Reason(), ErrExpired)
}

// A Lot holds parked calls by their handles. The zero value is empty. Its
// methods may be called from several goroutines.
type Lot[T any] struct {
	mu   sync.Mutex
	legs map[string]Leg[T]
}

// Keep returns a handle that nobody can guess (128 bits) and that works once.
func (l *Lot[T]) Keep(leg Leg[T]) (string, error) {
	leg.until = time.Now().Add(TTL)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.legs == nil {
		l.legs = make(map[string]Leg[T])
	}
	theirs := 0
	for handle, other := range l.legs {
		if other.over() {
			delete(l.legs, handle)
			continue
		}
		if other.Call.Principal == leg.Call.Principal {
			theirs++
		}
	}
	if len(l.legs) >= Most || theirs >= MostEach {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many calls wait for an answer"}
	}
	handle := Prefix + rand.Text()
	l.legs[handle] = leg
	return handle, nil
}

// IsHandle reports whether a state is, or may once have been, a handle.
func IsHandle(state string) bool { return strings.HasPrefix(state, Prefix) }

// Take returns the leg that a handle stands for, if it is who's, and ends the
// handle. If the request is not the same, the call is given up: whoever has
// the handle is not the client that got it, or does not know what it asked.
func (l *Lot[T]) Take(handle string, who principal.Principal, same string) (Leg[T], error) {
	l.mu.Lock()
	leg, ok := l.legs[handle]
	if ok && leg.Call.Principal == who {
		delete(l.legs, handle)
	}
	l.mu.Unlock()
	if !ok || leg.Call.Principal != who || leg.over() {
		return Leg[T]{}, refuse("requestState was used already, or is too old; send the request without it")
	}
	if leg.Call.Same != same {
		leg.Call.GiveUp(nil)
		return Leg[T]{}, refuse("requestState does not belong to this request")
	}
	return leg, nil
}

func refuse(problem string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: problem}
}
