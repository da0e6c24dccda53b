package endpoint

import (
	"sync/atomic"

	"github.com/dockgate/dockgate/internal/access"
)

// A stay is what one request takes of what its principal may have under way at
// a time: until its HTTP request is over, and so is every call that it brought.
// Those of a client with sessions go on without it (MCP 2025-11-25:
// basic/transports, "Sending Messages to the Server"), and a client that leaves
// them behind must not have room for others. The zero value takes nothing.
type stay struct {
	accounts *accounts
	account  *account
	// denied is why the caller may not use the gateway any more, once that was
	// seen by a call.
	denied atomic.Pointer[access.RefusedError]

	// The rest is guarded by the lock of the accounts.
	open  int // what it takes while its HTTP request is open
	calls int // those under way
	taken int // of the account
}

// claim takes room for the requests of a body, and reports whether there was
// enough.
func (s *stay) claim(requests int) bool {
	if s.account == nil {
		return true
	}
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	if more := requests - s.open; more > 0 {
		if s.account.inFlight+more > s.accounts.limits.InFlight {
			return false
		}
		s.open = requests
		s.settle()
	}
	return true
}

// begin counts a call until end is called, once.
func (s *stay) begin() (end func()) {
	s.add(1)
	return func() { s.add(-1) }
}

func (s *stay) add(calls int) {
	if s.account == nil {
		return
	}
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.calls += calls
	s.settle()
}

// leave ends the HTTP request. It may be called more than once.
func (s *stay) leave() {
	if s.account == nil {
		return
	}
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.open = 0
	s.settle()
}

// settle brings the account up to date. The lock of the accounts is held.
func (s *stay) settle() {
	now := max(s.open, s.calls)
	s.account.inFlight += now - s.taken
	s.taken = now
}

// watch returns what gives a call up when its caller may not use the gateway
// any more, whether its HTTP request is still open or not.
func (e *Endpoint) watch(visitor access.Visitor, s *stay) func(giveUp func()) (stop func()) {
	return func(giveUp func()) func() {
		return e.Access.WatchFunc(visitor, func(cause error) {
			s.denied.Store(denial(cause)) // before there can be an answer that says it was given up
			giveUp()
		})
	}
}
