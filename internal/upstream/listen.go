package upstream

import (
	"context"
	"encoding/json"
	"time"
)

// listenGrace is how long the answer to a subscription is awaited that was
// given up. A server need not send one.
const listenGrace = 250 * time.Millisecond

// Listen subscribes to a modern server's notifications, which come to
// Options.Notify, until the server ends it, or ctx does. Then the server is
// told, and Listen gives it a moment to say that it has ended: a server may
// take the end of one subscription for that of the next.
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
