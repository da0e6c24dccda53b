package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

// A crime is what a server of dockgate-test/faulty does wrong, and what a call
// of it may cost: its caller this answer within this time, and nobody else
// anything.
type crime struct {
	fault string
	// limits are more of the catalog entry.
	entry string
	// tool is called; fault if empty.
	tool string
	// want is a regular expression for all of the answer's text.
	want   string
	within time.Duration
	// after is the answer to a call of echo that follows; its text if empty.
	after string
}

const (
	// small is the entry of most: what it may use is soon used up.
	small = "limits: {memory: 64MB, cpus: 0.5, pids: 64, tmp: 16MB}, timeouts: {start: 4s, call: 2s}"
	gone  = `SERVER_CONNECTION_ERROR: `
)

func crimes() []crime {
	return []crime{
		{fault: "mute", want: `.*`, after: `.*`},
		{fault: "exit-start", want: `.*`, after: `.*`},
		{fault: "exit-probe", tool: "echo", want: `.*`},
		{fault: "version-start", want: `.*`, after: `.*`},
		{fault: "hungry-start", want: `.*`, after: `.*`},
		{fault: "garbage", want: `.*`},
		{fault: "pieces", want: `.*`},
		{fault: "half", want: `.*`},
		{fault: "long-line", entry: "limits: {memory: 64MB, cpus: 0.5}, timeouts: {call: 30s}", want: `.*`},
		{fault: "stderr", entry: "limits: {memory: 64MB, cpus: 0.5}, timeouts: {call: 30s}", want: `.*`},
		{fault: "notifications", entry: "limits: {memory: 64MB, cpus: 0.5}, timeouts: {call: 30s}", want: `.*`},
		{fault: "unknown-ids", entry: "limits: {memory: 64MB, cpus: 0.5}, timeouts: {call: 30s}", want: `.*`},
		{fault: "duplicates", want: `.*`},
		{fault: "version", want: `.*`},
		{fault: "deep", want: `.*`},
		{fault: "utf8", want: `.*`},
		{fault: "pages", want: `.*`},
		{fault: "endless", want: `.*`, after: `.*`},
		{fault: "circle", want: `.*`, after: `.*`},
		{fault: "changing", want: `.*`},
		{fault: "names", want: `.*`},
		{fault: "schemas", want: `.*`},
		{fault: "huge", entry: "limits: {memory: 256MB, cpus: 0.5}, timeouts: {start: 10s, call: 5s}", want: `.*`},
		{fault: "exit-call", want: `.*`},
		{fault: "fork-bomb", want: `.*`},
		{fault: "hungry", want: `.*`},
		{fault: "busy", want: `.*`},
		{fault: "tmp", want: `.*`},
		{fault: "files", want: `.*`},
		{fault: "deaf", want: `.*`},
		{fault: "stubborn", want: `.*`},
	}
}

// Whatever a server does, its own callers get a clear answer in time, those of
// other servers notice nothing, the gateway does not grow, and nothing is left.
func TestHostileServers(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/faulty")
	servers := "  neighbour: {image: dockgate-test/faulty}\n"
	names := []string{"neighbour"}
	for _, c := range crimes() {
		servers += fmt.Sprintf("  %s: {image: dockgate-test/faulty, env: {FAULT: %s}, %s}\n", c.fault, c.fault, cmp.Or(c.entry, small))
		names = append(names, c.fault)
	}
	h := newHouse(t, servers)
	args := []string{"--approve", "all", "--expose", "active"}
	for _, name := range names {
		args = append(args, "--server", name)
	}
	gate := h.serve(t, args...)
	street := &street{session: connect(t, gate, upstream.Legacy), pid: gate.cmd.Process.Pid}
	for _, c := range crimes() {
		t.Run(c.fault, func(t *testing.T) { street.suffer(t, c) })
	}
	begun := time.Now()
	_ = gate.Close()
	within(t, 10*time.Second, "nothing left", func() bool { return len(left(t, api, h)) == 0 })
	t.Logf("all gone after %v", time.Since(begun).Round(time.Millisecond))
}

// A street is a gateway, its client, and its good server, the neighbour.
type street struct {
	session *upstream.Session
	pid     int
}

func (s *street) suffer(t *testing.T, c crime) {
	s.forgetPeak(t)
	quiet := s.visit(t, closed())
	done := make(chan struct{})
	var got string
	var took time.Duration
	go func() {
		defer close(done)
		begun := time.Now()
		got = s.call(t.Context(), c.fault, cmp.Or(c.tool, "fault"))
		took = time.Since(begun)
	}()
	meanwhile := s.visit(t, done)
	<-done
	t.Logf("answer after %v: %s", took.Round(time.Millisecond), clip(got))
	t.Logf("neighbour: quiet %v, p99 %v; meanwhile %v, p99 %v, of %d; ratio %.2f", quantile(quiet, 50), quantile(quiet, 99),
		quantile(meanwhile, 50), quantile(meanwhile, 99), len(meanwhile), float64(quantile(meanwhile, 50))/float64(quantile(quiet, 50)))
	begun := time.Now()
	next := s.call(t.Context(), c.fault, "echo")
	t.Logf("next after %v: %s", time.Since(begun).Round(time.Millisecond), clip(next))
	t.Logf("peak %d MB", s.peak(t)>>20)
	if !regexp.MustCompile(`(?s)^` + c.want + `$`).MatchString(got) {
		t.Errorf("a call of %s = %q, want %s", c.fault, got, c.want)
	}
}

func clip(text string) string {
	if len(text) > 300 {
		return text[:300] + fmt.Sprintf("… (%d)", len(text))
	}
	return text
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// call returns the text of an answer, or the error.
func (s *street) call(ctx context.Context, server, tool string) string {
	params, err := json.Marshal(map[string]any{"name": server + "__" + tool, "arguments": map[string]any{"text": "hello"}})
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
	if err := json.Unmarshal(raw, &result); err != nil {
		return err.Error()
	}
	if len(result.Content) == 0 {
		return string(raw)
	}
	return result.Content[0].Text
}

// visit calls the neighbour until done, and at least 100 times.
func (s *street) visit(t *testing.T, done <-chan struct{}) []time.Duration {
	t.Helper()
	var each []time.Duration
	for over := false; !over || len(each) < 100; {
		begun := time.Now()
		if got := s.call(t.Context(), "neighbour", "echo"); got != "hello" {
			t.Fatalf("the neighbour answers %q, want hello", got)
		}
		each = append(each, time.Since(begun))
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
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
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

func (s *street) forgetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.pid), []byte("5"), 0o200); err != nil {
		t.Fatal(err)
	}
}
