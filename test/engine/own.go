//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// ErrNoOwn says that this machine cannot run an engine of one's own.
var ErrNoOwn = errors.New("no engine of one's own")

// An Own is an engine for faults: nobody else uses it, and it keeps all that
// it has in one folder. It is of the kind that DOCKER_HOST names.
//
// Its methods may not be called at the same time.
type Own struct {
	// Host is its address.
	Host string
	// Dir is its folder.
	Dir string

	script string
	cmd    *exec.Cmd // nil unless it runs
}

// NewOwn returns an engine that keeps its data in a folder, which must have a
// short path for the sake of its socket. It does not run yet. The error is
// [ErrNoOwn] where there can be none: it needs root on Linux, and dockerd.
func NewOwn(ctx context.Context, dir string) (*Own, error) {
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: it needs root and dockerd", ErrNoOwn)
	}
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	return &Own{
		Host: "unix://" + filepath.Join(dir, "engine.sock"), Dir: dir,
		script: filepath.Join(root, "test", "engine.sh"),
	}, nil
}

// startTime bounds the start of an engine.
const startTime = 30 * time.Second

// logTail is how much of its log an engine that does not start gives.
const logTail = 2 << 10

// Client returns a client of the engine. The caller closes it.
func (o *Own) Client() (*client.Client, error) { return client.New(client.WithHost(o.Host)) }

// Start starts the engine and returns when it answers.
func (o *Own) Start(ctx context.Context) error {
	log, err := os.OpenFile(o.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the engine has its own
	o.cmd = exec.Command(o.script, "own", o.Dir)
	o.cmd.Stdout, o.cmd.Stderr = log, log
	if err := o.cmd.Start(); err != nil {
		return err
	}
	api, err := o.Client()
	if err != nil {
		return err
	}
	defer func() { _ = api.Close() }()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err = api.Ping(ctx, client.PingOptions{}); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			said, _ := os.ReadFile(o.log())
			said = said[max(0, len(said)-logTail):]
			return fmt.Errorf("engine in %s: %w\n%s", o.Dir, err, said)
		}
	}
}

func (o *Own) log() string { return filepath.Join(o.Dir, "dockerd.log") }

// Stop asks the engine to end, as an operator does, and waits until it has.
func (o *Own) Stop() error { return o.end(syscall.SIGTERM) }

// Kill ends the engine at once, whatever it does.
func (o *Own) Kill() error { return o.end(syscall.SIGKILL) }

func (o *Own) end(signal syscall.Signal) error {
	if o.cmd == nil {
		return nil
	}
	cmd := o.cmd
	o.cmd = nil
	if err := cmd.Process.Signal(signal); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) { // that is how it ends by a signal
		return err
	}
	return nil
}

// Freeze keeps the engine from doing anything until Thaw. When it returns no
// thread of the engine runs: the signal reaches each at its own time.
func (o *Own) Freeze() error {
	if err := o.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		stopped, err := allStopped(o.cmd.Process.Pid)
		if err != nil || stopped {
			return err
		}
	}
	return nil
}

// allStopped reports whether every thread of a process is stopped by a signal
// (proc(5), stat: the state follows the name, which is in parentheses).
func allStopped(pid int) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return false, err
		}
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if !strings.HasPrefix(state, "T") {
			return false, nil
		}
	}
	return len(threads) > 0, nil
}

// Thaw lets a frozen engine go on.
func (o *Own) Thaw() error { return o.cmd.Process.Signal(syscall.SIGCONT) }

// Remove ends the engine and removes its folder. One that was killed is
// started once more, so that it puts away what it has left.
func (o *Own) Remove(ctx context.Context) error {
	if o.cmd == nil {
		if err := o.Start(ctx); err != nil {
			return err
		}
	}
	if err := o.Stop(); err != nil {
		return err
	}
	if err := killAll(o.Dir); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(string(mounts)), "\n")) {
		if at := strings.Fields(line)[1]; strings.HasPrefix(at, o.Dir+"/") {
			// One that fails shows in what cannot be removed.
			_ = exec.CommandContext(ctx, "umount", "--lazy", at).Run()
		}
	}
	if out, err := exec.CommandContext(ctx, o.script, "own", o.Dir, "end").CombinedOutput(); err != nil {
		return fmt.Errorf("end of the engine in %s: %w\n%s", o.Dir, err, out)
	}
	return os.RemoveAll(o.Dir)
}

// killAll ends the processes that were started with a path in a folder: those
// that watch over containers may outlive an engine that was killed.
func killAll(dir string) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, line := range lines {
		words, err := os.ReadFile(line)
		if err != nil || !strings.Contains(string(words), dir+"/") {
			continue // it has ended, or is another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// Take copies images from another engine.
func (o *Own) Take(ctx context.Context, from *client.Client, images ...string) (err error) {
	saved, err := from.ImageSave(ctx, images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, saved.Close()) }()
	api, err := o.Client()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	return Load(ctx, api, saved)
}
