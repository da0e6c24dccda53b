package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/dockgate/dockgate/internal/upstream"
)

// A crime is what a server of dockgate-test/faulty does wrong, and what a call
// of it may cost: its caller this answer within this time, and nobody else
// anything.
type crime struct {
	fault string
	// entry is the rest of the catalog entry; small if empty.
	entry string
	// tool is called; fault if empty.
	tool string
	// want is a regular expression for the whole text of the answer.
	want   string
	within time.Duration
	// next is the same for a call of echo that follows; its text if empty.
	next string
	// lists is how many tools of the server are listed then; those of a good
	// server if zero.
	lists int
	// said is what the gateway's log says of it.
	said string
}

const (
	// small is the entry of most: what it may use is soon used up.
	small = "limits: {memory: 64MB, cpus: 0.5, pids: 64, tmp: 16MB}, timeouts: {start: 4s, call: 2s}"
	// broad is for floods, which take their time.
	broad = "limits: {memory: 64MB, cpus: 0.5}, timeouts: {call: 40s}"
	// large is for lists that the server itself needs memory for.
	large = "limits: {memory: 256MB, cpus: 0.5}, timeouts: {start: 20s, call: 10s}"

	// goodTools is how many tools a good server has.
	goodTools = 4
	none      = -1

	// soon is time for a start and a call on a busy machine.
	soon = 8 * time.Second
	long = 30 * time.Second
)

func crimes() []crime {
	const (
		failed  = `SERVER_CONNECTION_ERROR: `
		logs    = `\nsee what it wrote: dockgate logs `
		silent  = `it answered neither a call nor a ping, and was stopped`
		refused = `TOOL_EXECUTION_ERROR: server "`
	)
	late := func(fault string) string {
		return `TOOL_EXECUTION_TIMEOUT: server "` + fault + `" did not answer the call within 2s\nraise timeouts.call of ` + fault + `, if it needs longer`
	}
	start := func(fault, why string) string { return failed + `start server "` + fault + `": ` + why + logs + fault }
	lost := func(fault, why string) string { return failed + `server "` + fault + `"` + why + logs + fault }
	again := func(want string) string { // a start that fails again and again costs a pause
		return want + `|` + failed + `server "[a-z-]+" failed and is not started again for [0-9]+s: .*`
	}
	// An engine under load misses some of the kernel's reports; then the cause
	// is a guess, and said as one.
	full := func(fault string) string {
		return `OUT_OF_MEMORY: "` + fault + `" passed its 64 MB limit; raise limits.memory|` + failed + `.*"` + fault + `".* was ended by signal 9.*` +
			`\nthe kernel kills what passes its memory limit: if it needs more, raise limits.memory of ` + fault + `; see what it wrote: dockgate logs ` + fault
	}
	mute := failed + `server "mute" did not answer the start within 4s\nraise timeouts.start of mute, if it needs longer`
	exits := start("exit-start", `it exited with code 3 before it answered: cannot find its database`)
	future := start("version-start", `initialize: unknown protocol version 2099-01-01`)
	endless := start("endless", `tools/list: list does not end`)
	circle := start("circle", `tools/list: list does not end`)
	return []crime{
		{fault: "exit-probe", tool: "echo", want: `hello`, within: soon}, // first, while nobody knows the image's era
		{fault: "mute", want: mute, within: soon, next: mute, lists: none},
		{fault: "exit-start", want: exits, within: soon, next: again(exits), lists: none},
		{fault: "version-start", want: future, within: soon, next: again(future), lists: none},
		{fault: "hungry-start", want: full("hungry-start"), within: soon, next: full("hungry-start") + `|OUT_OF_MEMORY: server .* is not started again .*`, lists: none},

		{fault: "garbage", want: `hello`, within: soon},
		{fault: "pieces", want: `hello`, within: soon},
		{fault: "half", want: late("half"), within: soon, next: `hello|` + late("half") + `|` + lost("half", ": "+silent)},
		{fault: "long-line", entry: broad, want: refused + `long-line": message longer than 16777216 bytes`, within: long},
		{fault: "stderr", entry: broad, want: `said it`, within: long},
		{fault: "notifications", entry: broad, want: `told it`, within: long},
		{fault: "unknown-ids", entry: broad, want: `answered it`, within: long},
		{fault: "duplicates", want: `first`, within: soon},
		{fault: "version", want: refused + `version": its answer is not JSON-RPC 2\.0: jsonrpc member is not "2\.0" at byte 16`, within: soon},
		{fault: "deep", want: refused + `deep": its answer is not JSON-RPC 2\.0: nested too deep at byte [0-9]+`, within: soon},
		{fault: "utf8", want: "a\ufffd+b", within: soon},

		{fault: "pages", entry: large, want: `hello`, within: long, lists: 1000, said: `"list is too long and was cut" server=pages list=tools`},
		{fault: "endless", entry: large, want: endless, within: long, next: again(endless), lists: none},
		{fault: "circle", want: circle, within: soon, next: again(circle), lists: none},
		{fault: "changing", want: `hello`, within: soon, lists: goodTools + 1},
		{
			fault: "names", want: `hello`, within: soon, lists: goodTools + 5,
			said: `"tool left out" server=names err="tool name of 10240 bytes, longer than 1024"`,
		},
		{
			fault: "schemas", want: `hello`, within: soon, lists: goodTools + 6,
			said: `"entry cannot be listed" server=schemas kind=tool name=schema-4 err="inputSchema is not an object"`,
		},
		{
			fault: "huge", entry: large, want: `hello`, within: long, lists: goodTools + 41,
			said: `"tool left out" server=huge err="tools: entry of 10485`,
		},

		{fault: "exit-call", want: lost("exit-call", ` exited with code 5: lost its database`), within: soon},
		{fault: "fork-bomb", want: late("fork-bomb"), within: soon, next: late("fork-bomb") + `|` + lost("fork-bomb", ": "+silent)},
		{fault: "hungry", want: full("hungry"), within: soon},
		{fault: "busy", want: late("busy"), within: soon, next: late("busy") + `|` + lost("busy", ": "+silent)},
		{fault: "tmp", want: `16 MB: no space left on device`, within: soon},
		{fault: "files", want: `163[0-9]{2} files: too many open files`, within: soon},

		{fault: "deaf", want: `hello`, within: soon},
		{fault: "stubborn", want: `hello`, within: soon},
	}
}

// Whatever a server does, its own callers get a clear answer in time, those of
// other servers notice nothing, the gateway does not grow, and nothing is left.
func TestHostileServers(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/faulty")
	entries := "  neighbour: {image: dockgate-test/faulty}\n"
	args := []string{"--approve", "all", "--expose", "active", "--server", "neighbour"}
	for _, c := range crimes() {
		entries += fmt.Sprintf("  %s: {image: dockgate-test/faulty, env: {FAULT: %s}, %s}\n", c.fault, c.fault, cmp.Or(c.entry, small))
		args = append(args, "--server", c.fault)
	}
	h := newHouse(t, entries)
	gate := h.serve(t, args...)
	s := &street{session: connect(t, gate, upstream.Legacy), pid: gate.cmd.Process.Pid}
	reported := 0
	for _, c := range crimes() {
		t.Run(c.fault, func(t *testing.T) {
			for _, answer := range s.suffer(t, c) {
				if strings.HasPrefix(answer, "OUT_OF_MEMORY: ") {
					reported++
				}
			}
		})
	}
	if reported == 0 {
		t.Error("none of three servers that passed their memory limit was reported as that")
	}
	t.Run("terminal", func(t *testing.T) { staysReadable(t, h, s) })
	_ = gate.Close()
	within(t, 10*time.Second, "nothing left", func() bool { return len(left(t, api, h)) == 0 })
	_ = gate.cmd.Wait()
	said := gate.stderr.String()
	for _, c := range crimes() {
		if !strings.Contains(said, c.said) {
			t.Errorf("the gateway's log does not say %s:\n%s", c.said, said)
		}
	}
	readable(t, "the gateway's log", said)
}

// suffer commits one crime and looks at what it cost whom. It returns the
// answers to the call and to the next.
func (s *street) suffer(t *testing.T, c crime) []string {
	s.forgetPeak(t)
	commit := func() (got, next string, took time.Duration) {
		begun := time.Now()
		got = s.call(t.Context(), c.fault, cmp.Or(c.tool, "fault"))
		took = time.Since(begun)
		return got, s.call(t.Context(), c.fault, "echo"), took
	}
	var got, next string
	var took time.Duration
	cost := s.disturb(t, func() { got, next, took = commit() })
	matches(t, "a call", got, c.want)
	if took > c.within {
		t.Errorf("a call took %v, want at most %v", took, c.within)
	}
	matches(t, "the next call", next, cmp.Or(c.next, "hello"))
	// A list is fetched beside the calls.
	want := max(0, cmp.Or(c.lists, goodTools))
	within(t, soon, fmt.Sprintf("%d tools listed", want), func() bool {
		return len(s.listed(t, c.fault)) == want
	})
	for round := 1; !cost.fine() && round < rounds; round++ {
		cost = append(cost, s.disturb(t, func() { _, _, _ = commit() })...)
	}
	if !cost.fine() {
		t.Errorf("it cost the neighbour %v, want at most twice the quiet median and less than %v", cost, most)
	}
	if c.lists != none { // whatever it did, it is there again
		within(t, soon, "an answer", func() bool { return s.call(t.Context(), c.fault, "echo") == "hello" })
	}
	peak := s.peak(t)
	if peak > maxMemory {
		t.Errorf("the gateway took %d MB, want at most %d", peak>>20, maxMemory>>20)
	}
	t.Logf("%v; peak %d MB; neighbour %v", took.Round(time.Millisecond), peak>>20, cost)
	return []string{got, next}
}

func matches(t *testing.T, what, got, want string) {
	t.Helper()
	if !regexp.MustCompile(`(?s)^(` + want + `)$`).MatchString(got) {
		t.Errorf("%s = %.600q, want %s", what, got, want)
	}
}

// Several floods at once are more than a machine of two processors can carry;
// the gateway neither grows for it nor makes the others wait in turn.
func TestFloodsAtOnce(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/faulty")
	floods := map[string]string{
		"long-line": `TOOL_EXECUTION_ERROR: .* message longer than 16777216 bytes`, "stderr": `said it`,
		"notifications": `told it`, "unknown-ids": `answered it`,
	}
	entries := "  neighbour: {image: dockgate-test/faulty}\n"
	args := []string{"--approve", "all", "--expose", "active", "--server", "neighbour"}
	for flood := range floods {
		entries += fmt.Sprintf("  %s: {image: dockgate-test/faulty, env: {FAULT: %s}, %s}\n", flood, flood, broad)
		args = append(args, "--server", flood)
	}
	h := newHouse(t, entries)
	gate := h.serve(t, args...)
	s := &street{session: connect(t, gate, upstream.Legacy), pid: gate.cmd.Process.Pid}
	s.forgetPeak(t)
	all := func() {
		var group sync.WaitGroup
		for flood, want := range floods {
			group.Go(func() { matches(t, flood, s.call(t.Context(), flood, "fault"), want) })
		}
		group.Wait()
	}
	cost := s.disturb(t, all)
	for round := 1; cost.ratio() > 2 && round < rounds; round++ {
		cost = append(cost, s.disturb(t, all)...)
	}
	if cost.ratio() > 2 {
		t.Errorf("it cost the neighbour %v, want at most twice the quiet median", cost)
	}
	if peak := s.peak(t); peak > maxMemory {
		t.Errorf("the gateway took %d MB, want at most %d", peak>>20, maxMemory>>20)
	}
	t.Logf("peak %d MB; neighbour %v", s.peak(t)>>20, cost)
	_ = gate.Close()
	within(t, 10*time.Second, "nothing left", func() bool { return len(left(t, api, h)) == 0 })
}

// staysReadable calls a tool whose name is made of what terminals obey, and
// looks at what people see of it.
func staysReadable(t *testing.T, h house, s *street) {
	called := 0
	for _, name := range s.listed(t, "names") {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
			t.Errorf("listed as %q", name)
		}
		if strings.Contains(name, "red_") {
			called++
			if got, want := s.call(t.Context(), "", name), "error -32602: unknown tool"; got != want {
				t.Errorf("%s = %q, want the server's own %q", name, got, want)
			}
		}
	}
	if called != 1 {
		t.Errorf("%d tools are listed with the name of colours, want 1", called)
	}
	for _, args := range [][]string{
		{"audit", "tail"}, {"approvals"}, {"ls"}, {"ps"}, {"plan", "names"}, {"logs", "stderr"}, {"plan", "\x1b[31mred"},
	} {
		out, err := h.command(t, args...)
		if err != nil {
			_, said, _ := strings.Cut(err.Error(), "\n")
			out += said
		}
		readable(t, strings.Join(args, " "), out)
		if args[0] == "audit" && !strings.Contains(out, "red") {
			t.Errorf("audit tail does not show the call:\n%s", out)
		}
	}
}

// readable checks that a text has nothing that a terminal obeys or hides.
func readable(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%s shows %q", what, r)
			return
		}
	}
}

// A server that lists badly the second time keeps the tools that it listed the
// first time, and they are marked.
func TestBadListKeepsTheOldTools(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/faulty")
	folder := t.TempDir()
	h := newHouse(t, fmt.Sprintf("  thing: {image: dockgate-test/faulty, env: {FAULT: bad-list}, mounts: [{source: %q, target: /data}]}\n", folder))
	for _, round := range []struct {
		stale string
	}{{""}, {"tools/list"}, {"tools/list"}} {
		gate := h.serve(t, "--approve", "all", "--server", "thing")
		s := &street{session: connect(t, gate, upstream.Legacy)}
		if got := s.call(t.Context(), "thing", "echo"); got != "hello" {
			t.Errorf("echo = %q, want hello", got)
		}
		if got := s.listed(t, "thing"); len(got) != goodTools {
			t.Errorf("tools = %v, want %d", got, goodTools)
		}
		raw, err := s.session.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"mcp_active","arguments":{}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		var active struct {
			StructuredContent struct {
				Servers []struct{ Stale string }
			}
		}
		if err := json.Unmarshal(raw, &active); err != nil || len(active.StructuredContent.Servers) != 1 {
			t.Fatalf("mcp_active = %s, %v, want one server", raw, err)
		}
		if got := active.StructuredContent.Servers[0].Stale; (got == "") != (round.stale == "") || !strings.Contains(got, round.stale) {
			t.Errorf("stale = %q, want %q in it", got, round.stale)
		}
		_ = gate.Close()
		_ = gate.cmd.Wait()
	}
}
