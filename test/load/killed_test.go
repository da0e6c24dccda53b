package load_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/upstream"
)

// Ten gateways of three state folders come and go at random, most of them by
// SIGKILL, while they start, while their servers start, in calls and idle. No
// answer is another one's, and when the last gateway of each folder has run
// for ten seconds, nothing of those before it is left.
func TestKilledAtRandom(t *testing.T) {
	const width, folders = 10, 3
	api := needDemo(t)
	length := 20 * time.Second
	if os.Getenv("LOAD") == "long" {
		length = time.Minute
	}
	var town []*house
	for i := range folders {
		fields := []string{"", ", isolation: session", ", isolation: principal"}[i%3]
		town = append(town, newHouse(t, 2, 2, fields))
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var tally tally
	var group sync.WaitGroup
	for i := range width {
		random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		group.Go(func() {
			for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
				life := &life{
					house: town[random.IntN(folders)], name: fmt.Sprintf("%d.%d", i, n), end: anEnd(random), after: aMoment(random),
				}
				if err := life.live(context.WithoutCancel(ctx), random, &tally); err != nil {
					t.Errorf("gateway %s, to end by %v after %v: %v", life.name, life.end, life.after, err)
				}
			}
		})
	}
	group.Wait()
	t.Log(&tally)
	if tally.answers.Load() == 0 || tally.killed.Load() == 0 || tally.early.Load() == 0 {
		t.Error("want answers, gateways that were killed, and some that were before they had answered")
	}
	for _, h := range town {
		h.mustRecover(t, api)
	}
}

// A tally is what has happened.
type tally struct {
	lives, killed, answers atomic.Int64
	// early are the gateways that ended before they had answered initialize,
	// dormant those before a call was answered.
	early, dormant atomic.Int64
}

func (c *tally) String() string {
	return fmt.Sprintf("%d gateways, %d killed; %d ended before they answered, %d more before a call was; %d calls answered",
		c.lives.Load(), c.killed.Load(), c.early.Load(), c.dormant.Load(), c.answers.Load())
}

// An end is how a gateway ends: by a signal, or 0 if its client leaves.
type end = syscall.Signal

func anEnd(random *rand.Rand) end {
	return []end{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, 0}[random.IntN(5)]
}

// aMoment is soon, in every second life.
func aMoment(random *rand.Rand) time.Duration {
	longest := 400 * time.Millisecond
	if random.IntN(2) == 0 {
		longest = 6 * time.Second
	}
	return time.Duration(random.Int64N(int64(longest)))
}

// A life is that of one gateway.
type life struct {
	house *house
	name  string
	end   end
	after time.Duration

	mu    sync.Mutex
	ended bool
}

// live starts a gateway, makes calls until its end has come, and waits for it.
func (l *life) live(ctx context.Context, random *rand.Rand, tally *tally) error {
	p, err := l.house.serve()
	if err != nil {
		return err
	}
	tally.lives.Add(1)
	if l.end == syscall.SIGKILL {
		tally.killed.Add(1)
	}
	ending := make(chan error, 1)
	time.AfterFunc(l.after, func() { ending <- l.finish(p) })
	session, err := p.connect(ctx)
	connected := err == nil
	if connected {
		err = l.talk(ctx, session, random, tally)
		err = errors.Join(l.unlessEnded(err), session.Close())
	} else {
		tally.early.Add(1)
		err = l.unlessEnded(err)
	}
	err = errors.Join(err, <-ending)
	if exit := p.wait(); !l.explains(exit, connected) {
		err = errors.Join(err, exit)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.stderr.String())
	}
	return nil
}

// interrupted is the exit code of a command that a signal has stopped.
const interrupted = 130

// explains reports whether the end explains how the process ended: well, by
// SIGKILL, or by a signal that came before it served.
func (l *life) explains(exit error, connected bool) bool {
	var status *exec.ExitError
	if !errors.As(exit, &status) {
		return exit == nil
	}
	wait, ok := status.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return false
	case l.end == syscall.SIGTERM && !connected && status.ExitCode() == interrupted:
		return true
	}
	return wait.Signaled() && wait.Signal() == l.end && (l.end == syscall.SIGKILL || !connected)
}

// finish brings the end.
func (l *life) finish(p *program) error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	if l.end == 0 {
		return p.Close()
	}
	return p.cmd.Process.Signal(l.end)
}

// unlessEnded returns nil for what an end explains: all but the answer to
// another call.
func (l *life) unlessEnded(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var cross *crossError
	if l.ended && !errors.As(err, &cross) {
		return nil
	}
	return err
}

// talk makes calls, two at a time, until one fails.
func (l *life) talk(ctx context.Context, session *upstream.Session, random *rand.Rand, tally *tally) error {
	var answered atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for caller := range 2 {
		random := rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
		group.Go(func() error {
			for n := 0; ; n++ {
				server := l.house.servers[random.IntN(len(l.house.servers))]
				var err error
				if random.IntN(20) == 0 {
					err = rest(ctx, session, server, 1000+random.IntN(1000))
				} else {
					err = echo(ctx, session, server, fmt.Sprintf("gateway %s, caller %d, call %d of %s", l.name, caller, n, server))
				}
				if err != nil {
					return err
				}
				answered.Add(1)
			}
		})
	}
	err := group.Wait()
	tally.answers.Add(answered.Load())
	if answered.Load() == 0 {
		tally.dormant.Add(1)
	}
	return err
}

// mustRecover holds that a last gateway removes what is left of those before
// it, that it serves every server, and that the record of all is whole.
func (h *house) mustRecover(t *testing.T, api *client.Client) {
	t.Helper()
	if found := left(t, api, h.stateID(t)); len(found) > 0 {
		t.Logf("left by the killed:\n%s", strings.Join(found, "\n"))
	}
	last := h.open(t)
	h.mustVanish(t, api)
	for _, server := range h.servers {
		if err := echo(t.Context(), last.session, server, "the last call of "+server); err != nil {
			t.Error(err)
		}
	}
	if err := last.close(); err != nil {
		t.Error(err)
	}
	h.mustVanish(t, api)
	if locks, err := os.ReadDir(filepath.Join(h.state, "owners")); err != nil || len(locks) > 0 {
		t.Errorf("%d locks of gateways that are gone, %v", len(locks), err)
	}
	if out, err := h.command("audit", "verify").CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
}
