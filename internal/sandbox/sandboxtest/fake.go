// Package sandboxtest holds every engine to the contract of
// [sandbox.Process], and has an engine in memory for tests of what stands on
// top of one.
//
// [Run] is the contract as a test suite. [Fake] passes it: its containers are
// Go functions that talk over bounded pipes, and they start, exit, ignore
// signals and are killed as containers do. It has no clock of its own and may
// be used inside a testing/synctest bubble.
package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/pipe"
)

// pipeSize is what a kernel's pipe holds on Linux.
const pipeSize = 64 << 10

// Exit codes that no container has, for a [Server] to return.
const (
	// OutOfMemory stands for a container that the kernel killed for its memory.
	OutOfMemory = -1 - iota
	// Lost stands for a container that went with its engine.
	Lost
)

// A Server is what a container of the fake engine runs. It returns its exit
// code, [OutOfMemory] or [Lost].
//
// The context ends with SIGTERM, at which a well-behaved server returns; one
// that ignores the signal watches [Container.Killed] instead. When that is
// closed it must return at once, because a function cannot be killed.
type Server func(ctx context.Context, c Container) int

// A Container is the inside of a fake container.
type Container struct {
	Spec   sandbox.Spec
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Killed is closed by SIGKILL.
	Killed <-chan struct{}
}

// ErrNoImage is what Start's error wraps when the fake has no such image.
var ErrNoImage = errors.New("no such image")

// A Fake is an engine whose containers are functions. Its fields may not
// change after the first Start; its methods may be called from any goroutine.
type Fake struct {
	// Servers maps an image's reference, [sandbox.Image.Ref], to what its
	// containers run.
	Servers map[string]Server
	// Before is called by every Start before anything is made; its error
	// fails the Start. It may wait, for instance with [Delay]. Nil does nothing.
	Before func(context.Context, sandbox.Spec) error

	mu      sync.Mutex
	started int
	running map[*process]struct{}
}

// Delay returns a [Fake.Before] that waits for d, or until the context ends.
func Delay(d time.Duration) func(context.Context, sandbox.Spec) error {
	return func(ctx context.Context, _ sandbox.Spec) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Start runs the function of the Spec's image.
func (f *Fake) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if f.Before != nil {
		if err := f.Before(ctx, spec); err != nil {
			return nil, fmt.Errorf("start container of %q: %w", spec.Server, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start container of %q: %w", spec.Server, err)
	}
	server := f.Servers[spec.Image.Ref]
	if server == nil {
		return nil, fmt.Errorf("start container of %q: image %s: %w", spec.Server, spec.Image.Ref, ErrNoImage)
	}
	// The container outlives the context of its start.
	inside, term := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{
		fake:   f,
		spec:   spec,
		stdin:  pipe.New(pipeSize),
		stdout: pipe.New(pipeSize),
		term:   term,
		killed: make(chan struct{}),
		done:   make(chan struct{}),
		gone:   make(chan struct{}),
	}
	f.mu.Lock()
	f.started++
	p.id = fmt.Sprintf("fake-%s-%d", spec.Server, f.started)
	if f.running == nil {
		f.running = make(map[*process]struct{})
	}
	f.running[p] = struct{}{}
	f.mu.Unlock()
	go p.run(inside, server)
	return p, nil
}

// Started returns how many containers have been started so far.
func (f *Fake) Started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// Running returns the server names of the containers that exist, sorted. A
// container that has exited exists until its Process is closed.
func (f *Fake) Running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.running))
	for p := range f.running {
		names = append(names, p.spec.Server)
	}
	slices.Sort(names)
	return names
}

// Kill sends SIGKILL to every running container of the server, as the kernel
// or a person at the engine could, and returns when they have exited.
func (f *Fake) Kill(server string) { f.end(server, sandbox.Exit{Code: 137}) }

// Stop ends every running container of the server as dockgate stop does, and
// returns when they have exited.
func (f *Fake) Stop(server string) { f.end(server, sandbox.Exit{Code: 143, Stopped: true}) }

// Lose ends every container of the server as an engine does that goes away,
// and returns when they have exited. An empty name means all servers.
func (f *Fake) Lose(server string) { f.end(server, sandbox.Exit{Lost: true}) }

func (f *Fake) end(server string, exit sandbox.Exit) {
	f.mu.Lock()
	var ending []*process
	for p := range f.running {
		if server == "" || p.spec.Server == server {
			ending = append(ending, p)
		}
	}
	f.mu.Unlock()
	for _, p := range ending {
		p.kill(exit)
		<-p.done
	}
}

// A process is a container of the fake: one goroutine that runs a Server.
type process struct {
	fake   *Fake
	id     string
	spec   sandbox.Spec
	stdin  *pipe.Pipe
	stdout *pipe.Pipe
	stderr pipe.Tail
	term   context.CancelFunc
	killed chan struct{}
	done   chan struct{}
	gone   chan struct{}

	closing  atomic.Bool
	killing  sync.Once
	killedBy sandbox.Exit // written before killed is closed
	exit     sandbox.Exit // written before done is closed
}

func (p *process) run(ctx context.Context, server Server) {
	code := server(ctx, Container{
		Spec:   p.spec,
		Stdin:  p.stdin,
		Stdout: p.stdout,
		Stderr: &p.stderr,
		Killed: p.killed,
	})
	p.term()
	select {
	case <-p.killed:
		p.exit = p.killedBy
	default:
		switch code {
		case OutOfMemory:
			p.exit = sandbox.Exit{Code: 137, OutOfMemory: true}
		case Lost:
			p.exit = sandbox.Exit{Lost: true}
		default:
			p.exit = sandbox.Exit{Code: code}
		}
	}
	p.stdin.CloseRead()
	p.stdout.CloseWrite(nil)
	close(p.done)
}

func (p *process) kill(exit sandbox.Exit) {
	p.killing.Do(func() {
		p.killedBy = exit
		close(p.killed)
		p.term()
		// A killed process finds neither end of its pipes.
		p.stdin.CloseRead()
		p.stdout.CloseWrite(nil)
	})
}

func (p *process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

func (p *process) ID() string { return p.id }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Exit() sandbox.Exit { return p.exit }

func (p *process) Stderr() string { return p.stderr.String() }

func (p *process) Close() error {
	// Not a sync.Once: its lock would stop the clock of a synctest bubble.
	if p.closing.CompareAndSwap(false, true) {
		p.stop()
		close(p.gone)
	}
	<-p.gone
	return nil
}

func (p *process) stop() {
	p.stdout.Discard()
	p.stdin.CloseWrite(nil)
	afterEOF, afterTerm := p.spec.Ladder()
	if !p.waits(afterEOF) {
		p.term()
		if !p.waits(afterTerm) {
			p.kill(sandbox.Exit{Code: 137})
		}
	}
	<-p.done
	p.fake.mu.Lock()
	delete(p.fake.running, p)
	p.fake.mu.Unlock()
}

func (p *process) waits(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
