package endpoint

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dockgate/dockgate/internal/principal"
)

// accounts count what each principal uses.
type accounts struct {
	limits Limits

	mu   sync.Mutex
	each map[principal.Principal]*account
}

// An account is what one principal uses. Its counts are guarded by the lock of
// the accounts.
type account struct {
	limiter  *rate.Limiter
	inFlight int
	listens  int
}

// manyAccounts is from how many on those are forgotten that are not in use.
const manyAccounts = 1000

// of returns the account of a principal. a.mu is held.
func (a *accounts) of(who principal.Principal) *account {
	if found := a.each[who]; found != nil {
		return found
	}
	if a.each == nil {
		a.each = make(map[principal.Principal]*account)
	}
	if len(a.each) >= manyAccounts {
		for other, account := range a.each {
			if account.inFlight == 0 && account.listens == 0 && account.limiter.Tokens() >= float64(a.limits.Burst) {
				delete(a.each, other)
			}
		}
	}
	made := &account{limiter: rate.NewLimiter(rate.Limit(a.limits.Rate), a.limits.Burst)}
	a.each[who] = made
	return made
}

// spend takes messages from what a principal may send, and reports whether
// there was enough.
func (a *accounts) spend(who principal.Principal, messages int) bool {
	a.mu.Lock()
	limiter := a.of(who).limiter
	a.mu.Unlock()
	now := time.Now()
	return limiter.AllowN(now, messages)
}

// enter begins the stay of a request; nil if there are too many.
func (a *accounts) enter(who principal.Principal) *stay {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.of(who)
	if account.inFlight >= a.limits.InFlight {
		return nil
	}
	account.inFlight++
	return &stay{accounts: a, account: account, open: 1, taken: 1}
}

// stay returns one that takes what its calls do, and nothing by itself.
func (a *accounts) stay(who principal.Principal) *stay {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &stay{accounts: a, account: a.of(who)}
}

// listen counts a stream that waits for news until leave is called; nil if
// there are too many.
func (a *accounts) listen(who principal.Principal) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.of(who)
	if account.listens >= a.limits.Listens {
		return nil
	}
	account.listens++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		account.listens--
	}
}
