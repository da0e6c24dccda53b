package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
)

func newLogs(f *flags) *cobra.Command {
	var n int
	var follow, gateway bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what a server wrote to standard error",
		Long: `Print what containers of a server wrote to standard error, of all gateways of
this state folder. What they write to standard output is the protocol, and is
not kept. With --gateway it is what the gateway says that clients share.` + exits,
		Example: `  dockgate logs fetch
  dockgate logs fetch -n 20 -f
  dockgate logs --gateway -n 20`,
		Args: func(cmd *cobra.Command, args []string) error {
			if gateway {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		ValidArgsFunction: once(f.completeServers()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if gateway {
				return f.printGatewayLog(cmd, n)
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				lines := keptLog(d, args[0], n)
				if follow {
					lines = d.Engine.Logs.Follow(cmd.Context(), args[0], n)
				}
				return printLog(cmd, d, args[0], n, lines)
			})
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", -1, "how many lines; -1 is all that is kept")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new ones until Ctrl-C")
	cmd.Flags().BoolVar(&gateway, "gateway", false, "of the gateway that clients share (serve --share)")
	cmd.MarkFlagsMutuallyExclusive("gateway", "follow")
	return cmd
}

// printGatewayLog prints the last n lines of what shared gateways have said;
// all of them if n is negative.
func (f *flags) printGatewayLog(cmd *cobra.Command, n int) error {
	options, err := f.around()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(logIn(options.State))
	if errors.Is(err, os.ErrNotExist) {
		tell(cmd, "no gateway has been shared yet")
		return nil
	}
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(string(text)))
	if n >= 0 {
		lines = lines[max(0, len(lines)-n):]
	}
	for _, line := range lines {
		if isTerminal(cmd.OutOrStdout()) {
			line = cleanLines(line)
		}
		if _, err := fmt.Fprint(cmd.OutOrStdout(), line); err != nil {
			return err
		}
	}
	return nil
}

// keptLog yields the lines that are there.
func keptLog(d *daemon.Daemon, server string, n int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines, err := d.Engine.Logs.Read(server, n)
		if err != nil {
			yield("", err)
			return
		}
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// printLog prints lines, of which n were wanted, and says so if there is none:
// a server that runs has a file from the start, which may be empty.
func printLog(cmd *cobra.Command, d *daemon.Daemon, server string, n int, lines iter.Seq2[string, error]) error {
	files, err := d.Engine.Logs.Files(server)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if _, err := d.Catalog().Server(server); err != nil {
			return err
		}
		tell(cmd, "%s has written nothing yet", server)
	}
	safe := func(line string) string { return line }
	if isTerminal(cmd.OutOrStdout()) {
		safe = clean
	}
	printed := 0
	for line, err := range lines {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), safe(line)); err != nil {
			return err
		}
		printed++
	}
	if printed == 0 && len(files) > 0 && n != 0 {
		tell(cmd, "%s has written nothing yet", clean(server))
	}
	return nil
}
