package upstream

import (
	"context"
	"encoding/json"
	"time"
)

// listenGrace is how long Listen waits, once it has given a subscription up, for
// the server to say that it has ended. A server need not say so.
const listenGrace = 250 * time.Millisecond

// Listen subscribes to a modern server's notifications, which come to
// Options.Notify, until the server ends the subscription, or ctx ends. Then the
// server is told, and gets a moment to answer: it may take the end of one
// subscription for that of the next.
func (s *Session) Listen(ctx context.Context, params json.RawMessage) error {
	c, err := s.begin(s.info.Era, "subscriptions/listen", params, s.declaredByCalls, nil)
	if err != nil {
		return err
	}
	select {
	case a := <-c.answer:
		_, err := c.end(ctx, a)
		return err
	case <-s.done:
		s.forget(c)
		return &LostError{Delivered: !s.out.withdraw(c.item), Err: s.err}
	case <-ctx.Done():
	}
	defer s.forget(c)
	if s.out.withdraw(c.item) {
		return ctx.Err()
	}
	s.cancel(ctx, c)
	grace := time.NewTimer(listenGrace)
	defer grace.Stop()
	select {
	case <-c.answer:
	case <-grace.C:
	case <-s.done:
	}
	return ctx.Err()
}
