package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A street is a gateway, its client, and one good server, the neighbour of
// whoever is there for the test.
type street struct {
	session *upstream.Session
	pid     int
}

// maxMemory is the most that a gateway may take, whatever servers do.
const maxMemory = 150 << 20

// call calls a tool of a server, or one by its whole name, and returns the
// text of the answer, or the error.
func (s *street) call(ctx context.Context, server, tool string) string {
	if server != "" {
		tool = server + "__" + tool
	}
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": map[string]any{"text": "hello"}})
	if err != nil {
		return err.Error()
	}
	raw, err := s.session.Call(ctx, "tools/call", params, nil)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("error %d: %s", refused.Code, refused.Message)
	}
	if err != nil {
		return "failed: " + err.Error()
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) != 1 {
		return string(raw)
	}
	return result.Content[0].Text
}

// listed returns the names under which a server's tools are listed.
func (s *street) listed(t *testing.T, server string) []string {
	t.Helper()
	raw, err := s.session.Call(t.Context(), "tools/list", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Type string }
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("the list cannot be read as a client reads it: %v", err)
	}
	var names []string
	for _, tool := range list.Tools {
		if tool.InputSchema.Type != "object" {
			t.Errorf("%s has an input schema of type %q", tool.Name, tool.InputSchema.Type)
		}
		if strings.HasPrefix(tool.Name, server+"__") {
			names = append(names, tool.Name)
		}
	}
	return names
}

const (
	// quietCalls is how many calls of the neighbour a median is made of.
	quietCalls = 200
	// most is what a call of the neighbour takes at most, but for one in a
	// hundred.
	most = 50 * time.Millisecond
	// rounds is how often something is done at most to find out its cost.
	rounds = 5
)

// A cost is what something cost the neighbour, each time that it was done.
//
// The machine is shared, and what else goes on may cost more than what is
// measured. So everything is compared with calls right before it, and where
// one comparison is not fine, more are made, and the median of all of them
// counts: a cost that is real is there in most.
type cost []disturbance

// A disturbance is one comparison of calls meanwhile with calls before.
type disturbance struct {
	quiet, median, p99 time.Duration
}

func (c cost) fine() bool {
	return c.ratio() <= 2 && c.middle(func(d disturbance) float64 { return float64(d.p99) }) < float64(most)
}

// ratio is how much longer the neighbour's calls took.
func (c cost) ratio() float64 {
	return c.middle(func(d disturbance) float64 { return float64(d.median) / float64(d.quiet) })
}

func (c cost) middle(of func(disturbance) float64) float64 {
	var all []float64
	for _, d := range c {
		all = append(all, of(d))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// String shows each comparison.
func (c cost) String() string {
	var all []string
	for _, d := range c {
		all = append(all, fmt.Sprintf("%v → %v (%.2f), p99 %v", d.quiet, d.median, float64(d.median)/float64(d.quiet), d.p99))
	}
	return strings.Join(all, "; ")
}

// disturb calls the neighbour, and again while do lasts.
func (s *street) disturb(t *testing.T, do func()) cost {
	t.Helper()
	over := make(chan struct{})
	close(over)
	quiet := s.visit(t, over)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	meanwhile := s.visit(t, done)
	return cost{{quiet: quantile(quiet, 50), median: quantile(meanwhile, 50), p99: quantile(meanwhile, 99)}}
}

// visit calls the neighbour until done is closed, and often enough.
func (s *street) visit(t *testing.T, done <-chan struct{}) []time.Duration {
	t.Helper()
	var each []time.Duration
	for over := false; !over || len(each) < quietCalls; {
		begun := time.Now()
		got := s.call(t.Context(), "neighbour", "echo")
		each = append(each, time.Since(begun))
		if got != "hello" {
			t.Errorf("the neighbour answers %q, want hello", got)
			<-done
			return each
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
	slices.Sort(each)
	return each
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100].Round(time.Microsecond)
}

// peak is the most memory that the gateway had since forgetPeak.
func (s *street) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("no VmHWM in %s", status)
	return 0
}

// forgetPeak makes the kernel count the peak anew (proc(5), clear_refs).
func (s *street) forgetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0o200); err != nil {
		t.Fatal(err)
	}
}
