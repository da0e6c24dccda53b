//go:build unix

package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

// A reply is what became of a call.
type reply struct {
	text   string
	failed bool
}

// A trial is a gateway on an engine that is about to fail.
type trial struct {
	t       *testing.T
	own     *engine.Own
	api     *client.Client // of own
	house   house
	gate    *program
	session *upstream.Session
}

func (r *trial) try(params string, progress func(json.RawMessage)) reply {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := r.session.Call(ctx, "tools/call", json.RawMessage(params), progress)
	if err != nil {
		return reply{text: "no answer: " + err.Error(), failed: true}
	}
	var got struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(result, &got); err != nil || len(got.Content) == 0 {
		return reply{text: string(result), failed: true}
	}
	return reply{text: got.Content[0].Text, failed: got.IsError}
}

// works makes a call that must succeed, at once.
func (r *trial) works() {
	r.t.Helper()
	if got := r.try(echoCall, nil); got.failed {
		r.t.Errorf("a call with the engine up = %s, want a result", got.text)
	}
}

// fails checks that a call got a clear error.
func (r *trial) fails(got reply, want string) {
	r.t.Helper()
	if !got.failed || !regexp.MustCompile("^SERVER_CONNECTION_ERROR: "+want).MatchString(got.text) {
		r.t.Errorf("a call without the engine = %s, want SERVER_CONNECTION_ERROR: %s", got.text, want)
	}
}

// begin makes a call that takes a minute, and returns once the server is at it.
func (r *trial) begin() <-chan reply {
	works, ended := make(chan struct{}, 100), make(chan reply, 1)
	go func() {
		ended <- r.try(`{"name":"thing__sleep","arguments":{"ms":2000}}`, func(json.RawMessage) { works <- struct{}{} })
	}()
	<-works
	return ended
}

func (r *trial) do(step func() error) {
	r.t.Helper()
	if err := step(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *trial) start() error { return r.own.Start(r.t.Context()) }

// newOwn starts an engine of the test's own in a folder, with images of the
// one that everybody uses.
func newOwn(t *testing.T, dir string, images ...string) (*engine.Own, *client.Client) {
	t.Helper()
	from := needEngine(t)
	for _, image := range images {
		needImage(t, from, image)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	own, err := engine.NewOwn(t.Context(), dir)
	if errors.Is(err, engine.ErrNoOwn) && os.Getenv("TEST_ENGINE") != "require" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := own.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := own.Take(t.Context(), from, images...); err != nil {
		t.Fatal(err)
	}
	api, err := own.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return own, api
}

// The errors that calls get, as regular expressions.
const (
	goneEngine = `.*(docker engine at|was lost with the engine|was ended by signal|was stopped from outside)`
	downEngine = `.*docker engine at unix:.*\n.*start the engine`
	pullBroken = `.*(docker engine at|pull interrupted)`
)

// A fault is what becomes of an engine, and of the calls meanwhile.
type fault struct {
	name string
	// entry is the catalog's; the demo server if empty.
	entry string
	// before, if not nil, sees what the gateway asks of the engine.
	before func(*http.Request) error
	run    func(*trial)
}

// Whatever becomes of the engine, calls get a clear error, and the next call
// works once it is back, with the same gateway. Nothing is left.
func TestEngineFaults(t *testing.T) {
	own, api := newOwn(t, shortDir(t), "dockgate/demo", "dockgate-test/faulty")
	slow := slowRegistry(t, needEngine(t))
	held, release := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held); <-release })
	for _, fault := range []fault{
		{name: "restarted during a call", run: func(r *trial) {
			r.works()
			call := r.begin()
			r.do(r.own.Stop)
			r.do(r.start)
			r.fails(<-call, goneEngine)
			r.works()
		}},
		{name: "killed during calls", run: func(r *trial) {
			r.works()
			calls := []<-chan reply{r.begin(), r.begin(), r.begin()}
			r.do(r.own.Kill)
			for _, call := range calls {
				r.fails(<-call, goneEngine)
			}
			r.do(r.start)
			r.works()
		}},
		{name: "down for a while", run: func(r *trial) {
			r.works()
			r.do(r.own.Stop)
			// As long as an upgrade of the engine takes. No server has to rest for it.
			again := time.NewTicker(time.Second)
			defer again.Stop()
			for down := time.Now(); time.Since(down) < 30*time.Second; <-again.C {
				began := time.Now()
				r.fails(r.try(echoCall, nil), downEngine)
				if took := time.Since(began); took > 5*time.Second {
					r.t.Errorf("a call without an engine took %v", took)
				}
			}
			r.do(r.start)
			r.works()
		}},
		{name: "down from the first", run: func(r *trial) {
			r.do(r.own.Stop)
			r.fails(r.try(echoCall, nil), downEngine)
			r.do(r.start)
			r.works()
		}},
		{name: "killed during a pull", entry: "  thing: {image: " + slow.ref + "}\n", run: func(r *trial) {
			call := make(chan reply, 1)
			go func() { call <- r.try(echoCall, nil) }()
			<-slow.asked
			r.do(r.own.Kill)
			r.fails(<-call, pullBroken)
			r.do(r.start)
			slow.give()
			r.works()
		}},
		{name: "killed during a start", before: func(req *http.Request) error {
			if strings.HasSuffix(req.URL.Path, "/start") {
				hold()
			}
			return nil
		}, run: func(r *trial) {
			call := make(chan reply, 1)
			go func() { call <- r.try(echoCall, nil) }()
			<-held
			r.do(r.own.Kill)
			close(release)
			r.fails(<-call, goneEngine)
			r.do(r.start)
			r.works()
			within(r.t, 10*time.Second, "the container that did not start goes", func() bool { return len(r.left()) == 1 })
		}},
		{name: "killed before a server answers", entry: strings.Replace(faulty, "%", "mute", 1), run: func(r *trial) {
			call := make(chan reply, 1)
			go func() { call <- r.try(echoCall, nil) }()
			within(r.t, 30*time.Second, "a container", func() bool { return len(r.left()) == 1 })
			r.do(r.own.Kill)
			r.fails(<-call, goneEngine)
			r.do(r.start)
		}},
		{name: "socket gone", run: func(r *trial) {
			r.works()
			dormant := newTrial(r.t, r.own, r.api, fault{})
			socket := strings.TrimPrefix(r.own.Host, "unix://")
			r.do(func() error { return os.Rename(socket, socket+".away") })
			r.works() // its connection stands
			dormant.fails(dormant.try(echoCall, nil), downEngine)
			r.do(func() error { return os.Rename(socket+".away", socket) })
			dormant.works()
			r.works()
		}},
		{name: "frozen", entry: "  thing: {image: dockgate/demo, timeouts: {start: 3s, call: 2s}}\n", run: func(r *trial) {
			r.works()
			r.do(r.own.Freeze)
			if got := r.try(echoCall, nil); !got.failed || !strings.HasPrefix(got.text, "TOOL_EXECUTION_TIMEOUT: ") {
				r.t.Errorf("a call of a frozen engine = %s, want TOOL_EXECUTION_TIMEOUT", got.text)
			}
			r.do(r.own.Thaw)
			r.works()
		}},
		{name: "gateway ends meanwhile", entry: strings.Replace(faulty, "%", "stubborn", 1), run: func(r *trial) {
			r.works()
			r.do(r.own.Kill)
			r.do(r.gate.Close)
			ended := make(chan struct{})
			go func() { _ = r.gate.cmd.Wait(); close(ended) }()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				r.t.Error("the gateway does not end without an engine")
			}
			r.do(r.start)
			r.house.serve(r.t, "--server", "thing")
			within(r.t, 10*time.Second, "nothing left", func() bool { return len(r.left()) == 0 })
		}},
	} {
		t.Run(fault.name, func(t *testing.T) { fault.run(newTrial(t, own, api, fault)) })
	}
	if got := labelled(t, api, "dockgate.state"); len(got) > 0 {
		t.Errorf("left in the end: %v", got)
	}
}

// newTrial starts a gateway on the engine.
func newTrial(t *testing.T, own *engine.Own, api *client.Client, f fault) *trial {
	t.Helper()
	r := &trial{t: t, own: own, api: api, house: newHouse(t, cmp.Or(f.entry, demo))}
	r.house.host = own.Host
	gated := r.house
	if f.before != nil {
		gated.host = proxy(t, api, f.before)
	}
	r.gate = gated.serve(t, "--approve", "all", "--server", "thing")
	r.session = connect(t, r.gate, upstream.Legacy)
	return r
}

func (r *trial) left() []string { return left(r.t, r.api, r.house) }

// A full disk of the engine is said to be full, and the next call works when
// there is room.
func TestEngineFull(t *testing.T) {
	dir := shortDir(t)
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=160m", "dockgate-test", dir).CombinedOutput(); err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("mount: %v\n%s", err, out)
		}
		t.Skipf("mount: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	own, api := newOwn(t, filepath.Join(dir, "engine"), "dockgate/demo")
	slow := slowRegistry(t, needEngine(t))
	slow.give()
	pulls := newTrial(t, own, api, fault{entry: "  thing: {image: " + slow.ref + "}\n"})
	starts := newTrial(t, own, api, fault{})
	starts.works()
	if _, err := starts.house.command(t, "stop", "thing", "--host", own.Host); err != nil {
		t.Fatal(err)
	}
	free := fill(t, dir)
	for name, r := range map[string]*trial{"pull": pulls, "start": starts} {
		got := r.try(echoCall, nil)
		if !got.failed || !strings.Contains(got.text, "no space left on the engine's disk") || !strings.Contains(got.text, "docker image prune") {
			t.Errorf("%s with a full disk = %s, want that said, with a hint", name, got.text)
		}
	}
	free()
	pulls.works()
	starts.works()
}

// fill fills a file system up, and returns how to make room again.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for block := make([]byte, size); err == nil; {
			_, err = file.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	return func() {
		if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
