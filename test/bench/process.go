package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox/pipe"
	"github.com/dockgate/dockgate/test/bench/raw"
)

// A process is an MCP server on the stdio of a program: the gateway, another
// one, or "docker run -i".
type process struct {
	*raw.Conversation
	begun time.Time

	command *exec.Cmd
	stdin   io.Closer
	stdout  io.Reader // of a program that speaks over HTTP
	stderr  *pipe.Tail
	exited  chan struct{}
	err     error // of the exit; valid once exited is closed
	unwatch func() bool
	stopped sync.Once
}

// spawn starts a program. It ends with ctx at the latest.
func spawn(ctx context.Context, env []string, program string, args ...string) (*process, error) {
	p := &process{command: exec.Command(program, args...), stderr: &pipe.Tail{}, exited: make(chan struct{})}
	p.command.Env = env
	p.command.Stderr = p.stderr
	// A signal from the terminal is ours: the program ends when we say so.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Wait would close a pipe of exec's own before all of it was read.
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.command.Stdout = theirs
	p.begun = time.Now()
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, stdout.Close(), theirs.Close())
	}
	p.stdin, p.stdout = stdin, stdout
	p.Conversation = raw.New(stdout, stdin)
	go func() {
		defer close(p.exited)
		_ = theirs.Close()
		p.err = p.command.Wait()
		_ = stdout.Close()
	}()
	p.unwatch = context.AfterFunc(ctx, p.end)
	return p, nil
}

// The waits of close: for the end after stdin was closed, and after SIGTERM.
const (
	afterEOF  = 20 * time.Second
	afterTerm = 10 * time.Second
)

// end closes the program's stdin, and signals it if it does not end.
func (p *process) end() {
	p.stopped.Do(func() {
		_ = p.stdin.Close()
		if p.gone(afterEOF) {
			return
		}
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGTERM)
		if p.gone(afterTerm) {
			return
		}
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	})
	<-p.exited
}

func (p *process) gone(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// close ends the program, and says if it did not end well.
func (p *process) close() error {
	p.unwatch()
	p.end()
	if p.err != nil {
		return p.explain(p.err)
	}
	return nil
}

// explain adds what the program said last to an error.
func (p *process) explain(err error) error {
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("%w; %s said:\n%s", err, p.command.Path, said)
	}
	return err
}

// resident returns the resident memory of the program in MiB.
func (p *process) resident() (float64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("resident memory: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "VmRSS:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 64)
		return kib / 1024, err
	}
	return 0, errors.Join(errors.New("resident memory: no VmRSS"), lines.Err())
}
