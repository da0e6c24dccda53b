package plan

import (
	"cmp"
	"fmt"

	"github.com/docker/go-units"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Bounds are what a configuration says of every server. The zero Bounds say
// nothing.
type Bounds struct {
	// Limits and Timeouts are those of entries that name none.
	Limits   catalog.Limits
	Timeouts catalog.Timeouts
	// MaxMemory is the most memory that a server may have, in bytes, and
	// MaxMemoryPlace where that was set; zero is no such bound.
	MaxMemory      int64
	MaxMemoryPlace string
}

// A MemoryError is an entry that asks for more memory than a server may have.
type MemoryError struct {
	Server      string
	Wanted, Max int64
	// Place is where the bound was set.
	Place string
}

// Error names both.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s: server %q asks for %s of memory, and no server may have more than %s",
		e.Code(), e.Server, units.BytesSize(float64(e.Wanted)), units.BytesSize(float64(e.Max)))
}

// Code says what kind of failure it is.
func (e *MemoryError) Code() string { return "QUOTA_EXCEEDED" }

// Hint says where the bound is.
func (e *MemoryError) Hint() string {
	return fmt.Sprintf("raise quotas.max_memory_per_server in %s, or lower limits.memory of %s", e.Place, e.Server)
}

// apply returns an entry with what it leaves to the configuration. A server
// that gets less memory than it asks for would only die of it later, so it is
// refused.
func (b Bounds) apply(entry catalog.Server) (catalog.Server, error) {
	l, t := &entry.Limits, &entry.Timeouts
	if b.MaxMemory > 0 && l.Memory > b.MaxMemory {
		return catalog.Server{}, &MemoryError{Server: entry.Name, Wanted: l.Memory, Max: b.MaxMemory, Place: b.MaxMemoryPlace}
	}
	if l.Memory == 0 {
		l.Memory = cmp.Or(b.Limits.Memory, sandbox.DefaultMemory)
		if b.MaxMemory > 0 {
			l.Memory = min(l.Memory, b.MaxMemory)
		}
	}
	l.CPUs = cmp.Or(l.CPUs, b.Limits.CPUs)
	l.PIDs = cmp.Or(l.PIDs, b.Limits.PIDs)
	l.Shm = cmp.Or(l.Shm, b.Limits.Shm)
	l.Tmp = cmp.Or(l.Tmp, b.Limits.Tmp)
	if t.CallMax == 0 && b.Timeouts.CallMax > 0 {
		t.CallMax = max(b.Timeouts.CallMax, t.Call) // an entry's own call is never cut by a default
	}
	if t.Call == 0 && b.Timeouts.Call > 0 {
		t.Call = b.Timeouts.Call
		if t.CallMax > 0 {
			t.Call = min(t.Call, t.CallMax)
		}
	}
	t.Start = cmp.Or(t.Start, b.Timeouts.Start)
	t.List = cmp.Or(t.List, b.Timeouts.List)
	t.Idle = cmp.Or(t.Idle, b.Timeouts.Idle)
	t.Stop = cmp.Or(t.Stop, b.Timeouts.Stop)
	return entry, nil
}
