package call

import (
	"context"
	"errors"
	"time"
)

// DefaultPatience is how long a call without a progress token takes at most:
// an approval, a pull, a start and the call itself together. Clients give up
// after 60 s; until then they need an answer that says what goes on.
const DefaultPatience = 45 * time.Second

// patient returns a context that ends with the client's patience, and the
// request with that end.
func (c *Caller) patient(ctx context.Context, r Request) (context.Context, Request, context.CancelFunc) {
	if r.Waiting != nil {
		return ctx, r, func() {}
	}
	r.until = time.Now().Add(c.Patience)
	patient, stop := context.WithDeadlineCause(ctx, r.until, &PatienceError{Server: r.Server, Patience: c.Patience})
	return patient, r, stop
}

// impatient turns the end of the client's patience during a call into the
// error that says so; any other error stays.
func impatient(patient context.Context, err error) error {
	var late *PatienceError
	if (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) && errors.As(context.Cause(patient), &late) {
		return late
	}
	return err
}

// waiting turns the end of the client's patience into an answer; any other
// error stays.
func waiting(r Request, doing string, err error) error {
	if !r.until.IsZero() && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(r.until) {
		return &WaitingError{Server: r.Server, Doing: doing}
	}
	return err
}
