package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/owner"
)

func newStats(f *flags) *cobra.Command {
	var out output
	var once bool
	cmd := &cobra.Command{
		Use:   "stats [NAME...]",
		Short: "Show what the containers use",
		Long: `Show what the containers of the named servers, or all, use. On a terminal it
goes on until Ctrl-C; elsewhere, and with --no-stream or --json, it is printed
once.` + exits,
		Example: `  dockgate stats
  dockgate stats fetch --no-stream`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeFrom(running),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				if out.json || once || !isTerminal(cmd.OutOrStdout()) {
					return printStats(cmd, d, args, out)
				}
				return streamStats(cmd, d, args)
			})
		},
	}
	cmd.Flags().BoolVar(&once, "no-stream", false, "print once")
	out.flag(cmd)
	return cmd
}

// A usage is what one container uses.
type usage struct {
	container owner.Container
	owner.Stats
}

// measure asks for the use of all containers at the same time: the engine
// takes a second for each.
func measure(ctx context.Context, d *daemon.Daemon, names []string) ([]usage, error) {
	all, err := d.Running(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := known(d, name, all); err != nil {
			return nil, err
		}
	}
	containers, err := d.Running(ctx, names...)
	if err != nil {
		return nil, err
	}
	found := make([]*owner.Stats, len(containers))
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range containers {
		group.Go(func() error {
			stats, err := d.Engine.Stats(ctx, c.ID)
			if errors.Is(err, owner.ErrNotOurs) {
				return nil // it has gone meanwhile
			}
			found[i] = &stats
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	used := []usage{}
	for i, c := range containers {
		if found[i] != nil {
			used = append(used, usage{c, *found[i]})
		}
	}
	return used, nil
}

func printStats(cmd *cobra.Command, d *daemon.Daemon, names []string, out output) error {
	used, err := measure(cmd.Context(), d, names)
	if err != nil {
		return err
	}
	type line struct {
		Server      string  `json:"server"`
		Container   string  `json:"container"`
		CPU         float64 `json:"cpu"`
		Memory      uint64  `json:"memory"`
		MemoryLimit uint64  `json:"memory_limit"`
		PIDs        uint64  `json:"pids"`
		PIDLimit    uint64  `json:"pid_limit"`
		NetworkIn   uint64  `json:"network_in"`
		NetworkOut  uint64  `json:"network_out"`
		Read        uint64  `json:"read"`
		Written     uint64  `json:"written"`
	}
	lines := []line{}
	for _, u := range used {
		lines = append(lines, line{
			u.container.Server, u.container.ID, u.CPU, u.Memory, u.MemoryLimit, u.PIDs, u.PIDLimit,
			u.NetworkIn, u.NetworkOut, u.Read, u.Written,
		})
	}
	return out.print(cmd, lines, func() error {
		if len(used) == 0 {
			tell(cmd, "nothing runs; servers start on their first call")
			return nil
		}
		return tabulate(cmd.OutOrStdout(), used)
	})
}

func tabulate(w io.Writer, used []usage) error {
	size := func(n uint64) string { return units.BytesSize(float64(n)) }
	var rows [][]string
	for _, u := range used {
		rows = append(rows, []string{
			u.container.Server, shortDigest(u.container.ID), fmt.Sprintf("%.1f%%", u.CPU*100),
			size(u.Memory) + " / " + size(u.MemoryLimit), fmt.Sprintf("%d / %d", u.PIDs, u.PIDLimit),
			size(u.NetworkIn) + " / " + size(u.NetworkOut), size(u.Read) + " / " + size(u.Written),
		})
	}
	return writeTable(w, []string{"SERVER", "CONTAINER", "CPU", "MEMORY", "PROCESSES", "NETWORK IN/OUT", "DISK READ/WRITTEN"}, rows)
}

// clearScreen puts a table in the place of the one before.
const clearScreen = "\x1b[H\x1b[2J"

// streamStats prints the use again and again; the engine's second of
// measuring is the pause. Ctrl-C ends it without an error.
func streamStats(cmd *cobra.Command, d *daemon.Daemon, names []string) error {
	for {
		used, err := measure(cmd.Context(), d, names)
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
		if len(used) == 0 {
			tell(cmd, "nothing runs; servers start on their first call")
			return nil
		}
		var b strings.Builder
		if err := tabulate(&b, used); err != nil {
			return err
		}
		if _, err := fmt.Fprint(cmd.OutOrStdout(), clearScreen+b.String()); err != nil {
			return err
		}
	}
}
