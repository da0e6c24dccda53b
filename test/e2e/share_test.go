//go:build unix

package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A sharing is a set of clients that share a gateway, in one of its forms.
type sharing struct {
	form
	server string // the demo server's name
	home   string // where the folders of clients are
}

// A form is how the shared gateway and its relays run.
type form interface {
	// serve starts a relay for a client that works in a folder.
	serve(t *testing.T, dir string) *program
	// gateways and relays return those that run, by their ids.
	gateways(t *testing.T) []string
	relays(t *testing.T) []string
	// kill kills a gateway, and stop stops a relay as people do.
	kill(t *testing.T, gateway string)
	stop(t *testing.T, relay string)
	// gone reports whether nothing is left of a gateway.
	gone(t *testing.T, gateway string) bool
	// containers returns those of servers.
	containers(t *testing.T) []string
}

// eachForm runs a test over the program on the host and over the image.
func eachForm(t *testing.T, test func(t *testing.T, s sharing)) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	t.Run("program", func(t *testing.T) {
		home := t.TempDir()
		h := newHouse(t, demo)
		h.config = filepath.Join(filepath.Dir(h.catalog), "config.yaml")
		write(t, h.config, "share: {idle: 2s}\ncatalogs: ["+h.catalog+"]\n")
		test(t, sharing{form: hostForm{h, api}, server: "thing", home: home})
	})
	t.Run("image", func(t *testing.T) {
		needImage(t, api, "dockgate/gateway")
		home, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		id := strings.ToLower(rand.Text()[:10]) // containers are told apart by it
		f := imageForm{api: api, home: home, volume: "dockgate-test-share-" + id, server: "thing-" + id}
		catalog := filepath.Join(home, "servers.yaml")
		write(t, catalog, "version: 1\nservers:\n"+strings.ReplaceAll(demo, "thing", f.server))
		write(t, filepath.Join(home, ".config", "dockgate", "config.yaml"), "share: {idle: 2s}\ncatalogs: ["+catalog+"]\n")
		t.Cleanup(func() {
			within(t, time.Minute, "no container uses the volume", func() bool { return len(f.using(t)) == 0 })
			removeVolume(t, api, f.volume)
		})
		test(t, sharing{form: f, server: f.server, home: home})
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// serveFlags are what each relay is started with.
func serveFlags(server string) []string {
	return []string{"--server", server, "--approve", "all"}
}

// A hostForm has the gateway as a process.
type hostForm struct {
	house
	api *client.Client
}

func (f hostForm) serve(t *testing.T, dir string) *program {
	t.Helper()
	t.Chdir(dir)
	return f.house.serve(t, append([]string{"--share"}, serveFlags("thing")...)...)
}

func (f hostForm) gateways(t *testing.T) []string {
	return f.processes(t, "gateway", "--state", f.state)
}

func (f hostForm) relays(t *testing.T) []string { return f.processes(t, f.args("serve")...) }

// processes returns those of the gateway's program with such arguments.
func (f hostForm) processes(t *testing.T, args ...string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	prefix := binary + "\x00" + strings.Join(args, "\x00") + "\x00"
	var found []string
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(line), prefix) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

func (f hostForm) kill(t *testing.T, gateway string) {
	t.Helper()
	f.signal(t, gateway, syscall.SIGKILL)
}

func (f hostForm) stop(t *testing.T, relay string) { t.Helper(); f.signal(t, relay, syscall.SIGTERM) }

func (f hostForm) signal(t *testing.T, process string, signal syscall.Signal) {
	t.Helper()
	pid, err := strconv.Atoi(process)
	if err == nil {
		err = syscall.Kill(pid, signal)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f hostForm) gone(_ *testing.T, gateway string) bool {
	_, err := os.Stat(filepath.Join("/proc", gateway))
	return errors.Is(err, os.ErrNotExist)
}

func (f hostForm) containers(t *testing.T) []string {
	t.Helper()
	return left(t, f.api, f.house)
}

// An imageForm has gateway and relays in containers.
type imageForm struct {
	api                  *client.Client
	home, volume, server string
}

func (f imageForm) serve(t *testing.T, dir string) *program {
	t.Helper()
	connect := exec.CommandContext(t.Context(), binary, "connect", "--docker", "--share", "--volume", f.volume, "--project", dir, "--print", "--json")
	connect.Env = append(os.Environ(), "HOME="+f.home)
	out, err := connect.Output()
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	var line struct {
		Command string
		Args    []string
	}
	if err := json.Unmarshal(out, &line); err != nil {
		t.Fatal(err)
	}
	return start(t, line.Command, append(line.Args, serveFlags(f.server)...)...)
}

// using returns all containers with the state.
func (f imageForm) using(t *testing.T) []container.Summary {
	t.Helper()
	list, err := f.api.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("volume", f.volume),
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (f imageForm) gateways(t *testing.T) []string {
	t.Helper()
	gateways, _ := f.apart(t)
	return gateways
}

func (f imageForm) relays(t *testing.T) []string {
	t.Helper()
	_, relays := f.apart(t)
	return relays
}

func (f imageForm) apart(t *testing.T) (gateways, relays []string) {
	t.Helper()
	for _, c := range f.using(t) {
		if c.Labels["dockgate.role"] == "gateway" {
			gateways = append(gateways, c.ID)
		} else {
			relays = append(relays, c.ID)
		}
	}
	return gateways, relays
}

func (f imageForm) kill(t *testing.T, gateway string) {
	t.Helper()
	if _, err := f.api.ContainerKill(t.Context(), gateway, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
}

func (f imageForm) stop(t *testing.T, relay string) {
	t.Helper()
	if _, err := f.api.ContainerStop(t.Context(), relay, client.ContainerStopOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f imageForm) gone(t *testing.T, gateway string) bool {
	t.Helper()
	for _, c := range f.using(t) {
		if c.ID == gateway {
			return false
		}
	}
	return true
}

func (f imageForm) containers(t *testing.T) []string {
	t.Helper()
	return labelled(t, f.api, "dockgate.server="+f.server)
}

// echoes makes a call that must succeed.
func (s sharing) echoes(t *testing.T, session *mcp.ClientSession, said string) {
	t.Helper()
	if got := text(t, session, s.server+"__echo", map[string]any{"text": said}); got != said {
		t.Errorf("echo = %q, want %q", got, said)
	}
}

// folder makes a folder for clients to work in.
func (s sharing) folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(s.home, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ends waits until nothing runs any more.
func (s sharing) ends(t *testing.T) {
	t.Helper()
	within(t, time.Minute, "the end of the shared gateway and its containers", func() bool {
		return len(s.gateways(t)) == 0 && len(s.containers(t)) == 0
	})
}

// Clients that start at the same time share one gateway and its container; its
// crash costs the calls under way only; and it goes when they have gone.
func TestShare(t *testing.T) {
	eachForm(t, func(t *testing.T, s sharing) {
		progress := make(chan struct{}, 64)
		sessions := make([]*mcp.ClientSession, 4)
		dir := s.folder(t, "work")
		var group sync.WaitGroup
		for i := range sessions {
			p := s.serve(t, dir)
			group.Go(func() {
				sessions[i] = join(t, p, &mcp.ClientOptions{
					ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress <- struct{}{} },
				})
				s.echoes(t, sessions[i], "x")
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		gateways := s.gateways(t)
		if running := s.containers(t); len(gateways) != 1 || len(running) != 1 {
			t.Fatalf("gateways %v, containers %v for four clients, want one of each", gateways, running)
		}

		answered := make(chan error, 1)
		go func() {
			_, err := sessions[0].CallTool(t.Context(), &mcp.CallToolParams{
				Name: s.server + "__sleep", Arguments: map[string]any{"ms": 60_000}, Meta: mcp.Meta{"progressToken": "p"},
			})
			answered <- err
		}()
		<-progress
		s.kill(t, gateways[0])
		if err := <-answered; err == nil || !strings.Contains(err.Error(), "gateway has ended") {
			t.Errorf("the call under way = %v, want that the gateway has ended", err)
		}
		// What is sent while it dies is under way, too.
		within(t, 20*time.Second, "the end of the gateway", func() bool { return s.gone(t, gateways[0]) })
		for _, session := range sessions {
			group.Go(func() { s.echoes(t, session, "again") })
		}
		group.Wait()
		if again := s.gateways(t); len(again) != 1 || again[0] == gateways[0] {
			t.Errorf("gateways %v after the crash of %v, want one other", again, gateways)
		}
		for _, session := range sessions {
			_ = session.Close() // its program ends with its input
		}
		s.ends(t)
	})
}

// The client that has started the gateway is one like the others: when it is
// stopped, they go on.
func TestShareWithoutTheFirst(t *testing.T) {
	eachForm(t, func(t *testing.T, s sharing) {
		dir := s.folder(t, "work")
		first := s.serve(t, dir)
		s.echoes(t, join(t, first, nil), "first")
		gateways, relays := s.gateways(t), s.relays(t)
		if len(gateways) != 1 || len(relays) != 1 {
			t.Fatalf("gateways %v, relays %v of one client, want one of each", gateways, relays)
		}
		second := join(t, s.serve(t, dir), nil)
		s.echoes(t, second, "second")
		s.stop(t, relays[0])
		if _, err := first.cmd.Process.Wait(); err != nil {
			t.Fatal(err)
		}
		s.echoes(t, second, "still there")
		if diff := cmp.Diff(gateways, s.gateways(t)); diff != "" {
			t.Errorf("gateways without the first client (-before +after):\n%s", diff)
		}
		_ = second.Close()
		s.ends(t)
	})
}

// What a project says is about the clients in its folder alone.
func TestShareKeepsProjectsApart(t *testing.T) {
	eachForm(t, func(t *testing.T, s sharing) {
		project := s.folder(t, "project")
		write(t, filepath.Join(project, ".dockgate", "mcp-limits.yaml"), "quotas: {max_execution_time: 1s}\n")
		var sessions []*mcp.ClientSession
		for _, tt := range []struct {
			dir     string
			limited bool
		}{{s.folder(t, "one"), false}, {project, true}, {s.folder(t, "two"), false}} {
			session := join(t, s.serve(t, tt.dir), nil)
			sessions = append(sessions, session)
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: s.server + "__sleep", Arguments: map[string]any{"ms": 1500}})
			if err != nil || result.IsError != tt.limited {
				t.Errorf("call in %s = %s, %v, want it limited: %v", tt.dir, fmt.Sprint(result), err, tt.limited)
			}
		}
		if got := s.gateways(t); len(got) != 1 {
			t.Errorf("gateways %v, want one", got)
		}
		if running := s.containers(t); len(running) != 2 {
			t.Errorf("containers %v, want one for the project and one for the two other folders", running)
		}
		for _, session := range sessions {
			_ = session.Close()
		}
		s.ends(t)
	})
}

// What a shared gateway in a container may leave, if all are killed while it
// is made, is named by doctor, and goes with the next gateway.
func TestShareLeavesNothing(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, demo)
	name := "dockgate-gateway-test-" + strings.ToLower(rand.Text()[:10])
	_, err := api.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Name: name,
		Config: &container.Config{Image: "dockgate/demo", Labels: map[string]string{
			"dockgate.state": h.id(t), "dockgate.owner": "0123456789abcdef", "dockgate.role": "gateway",
			"dockgate.expires": time.Now().Add(time.Hour).Format(time.RFC3339),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = api.ContainerRemove(context.WithoutCancel(t.Context()), name, client.ContainerRemoveOptions{Force: true})
	})
	said, err := h.command(t, "doctor")
	if err != nil || !strings.Contains(said, name) || !strings.Contains(said, "dockgate doctor --sweep") {
		t.Errorf("doctor = %v, want it to name %s and the sweep:\n%s", err, name, said)
	}
	if ps, err := h.command(t, "ps"); err != nil || strings.Contains(ps, name) {
		t.Errorf("ps = %s, %v, want the containers of servers alone", ps, err)
	}
	session := join(t, h.serve(t, "--server", "thing", "--approve", "all"), nil)
	within(t, time.Minute, "the sweep of a gateway", func() bool { return len(left(t, api, h)) == 0 })
	_ = session.Close()
}
