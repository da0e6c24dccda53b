package sandboxtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
	"github.com/dockgate/dockgate/internal/secret"
)

// An Engine is what Run holds to the contract of [sandbox.Process].
type Engine interface {
	Start(context.Context, sandbox.Spec) (sandbox.Process, error)
}

// A Subject is an engine under test.
type Subject struct {
	Engine Engine
	// Spec starts the program of package probe; the suite sets its command.
	// The program's name is the entrypoint.
	Spec sandbox.Spec
	// Left lists what the engine has of the subject now: containers in any
	// state, networks, volumes.
	Left func(context.Context) ([]string, error)
	// Enforces says whether the subject's containers have a kernel that holds
	// them to their limits; a fake's have none.
	Enforces Enforcement
}

// An Enforcement says whether limits are real.
type Enforcement string

// The enforcements.
const (
	Simulated Enforcement = "simulated"
	Enforced  Enforcement = "enforced"
)

// patience bounds every wait of the suite. It is far more than anything takes.
const patience = 5 * time.Minute

// unhurried is the time to stop that a container is given whose exit says on
// which step of the ladder it ended: also on a machine with much else to do
// each step ends what it is meant to.
const unhurried = 20 * time.Second

// Run is the contract that every engine must pass. It calls open for each of
// its tests, which run in parallel, and checks after each that nothing is left.
func Run(t *testing.T, open func(*testing.T) Subject) {
	tests := []struct {
		name string
		test func(*suite, *testing.T)
	}{
		{"stdio goes both ways", (*suite).stdio},
		{"large messages while nobody reads", (*suite).largeMessages},
		{"exit code", (*suite).exitCode},
		{"signal", (*suite).signal},
		{"out of memory", (*suite).outOfMemory},
		{"tail of stderr", (*suite).stderrTail},
		{"close of a good server", (*suite).closeGood},
		{"close of a server that ignores the end of its input", (*suite).closeDeaf},
		{"close of a server that ignores SIGTERM", (*suite).closeStubborn},
		{"close of a server that has its own time to stop", (*suite).closeInItsTime},
		{"close of a server that never stops writing", (*suite).closeFlood},
		{"close frees a write that hangs", (*suite).closeHungWrite},
		{"close again and at the same time", (*suite).closeConcurrently},
		{"close after the exit", (*suite).closeAfterExit},
		{"start of an image that is not there", (*suite).startMissing},
		{"start with a context that has ended", (*suite).startEnded},
		{"context ends during the start", (*suite).startCut},
		{"context ends after the start", (*suite).contextEnds},
		{"many at once", (*suite).many},
		{"limits", (*suite).limits},
		{"running into limits", (*suite).against},
		{"secrets", (*suite).secrets},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &suite{Subject: open(t)}
			t.Cleanup(func() { s.nothingLeft(t) })
			tt.test(s, t)
		})
	}
}

type suite struct{ Subject }

// start starts the probe and closes it at the end of the test.
func (s *suite) start(t *testing.T, command ...string) sandbox.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := s.Engine.Start(ctx, s.spec(command...))
	if err != nil {
		t.Fatalf("Start(%q) = %v, want no error", command, err)
	}
	t.Cleanup(func() { closes(t, p) })
	return p
}

func (s *suite) spec(command ...string) sandbox.Spec {
	spec := s.Spec
	spec.Command = command
	return spec
}

func (s *suite) nothingLeft(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	left, err := s.Left(ctx)
	if err != nil {
		t.Errorf("what is left: %v", err)
	}
	if len(left) > 0 {
		t.Errorf("%d things are left: %q, want none", len(left), left)
	}
}

// closes closes p and returns how long that took.
func closes(t *testing.T, p sandbox.Process) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	if !isClosed(p.Done()) {
		t.Error("Done is not closed after Close")
	}
	return time.Since(begun)
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// exits waits for p to exit and checks how.
func exits(t *testing.T, p sandbox.Process, want sandbox.Exit) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
		t.Fatalf("the container does not exit; stderr %q", p.Stderr())
	}
	if got := p.Exit(); got != want {
		t.Errorf("Exit() = %+v, want %+v; stderr %q", got, want, p.Stderr())
	}
}

// readsLine reads the first line of p's stdout.
func readsLine(t *testing.T, p sandbox.Process, want string) {
	t.Helper()
	got, err := bufio.NewReader(p).ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("first line = %q, %v, want %q; stderr %q", got, err, want, p.Stderr())
	}
}

func (s *suite) stdio(t *testing.T) {
	p := s.start(t, probe.Echo)
	if p.ID() == "" {
		t.Error("ID() is empty")
	}
	lines := bufio.NewReader(p)
	for i := range 100 {
		want := fmt.Sprintf("line %d\n", i)
		if _, err := io.WriteString(p, want); err != nil {
			t.Fatalf("Write(%q) = %v", want, err)
		}
		got, err := lines.ReadString('\n')
		if err != nil || got != want {
			t.Fatalf("Read() = %q, %v, want %q", got, err, want)
		}
	}
	if isClosed(p.Done()) {
		t.Error("Done is closed while the container runs")
	}
}

func (s *suite) largeMessages(t *testing.T) {
	p := s.start(t, probe.Echo)
	want := bytes.Repeat([]byte("0123456789abcdef"), 128<<10)
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Write(want)
		wrote <- err
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(p, got); err != nil {
		t.Fatalf("ReadFull() = %v", err)
	}
	if err := <-wrote; err != nil {
		t.Errorf("Write() = %v", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes come back different", len(got))
	}
}

func (s *suite) exitCode(t *testing.T) {
	p := s.start(t, probe.Exit, "7")
	got, err := io.ReadAll(p)
	if len(got) != 0 || err != nil {
		t.Errorf("stdout = %q, %v, want nothing", got, err)
	}
	exits(t, p, sandbox.Exit{Code: 7})
	if got, want := p.Stderr(), "leaving\n"; got != want {
		t.Errorf("Stderr() = %q, want %q", got, want)
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read() after the exit = %d, %v, want io.EOF", n, err)
	}
}

func (s *suite) signal(t *testing.T) {
	p := s.start(t, probe.Killed)
	exits(t, p, sandbox.Exit{Code: 137})
}

func (s *suite) outOfMemory(t *testing.T) {
	// An engine under load misses some of the kernel's reports: of 40
	// containers on a machine with ten times its load, Docker 20.10 missed 3.
	const all = 5
	reported := 0
	eating := make([]sandbox.Process, all)
	for i := range eating {
		eating[i] = s.start(t, probe.Hungry)
	}
	for _, p := range eating {
		select {
		case <-p.Done():
		case <-time.After(patience):
			t.Fatal("a container that eats memory does not exit")
		}
		if exit := p.Exit(); exit.OutOfMemory {
			reported++
			exits(t, p, sandbox.Exit{Code: 137, OutOfMemory: true})
		} else {
			exits(t, p, sandbox.Exit{Code: 137})
		}
	}
	if reported == 0 {
		t.Errorf("none of %d exits is out of memory, want those that the engine reports", all)
	}
}

func (s *suite) stderrTail(t *testing.T) {
	p := s.start(t, probe.Chatter, "5000")
	readsLine(t, p, "done")
	exits(t, p, sandbox.Exit{})
	got := p.Stderr()
	if len(got) > 4<<10 || len(got) < 2<<10 {
		t.Errorf("Stderr() has %d bytes, want nearly 4 KiB", len(got))
	}
	if !strings.HasPrefix(got, "line ") || !strings.HasSuffix(got, "\nline 5000\n") {
		t.Errorf("Stderr() = %q … %q, want whole lines to the last", got[:20], got[len(got)-20:])
	}
}

func (s *suite) closeGood(t *testing.T) {
	s.Spec.Stop = patience
	p := s.start(t, probe.Echo)
	closes(t, p)
	exits(t, p, sandbox.Exit{})
	if _, err := p.Write([]byte("x")); err == nil {
		t.Error("Write() after Close = nil, want an error")
	}
	if _, err := p.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Read() after Close = %v, want an error that is not io.EOF", err)
	}
}

func (s *suite) closeDeaf(t *testing.T) {
	s.Spec.Stop = unhurried
	p := s.start(t, probe.Deaf)
	readsLine(t, p, "ready")
	if took := closes(t, p); took < 8*time.Second {
		t.Errorf("Close() took %v, want it to wait 8 s of 20 before SIGTERM", took)
	}
	exits(t, p, sandbox.Exit{Code: 143})
}

func (s *suite) closeStubborn(t *testing.T) {
	p := s.start(t, probe.Stubborn)
	readsLine(t, p, "ready")
	if took := closes(t, p); took < sandbox.DefaultStop {
		t.Errorf("Close() took %v, want the %v that a server may take", took, sandbox.DefaultStop)
	}
	exits(t, p, sandbox.Exit{Code: 137})
}

func (s *suite) closeInItsTime(t *testing.T) {
	s.Spec.Stop = sandbox.DefaultStop + 3*time.Second
	p := s.start(t, probe.Stubborn)
	readsLine(t, p, "ready")
	if took := closes(t, p); took < s.Spec.Stop {
		t.Errorf("Close() took %v, want its own %v", took, s.Spec.Stop)
	}
	exits(t, p, sandbox.Exit{Code: 137})
}

func (s *suite) closeFlood(t *testing.T) {
	s.Spec.Stop = unhurried
	p := s.start(t, probe.Flood)
	if _, err := io.ReadFull(p, make([]byte, 1<<20)); err != nil {
		t.Fatalf("ReadFull() = %v", err)
	}
	closes(t, p)
	exits(t, p, sandbox.Exit{Code: 143})
}

func (s *suite) closeHungWrite(t *testing.T) {
	p := s.start(t, probe.Deaf)
	readsLine(t, p, "ready")
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Write(make([]byte, 16<<20))
		wrote <- err
	}()
	read := make(chan error, 1)
	go func() {
		_, err := p.Read(make([]byte, 1))
		read <- err
	}()
	closes(t, p)
	if err := <-wrote; err == nil {
		t.Error("Write() of more than fits = nil, want an error when Close begins")
	}
	if err := <-read; err == nil {
		t.Error("Read() = nil, want an error when Close begins")
	}
}

func (s *suite) closeConcurrently(t *testing.T) {
	p := s.start(t, probe.Deaf)
	readsLine(t, p, "ready")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { closes(t, p) })
	}
	group.Wait()
	s.nothingLeft(t)
	closes(t, p)
}

func (s *suite) closeAfterExit(t *testing.T) {
	p := s.start(t, probe.Exit, "3")
	exits(t, p, sandbox.Exit{Code: 3})
	closes(t, p)
	s.nothingLeft(t)
	exits(t, p, sandbox.Exit{Code: 3})
}

func (s *suite) startMissing(t *testing.T) {
	spec := s.spec(probe.Echo)
	spec.Image.Ref = "dockgate.test/no-such-image:1"
	spec.Image.Pin = sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + strings.Repeat("0", 64)}
	p, err := s.Engine.Start(t.Context(), spec)
	if err == nil {
		closes(t, p)
		t.Fatal("Start() of an image that is not there = nil, want an error")
	}
}

func (s *suite) startEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := s.Engine.Start(ctx, s.spec(probe.Echo))
	if err == nil {
		closes(t, p)
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Start() = %v, want context.Canceled", err)
	}
}

func (s *suite) startCut(t *testing.T) {
	var group sync.WaitGroup
	for after := time.Millisecond; after < time.Second; after *= 3 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			p, err := s.Engine.Start(ctx, s.spec(probe.Echo))
			if err == nil {
				closes(t, p)
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Start() cut after %v = %v, want context.DeadlineExceeded", after, err)
			}
		})
	}
	group.Wait()
}

func (s *suite) contextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.Engine.Start(ctx, s.spec(probe.Echo))
	cancel()
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	defer closes(t, p)
	if _, err := io.WriteString(p, "still there\n"); err != nil {
		t.Errorf("Write() = %v", err)
	}
	readsLine(t, p, "still there")
}

func (s *suite) many(t *testing.T) {
	var group sync.WaitGroup
	var mu sync.Mutex
	ids := make(map[string]bool)
	for i := range 6 {
		group.Go(func() {
			p, err := s.Engine.Start(t.Context(), s.spec(probe.Echo))
			if err != nil {
				t.Errorf("Start() = %v", err)
				return
			}
			defer closes(t, p)
			mu.Lock()
			ids[p.ID()] = true
			mu.Unlock()
			want := fmt.Sprintf("I am %d\n", i)
			if _, err := io.WriteString(p, want); err != nil {
				t.Errorf("Write() = %v", err)
			}
			if got, err := bufio.NewReader(p).ReadString('\n'); err != nil || got != want {
				t.Errorf("Read() = %q, %v, want %q", got, err, want)
			}
		})
	}
	group.Wait()
	if len(ids) != 6 {
		t.Errorf("6 containers have %d ids", len(ids))
	}
}

// look starts the probe and returns what it sees.
func (s *suite) look(t *testing.T, spec sandbox.Spec) probe.Report {
	t.Helper()
	if s.Enforces != Enforced {
		t.Skip("the containers of this engine have no kernel of their own")
	}
	p, err := s.Engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	defer closes(t, p)
	var report probe.Report
	if err := json.NewDecoder(p).Decode(&report); err != nil {
		t.Fatalf("report = %v; stderr %q", err, p.Stderr())
	}
	exits(t, p, sandbox.Exit{})
	return report
}

func (s *suite) limits(t *testing.T) {
	spec := s.spec(probe.Look, "with space")
	spec.User = "1234:2345"
	spec.WorkingDir = "/tmp"
	spec.Env = []sandbox.Variable{{Name: "GREETING", Value: "hello = world"}}
	spec.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 16 << 20}}
	report := s.look(t, spec)
	got := map[string]any{
		"args": report.Args, "dir": report.Dir, "greeting": report.Env["GREETING"],
		"uid": report.UID, "gid": report.GID,
		"capabilities": strings.Trim(report.Capabilities, "0"), "no_new_privileges": report.NoNewPrivileges, "seccomp": report.Seccomp,
		"memory": report.Memory, "memory and swap": report.MemorySwap, "cpus": report.CPUs, "pids": report.PIDs, "files": report.Files,
		"writable root": report.WritableRoot, "interfaces": report.Interfaces,
	}
	want := map[string]any{
		"args": spec.Command, "dir": "/tmp", "greeting": "hello = world",
		"uid": 1234, "gid": 2345,
		"capabilities": "", "no_new_privileges": "1", "seccomp": "2",
		"memory": spec.Limits.Memory, "memory and swap": spec.Limits.Memory, "cpus": float64(spec.Limits.NanoCPUs) / 1e9, "pids": spec.Limits.PIDs, "files": spec.Limits.Files,
		"writable root": false, "interfaces": []string{"lo"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("container from inside (-want +got):\n%s", diff)
	}
	for target, options := range map[string][]string{
		"/":        {"ro"},
		"/tmp":     {"rw", "nosuid", "nodev", "size=16384k"},
		"/dev/shm": {fmt.Sprintf("size=%dk", spec.Limits.Shm>>10)},
	} {
		for _, option := range options {
			if !strings.Contains(","+report.Mounts[target]+",", ","+option+",") {
				t.Errorf("mount %s has %q, want %s", target, report.Mounts[target], option)
			}
		}
	}
	if strings.Contains(","+report.Mounts["/tmp"]+",", ",noexec,") {
		t.Errorf("mount /tmp has %q, want it to allow programs", report.Mounts["/tmp"])
	}
	if report.PID1 == "probe" {
		t.Error("the first process is the server, want an init process")
	}
}

// against runs into every limit from inside.
func (s *suite) against(t *testing.T) {
	if s.Enforces != Enforced {
		t.Skip("the containers of this engine have no kernel of their own")
	}
	for _, user := range []string{"0:0", "1234:2345"} {
		spec := s.spec(probe.Against, "/volume")
		spec.User = user
		spec.Limits.NanoCPUs = 500_000_000
		spec.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 5 << 20}, {Target: "/volume", Size: 3 << 20}}
		p, err := s.Engine.Start(t.Context(), spec)
		if err != nil {
			t.Fatalf("Start() = %v", err)
		}
		var got probe.Pushed
		if err := json.NewDecoder(p).Decode(&got); err != nil {
			t.Errorf("report = %v; stderr %q", err, p.Stderr())
		}
		closes(t, p)
		const full = "no space left on device"
		filled := map[string]probe.Stop{"/tmp": {Count: 5 << 20, Reason: full}, "/volume": {Count: 3 << 20, Reason: full}, "/dev/shm": {Count: spec.Limits.Shm, Reason: full}}
		if diff := cmp.Diff(filled, got.Filled); diff != "" {
			t.Errorf("as %s: what fits into places (-want +got):\n%s", user, diff)
		}
		// The program itself, its init process and its threads count too.
		for what, stop := range map[string]struct {
			got    probe.Stop
			limit  int64
			reason string
		}{
			"open files": {got.Files, spec.Limits.Files, "too many open files"},
			"processes":  {got.Processes, spec.Limits.PIDs, "resource temporarily unavailable"},
		} {
			if stop.got.Count > stop.limit || stop.got.Count < stop.limit-32 || stop.got.Reason != stop.reason {
				t.Errorf("as %s: %s = %+v, want a little under %d and then %q", user, what, stop.got, stop.limit, stop.reason)
			}
		}
		// A part of a second may begin and end with a whole share.
		if limit := float64(spec.Limits.NanoCPUs) / 1e9; got.CPUs <= 0 || got.CPUs > 1.25*limit {
			t.Errorf("as %s: worked for %.2f processors, want at most %.2f and a little", user, got.CPUs, limit)
		}
		if len(got.Refused) < 12 {
			t.Errorf("as %s: %d things were tried, want at least 12", user, len(got.Refused))
		}
		for what, reason := range got.Refused {
			if reason == "" {
				t.Errorf("as %s: could %s, want it refused", user, what)
			}
		}
	}
}

func (s *suite) secrets(t *testing.T) {
	spec := s.spec(probe.Look)
	spec.Secrets = []sandbox.Secret{
		{Name: "x.token", Env: "TOKEN", Value: secret.NewValue("hush")},
		{Name: "x.other", Env: "OTHER"},
	}
	report := s.look(t, spec)
	if got, want := report.Env["TOKEN"], "hush"; got != want {
		t.Errorf("TOKEN = %q, want %q", got, want)
	}
	if got, ok := report.Env["OTHER"]; ok {
		t.Errorf("OTHER = %q, want an absent secret not to be set", got)
	}
}
