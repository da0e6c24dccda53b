package fleet

import "time"

const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// A setback counts failures of one server in a row. The first costs nothing:
// most crashes are cured by a restart on the next call.
type setback struct {
	failures int
	until    time.Time
	err      error
}

func (s setback) another(err error) setback {
	var wait time.Duration
	if s.failures > 0 {
		wait = min(firstBackoff<<min(s.failures-1, 10), maxBackoff)
	}
	return setback{failures: s.failures + 1, until: time.Now().Add(wait), err: err}
}

func (s setback) check(server string) error {
	if wait := time.Until(s.until); wait > 0 {
		return &BackoffError{Server: server, Wait: wait, Err: s.err}
	}
	return nil
}

// succeeded forgets the failures of a server that answered a call.
func (f *Fleet) succeeded(k key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.setbacks, k)
}
