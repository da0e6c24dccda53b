package daemon

import (
	"context"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/principal"
)

// Serve serves one client over a pair of streams until it leaves or ctx ends,
// and closes them.
func (d *Daemon) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return d.run(ctx, func(ctx context.Context) error {
		return d.Gateway.Serve(ctx, in, out, principal.Local)
	})
}

// run does what a gateway does beside serving, while it serves: also while
// serve ends what is under way because ctx has ended.
func (d *Daemon) run(ctx context.Context, serve func(context.Context) error) error {
	if d.Config.Approval.Mode == approval.ModeAll {
		d.Logger.Warn("every server is approved without asking (approval mode all)")
	}
	if err := d.Audit.Open(); err != nil {
		return err
	}
	beside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, beside := errgroup.WithContext(beside)
	group.Go(func() error { return d.Book.Run(beside) })
	group.Go(func() error { return d.Engine.Keep(beside) })
	group.Go(func() error { return d.watch(beside) })
	group.Go(func() error { return d.follow(beside) })
	group.Go(func() error {
		defer cancel()
		serving, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(beside, stop)()
		return serve(serving)
	})
	return group.Wait()
}

// Beside does what a command needs that makes calls and serves nobody, while
// it makes them: it sees what people decide elsewhere, and keeps its containers.
func (d *Daemon) Beside(ctx context.Context, do func(context.Context) error) error {
	if err := d.Audit.Open(); err != nil {
		return err
	}
	beside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, beside := errgroup.WithContext(beside)
	group.Go(func() error { return d.Book.Run(beside) })
	group.Go(func() error { return d.Engine.Keep(beside) })
	group.Go(func() error {
		defer cancel()
		return do(ctx)
	})
	return group.Wait()
}

// watchEvery is how soon another process's change of the active servers is seen.
const watchEvery = 250 * time.Millisecond

// watch tells the gateway of everything that may change its lists, and starts
// in advance what is to be.
func (d *Daemon) watch(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	seen, err := d.Store.ActivationRevision(ctx)
	switch {
	case ctx.Err() != nil: // the client has left before anything happened
		return nil
	case err != nil:
		return err
	}
	// Asked for before anything is looked at: what changes meanwhile is news.
	decided, listed := d.Book.Changed(), d.Caller.Offers.Changed()
	started := map[string]bool{}
	d.warm(ctx, principal.Local, started)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-decided:
		case <-listed:
		case <-ticker.C:
			now, err := d.Store.ActivationRevision(ctx)
			if err != nil {
				d.Logger.Error("read active servers", "err", err)
				continue
			}
			if now == seen {
				continue
			}
			seen = now
		}
		decided, listed = d.Book.Changed(), d.Caller.Offers.Changed()
		d.Planner.ForgetAll()
		d.Gateway.Changed(ctx)
		d.warm(ctx, principal.Local, started)
	}
}
