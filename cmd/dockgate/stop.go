package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/owner"
)

func newStop(f *flags) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "stop [NAME...]",
		Short: "Stop and remove containers",
		Long: `Stop and remove the containers of the named servers, whichever gateway of this
state folder has started them. Calls that are under way fail; the next call
starts the server again.` + exits,
		Example: `  dockgate stop fetch
  dockgate stop --all`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeFrom(running),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return &usageError{cmd: cmd, err: errors.New("name the servers to stop, or use --all")}
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return stop(cmd, d, args) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop every server")
	return cmd
}

func stop(cmd *cobra.Command, d *daemon.Daemon, names []string) error {
	everything, err := d.Running(cmd.Context())
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := known(d, name, everything); err != nil {
			return err
		}
	}
	containers, err := d.Running(cmd.Context(), names...)
	if err != nil {
		return err
	}
	if len(containers) == 0 {
		tell(cmd, "nothing runs that could be stopped")
		return nil
	}
	if err := stopAll(cmd.Context(), d.Engine, containers); err != nil {
		return err
	}
	for _, c := range containers {
		tell(cmd, "stopped %s (%s)", c.Server, shortDigest(c.ID))
	}
	return nil
}

// stopAll stops containers at the same time, because each may take seconds.
func stopAll(ctx context.Context, engine *docker.Engine, containers []owner.Container) error {
	var group errgroup.Group
	failures := make([]error, len(containers))
	for i, c := range containers {
		group.Go(func() error {
			err := engine.Stop(ctx, c.ID)
			if !errors.Is(err, owner.ErrNotOurs) { // that one has gone meanwhile
				failures[i] = err
			}
			return nil
		})
	}
	return errors.Join(append(failures, group.Wait())...)
}
