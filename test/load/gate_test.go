package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/sandbox/pipe"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

// needDemo returns the engine, which must have the image of the demo. Without
// it the test is skipped, or fails if TEST_ENGINE=require.
func needDemo(t *testing.T) *client.Client {
	t.Helper()
	refuse := t.Skipf
	if os.Getenv("TEST_ENGINE") == "require" {
		refuse = t.Fatalf
	}
	api, err := engine.Connect(t.Context())
	if err != nil {
		refuse("no engine: %v", err)
	}
	t.Cleanup(func() { _ = api.Close() })
	if _, err := api.ImageInspect(t.Context(), "dockgate/demo"); err != nil {
		refuse("image dockgate/demo: %v; run: make images", err)
	}
	return api
}

// A program is a process with pipes for its stdin and stdout.
type program struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	stderr pipe.Tail
}

func start(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	cmd.Stderr = &p.stderr
	var err error
	if p.WriteCloser, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Reader, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return p, cmd.Start()
}

// Close closes the program's stdin, which ends it.
func (p *program) Close() error {
	if err := p.WriteCloser.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// connect speaks MCP with a program.
func (p *program) connect(ctx context.Context) (*upstream.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return upstream.Connect(ctx, p, upstream.Options{
		Client: upstream.Implementation{Name: "load", Version: "1"}, Era: upstream.Legacy,
	})
}

// patience is how long a program may take to end.
const patience = 30 * time.Second

// wait waits until the program has ended, after all that it wrote was read.
func (p *program) wait() error {
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("%s did not end within %v\n%s", p.cmd, patience, p.stderr.String())
	}
	return err
}

// newFloor starts a process that only answers, until the test ends.
func newFloor(t *testing.T) *upstream.Session {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asFloor+"=1")
	p, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	session, err := p.connect(t.Context())
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, p.stderr.String())
	}
	t.Cleanup(func() {
		if err := errors.Join(session.Close(), p.wait()); err != nil {
			t.Error(err)
		}
	})
	return session
}

// A house is a state folder, with a configuration and a catalog in which the
// demo's server has many names.
type house struct {
	state, config string
	servers       []string
}

// newHouse makes a house with n servers, of which as many as there are places
// may run at a time; fields are more of the entry of each.
func newHouse(t *testing.T, n, places int, fields string) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{state: filepath.Join(dir, "state"), config: filepath.Join(dir, "config.yaml")}
	catalog := filepath.Join(dir, "catalog.yaml")
	entries := "version: 1\nservers:\n"
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		h.servers = append(h.servers, name)
		entries += "  " + name + ": {image: dockgate/demo" + fields + "}\n"
	}
	config := fmt.Sprintf("catalogs: [%s]\nquotas: {max_running: %d}\n", catalog, places)
	for path, text := range map[string]string{catalog: entries, h.config: config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// command is one of the gateway's.
func (h *house) command(args ...string) *exec.Cmd {
	return exec.Command(binary, append([]string{"--state", h.state, "--config", h.config}, args...)...)
}

// serve starts a gateway.
func (h *house) serve() (*program, error) { return start(h.command("serve", "--approve", "all")) }

// A gate is a gateway and the one client that it has.
type gate struct {
	*program
	session *upstream.Session
	servers []string
}

// open starts a gateway and its conversation, until the test ends.
func (h *house) open(t *testing.T) *gate {
	t.Helper()
	p, err := h.serve()
	if err != nil {
		t.Fatal(err)
	}
	session, err := p.connect(t.Context())
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, p.stderr.String())
	}
	t.Cleanup(func() {
		_ = session.Close()
		if t.Failed() {
			t.Logf("gateway said:\n%s", p.stderr.String())
		}
	})
	return &gate{program: p, session: session, servers: h.servers}
}

// close ends a gateway as its client does that leaves.
func (g *gate) close() error { return errors.Join(g.session.Close(), g.wait()) }

func sessions(gates []*gate) []*upstream.Session {
	var all []*upstream.Session
	for _, g := range gates {
		all = append(all, g.session)
	}
	return all
}

// work makes the calls of one caller, on all servers in turn.
func (g *gate) work(ctx context.Context, caller, calls int) (latencies, error) {
	var took latencies
	for n := range calls {
		server := g.servers[(caller+n)%len(g.servers)]
		begun := time.Now()
		var err error
		if n%20 == 19 { // others overtake it
			err = rest(ctx, g.session, server, 1+(caller*calls+n)%31)
		} else {
			err = echo(ctx, g.session, server, fmt.Sprintf("caller %d, call %d of %s", caller, n, server))
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// echo makes a call with a nonce, which must be its answer.
func echo(ctx context.Context, session *upstream.Session, server, nonce string) error {
	return ask(ctx, session, server+"__echo", map[string]any{"text": nonce}, nonce)
}

// rest makes a call that takes some time.
func rest(ctx context.Context, session *upstream.Session, server string, milliseconds int) error {
	return ask(ctx, session, server+"__sleep", map[string]any{"ms": milliseconds}, fmt.Sprintf("slept %d ms", milliseconds))
}

// A crossError is an answer to another call.
type crossError struct{ tool, got, want string }

func (e *crossError) Error() string {
	return fmt.Sprintf("%s answers %q, want %q", e.tool, e.got, e.want)
}

func ask(ctx context.Context, session *upstream.Session, tool string, arguments map[string]any, want string) error {
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return err
	}
	raw, err := session.Call(ctx, "tools/call", params, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	switch {
	case result.IsError:
		return fmt.Errorf("%s: %s", tool, raw)
	case len(result.Content) != 1 || result.Content[0].Text != want:
		return &crossError{tool, string(raw), want}
	}
	return nil
}

// vitals says what the gateway takes of the machine, and fails the test if it
// has a thread for everything that waits.
func (g *gate) vitals(t *testing.T) string {
	t.Helper()
	const most = 64
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		return "no /proc"
	}
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^(Threads|VmRSS|VmHWM):\s*(\d+)`).FindAllStringSubmatch(string(status), -1) {
		all = append(all, m[1]+" "+m[2])
		if threads, err := strconv.Atoi(m[2]); m[1] == "Threads" && err == nil && threads > most {
			t.Errorf("gateway has %d threads, want at most %d", threads, most)
		}
	}
	return strings.Join(all, ", ")
}

// stateID returns what the labels call the house.
func (h *house) stateID(t *testing.T) string {
	t.Helper()
	db, err := store.Open(t.Context(), h.state)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	return db.StateID()
}

// left returns what the engine has of a house.
func left(t *testing.T, api *client.Client, stateID string) []string {
	t.Helper()
	ours := make(client.Filters).Add("label", "dockgate.state="+stateID)
	var found []string
	containers, err := api.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers.Items {
		found = append(found, fmt.Sprintf("container %s %s", strings.Join(c.Names, " "), c.State))
	}
	networks, err := api.NetworkList(t.Context(), client.NetworkListOptions{Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		found = append(found, "network "+n.Name)
	}
	volumes, err := api.VolumeList(t.Context(), client.VolumeListOptions{Filters: ours})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes.Items {
		found = append(found, "volume "+v.Name)
	}
	return found
}

// mustVanish waits until the engine has nothing of the house any more.
func (h *house) mustVanish(t *testing.T, api *client.Client) {
	t.Helper()
	const limit = 10 * time.Second
	id := h.stateID(t)
	begun := time.Now()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for found := left(t, api, id); len(found) > 0; found = left(t, api, id) {
		if time.Since(begun) > limit {
			t.Fatalf("left after %v:\n%s", limit, strings.Join(found, "\n"))
		}
		<-look.C
	}
	t.Logf("nothing left after %v", time.Since(begun).Round(time.Millisecond))
}
