package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/presence"
)

func newConfigReload(f *flags) *cobra.Command {
	var out output
	var flush bool
	cmd := &cobra.Command{
		Use:   "reload [--flush [SERVER]]",
		Short: "Make every gateway that runs read its configuration again",
		Long: `Make every gateway of this state folder that runs read its configuration and its
catalogs again. Each does so by itself when a file changes; calls under way go
on. With a mistake it goes on with what it has, and the command fails.

Catalogs, sources, servers, rules, roles, groups, limits, timeouts and quotas
hold at once. What holds after a restart only is named.

--flush also drops what is kept of what servers offered, or of what SERVER did.
What was approved stays, and so does what a server offers that runs.` + exits,
		Example: `  dockgate config reload
  dockgate config reload --flush
  dockgate config reload --flush github`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !flush {
				return errors.New("the name of a server needs --flush")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		ValidArgsFunction: once(f.completeFrom(enabled)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				ask := func(ctx context.Context) (string, error) { return presence.AskReload(ctx, d.Store) }
				if flush {
					ask = func(ctx context.Context) (string, error) { return d.Flush(ctx, strings.Join(args, "")) }
				}
				asked, err := ask(cmd.Context())
				if err != nil {
					return err
				}
				gateways, err := reloaded(cmd.Context(), d, asked)
				if err != nil {
					return err
				}
				return printReload(cmd, out, gateways, asked)
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().BoolVar(&flush, "flush", false, "drop what is kept of what servers offered")
	return cmd
}

// reloadPatience bounds the wait for gateways.
const reloadPatience = 5 * time.Second

// reloaded waits until every gateway that runs has met a wish, and returns them.
func reloaded(ctx context.Context, d *daemon.Daemon, asked string) ([]presence.Presence, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		gateways, err := presence.Running(context.WithoutCancel(ctx), d.Store)
		if err != nil {
			return nil, err
		}
		waiting := false
		for _, gateway := range gateways {
			waiting = waiting || gateway.Asked < asked
		}
		if !waiting {
			return gateways, nil
		}
		select {
		case <-ctx.Done():
			return gateways, nil
		case <-ticker.C:
		}
	}
}

func printReload(cmd *cobra.Command, out output, gateways []presence.Presence, asked string) error {
	var problems []string
	err := out.print(cmd, map[string]any{"gateways": append([]presence.Presence{}, gateways...)}, func() error {
		lines := []string{"no gateway runs; the next one reads the configuration when it starts"}
		if len(gateways) > 0 {
			lines = nil
		}
		for _, gateway := range gateways {
			line := fmt.Sprintf("gateway %s: reloaded in %.0f ms", gateway.ID, gateway.Took)
			switch {
			case gateway.Asked < asked:
				line = fmt.Sprintf("gateway %s: has not answered", gateway.ID)
			case gateway.Problem != "":
				line = fmt.Sprintf("gateway %s: goes on with an earlier configuration", gateway.ID)
			case len(gateway.Restart) > 0:
				line += "; needs a restart for: " + strings.Join(gateway.Restart, ", ")
			}
			lines = append(lines, clean(line))
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
	for _, gateway := range gateways {
		if gateway.Problem != "" {
			problems = append(problems, gateway.Problem)
		}
	}
	if err == nil && len(problems) > 0 {
		err = &exitError{code: 2, err: errors.New(strings.Join(problems, "\n"))}
	}
	return err
}
