package load_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/upstream"
)

// latencies are how long things took.
type latencies []time.Duration

const (
	// every is the time between two pings.
	every = 10 * time.Millisecond
	// stall is the longest that the gateway may keep a ping, beyond what the
	// machine does.
	stall = 100 * time.Millisecond
	// beyond is by how much it must be slower than a process that only
	// answers before that is its own fault: it has more to do than that one,
	// and the engine and the callers take the processors from both.
	beyond = 10
)

// beat pings a session until ctx ends. It does not wait for the answers, so
// that a stall shows in every ping that falls into it.
func beat(ctx context.Context, session *upstream.Session) (latencies, error) {
	var mu sync.Mutex
	var all latencies
	var group errgroup.Group
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, group.Wait()
		case <-ticker.C:
		}
		begun := time.Now()
		group.Go(func() error {
			patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			if err := session.Ping(patient); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(begun))
			return nil
		})
	}
}

func join(all []latencies) latencies { return slices.Concat(all...) }

// quantile returns the value that a share of all does not pass.
func (l latencies) quantile(share float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// String returns the quantiles.
func (l latencies) String() string {
	round := func(share float64) time.Duration { return l.quantile(share).Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", round(0.5), round(0.99), round(1), len(l))
}

// histogram returns a line for each range that has any.
func (l latencies) histogram() string {
	bounds := []time.Duration{
		200 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
		10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, stall, 2 * stall, 5 * stall, time.Hour,
	}
	counts := make([]int, len(bounds))
	for _, took := range l {
		counts[slices.IndexFunc(bounds, func(bound time.Duration) bool { return took <= bound })]++
	}
	var b strings.Builder
	for i, count := range counts {
		if count > 0 {
			fmt.Fprintf(&b, "  up to %-6v %6d\n", bounds[i], count)
		}
	}
	return b.String()
}

// mustKeepUp fails the test if a gateway stalls, and the machine does not.
func (l latencies) mustKeepUp(t *testing.T, floor latencies) {
	t.Helper()
	if got := l.quantile(0.99); got > stall && got > beyond*floor.quantile(0.99) {
		t.Errorf("one in a hundred pings takes %v or more, and %v on a process that only answers; want at most %v", got, floor.quantile(0.99), stall)
	}
}
