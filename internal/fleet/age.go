package fleet

import (
	"fmt"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
)

// The ages of a server, before the one at which any gateway may remove its
// container, see [sandbox.Lifetime].
const (
	// renewAge is from when on a server stops as soon as nobody uses it.
	renewAge = sandbox.Lifetime / 2
	// retireAge is from when on a server gets no more calls: those that it has
	// go on, and the next begins with another one.
	retireAge = sandbox.Lifetime - time.Hour
)

// ErrExpired is the end of a server that ran for as long as one may.
var ErrExpired = fmt.Errorf("it ran for %v, the longest that a server may, and was stopped", sandbox.Lifetime)

func (i *instance) age() time.Duration { return time.Since(i.born) }

// unused is how long an instance may go on that nobody uses.
func (i *instance) unused() time.Duration { return min(i.limits.Idle, renewAge-i.age()) }

// expire ends an instance whose time is over, whoever uses it.
func (f *Fleet) expire(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.expired = true
	f.end(i)
}
