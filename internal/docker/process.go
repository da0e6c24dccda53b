package docker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/logfile"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const (
	// afterKill is how long the engine has for what the kernel does at once.
	afterKill = 10 * time.Second
	// signalTime is how long the engine may take to send a signal.
	signalTime = 3 * time.Second
)

const (
	// trailTime is how long the last output may take after the exit.
	trailTime = 2 * time.Second
	// omenTime is how long the engine's word of why a container was killed may
	// take after the exit.
	omenTime = time.Second
)

// The exit codes of what a signal has ended: 128 + SIGKILL, 128 + SIGTERM.
const (
	killedCode     = 137
	terminatedCode = 143
)

// A process is a container from its start to its removal. Two goroutines
// belong to it: pump carries its output, watch waits for its end; Close waits
// for both.
type process struct {
	engine *Engine
	server string
	id     string
	log    *logfile.File
	// The waits of the ladder, see [sandbox.Spec.Ladder].
	afterEOF, afterTerm time.Duration

	stdio
	omens   omens
	waiting client.ContainerWaitResult
	unwait  context.CancelFunc

	running sync.WaitGroup
	done    chan struct{} // closed by watch
	exit    sandbox.Exit  // written before done is closed

	signalled atomic.Bool   // by Close
	gone      chan struct{} // closed when Close has ended
	closeErr  error         // written before gone is closed
}

func (p *process) run() {
	p.running.Go(p.pump)
	p.running.Go(p.watch)
}

// pump takes the output apart until the engine ends it.
func (p *process) pump() {
	if err := p.split(p.log); err != nil {
		p.engine.log.Error("engine's output not understood", "server", p.server, "container", p.id, "err", err)
	}
}

// watch waits until the container has exited and its output has been read,
// and settles how it ended.
func (p *process) watch() {
	defer close(p.done)
	select {
	case result := <-p.waiting.Result:
		p.exit.Code = int(result.StatusCode)
	case err := <-p.waiting.Error:
		p.exit.Lost = true
		p.engine.log.Warn("container lost", "server", p.server, "container", p.id, "err", p.engine.Explain(err))
	}
	// What is left is bounded by the buffers on the way, and nobody may be
	// reading any more.
	p.stdout.Unbound()
	trail := time.NewTimer(trailTime)
	defer trail.Stop()
	select {
	case <-p.pumped:
	case <-trail.C:
		_ = p.conn.Close() // makes pump end; Close reports nothing of a connection that is done
		<-p.pumped
	}
	if !p.exit.Lost {
		p.ask()
	}
}

// ask settles why the container has ended. It waits a moment for the engine's
// word if the exit looks like that of a signal: the two come over different
// connections. What comes after a signal of our own is our own doing.
func (p *process) ask() {
	own := p.signalled.Load()
	var wait time.Duration
	if !own && (p.exit.Code == killedCode || p.exit.Code == terminatedCode) {
		wait = omenTime
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.omens.full:
		p.exit.OutOfMemory = p.exit.Code != 0
		return
	case <-p.omens.signal:
		p.exit.Stopped = !own
	case <-timer.C:
		select {
		case <-p.omens.signal:
			p.exit.Stopped = !own
		default:
		}
	}
	select {
	case <-p.omens.full: // a limit that was passed is the reason, whoever helped
		p.exit.OutOfMemory, p.exit.Stopped = p.exit.Code != 0, false
	default:
	}
}

func (p *process) ID() string { return p.id }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Exit() sandbox.Exit { return p.exit }

func (p *process) Close() error {
	if p.closing.CompareAndSwap(false, true) {
		p.closeErr = p.stop()
		close(p.gone)
	}
	<-p.gone
	return p.closeErr
}

// stop goes down the ladder, and waits until nothing is left: "closing the
// input stream to the child process", "waiting for the server to exit, or
// sending SIGTERM if the server does not exit within a reasonable time",
// "sending SIGKILL if the server does not exit within a reasonable time after
// SIGTERM" (MCP, basic/lifecycle, "Shutdown").
func (p *process) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.afterEOF+p.afterTerm+afterKill+owner.UndoTime)
	defer cancel()
	// Nobody reads any more, but a server must be able to write to its end.
	p.stdout.Discard()
	p.closeStdin()
	if !p.exits(p.afterEOF) {
		p.signalled.Store(true)
		p.signal(ctx, "SIGTERM")
		if !p.exits(p.afterTerm) {
			p.signal(ctx, "SIGKILL")
			p.exits(afterKill)
		}
	}
	err := p.engine.books.Remove(ctx, p.id)
	p.unwait()
	err = errors.Join(err, ended(p.conn.Close()))
	p.running.Wait()
	return errors.Join(err, p.forget())
}

func (p *process) exits(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// signal asks the engine to send a signal. A container that is gone needs
// none, and what else fails is tried again by the next step of the ladder.
func (p *process) signal(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	_, err := p.engine.client.ContainerKill(ctx, p.id, client.ContainerKillOptions{Signal: name})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		p.engine.log.Warn("signal not sent", "server", p.server, "container", p.id, "err", p.engine.Explain(err))
	}
}

// forget takes the process out of the engine's books.
func (p *process) forget() error {
	e := p.engine
	e.ends.forget(p.id)
	e.strike(p)
	return p.log.Close()
}
