package fleet

import (
	"cmp"
	"time"
)

// Limits bound waiting.
type Limits struct {
	// Start is the time from the start to the first listing.
	Start time.Duration
	// List is the time for listing what the server offers.
	List time.Duration
	// Call is the time since the last sign of progress of a call.
	Call time.Duration
	// CallMax is the whole time of a call.
	CallMax time.Duration
	// MaxCall is the whole time of any call, by quota; zero is no such bound.
	MaxCall time.Duration
	// Idle is how long a server runs without a call.
	Idle time.Duration
}

// The limits of an order that names none.
const (
	DefaultStart   = 30 * time.Second
	DefaultList    = 10 * time.Second
	DefaultCall    = 30 * time.Second
	DefaultCallMax = 10 * time.Minute
	DefaultIdle    = 5 * time.Minute
)

func (l Limits) withDefaults() Limits {
	call := cmp.Or(l.Call, DefaultCall)
	return Limits{
		Start:   cmp.Or(l.Start, DefaultStart),
		List:    cmp.Or(l.List, DefaultList),
		Call:    call,
		CallMax: cmp.Or(l.CallMax, max(DefaultCallMax, call)),
		MaxCall: l.MaxCall,
		Idle:    cmp.Or(l.Idle, DefaultIdle),
	}
}
