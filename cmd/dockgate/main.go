// Command dockgate is a gateway for MCP servers that run as isolated
// containers: the daemon that MCP clients start, and the commands with which
// people see, approve and stop what runs behind it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev" //nolint:gochecknoglobals // -ldflags sets it

func main() { os.Exit(run()) }

// run is main with an exit code: 0 done, 1 failed, 2 used wrongly, 3 a server
// could not be reached, 5 an approval is pending or denied, 130 interrupted.
func run() int {
	ctx, stop := untilSignal()
	defer stop()
	root := newRoot()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return 130
	}
	report(err)
	return exitCode(err)
}

// untilSignal returns a context that the first signal ends. The second one
// ends the process: whoever waits too long is not waited for.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		if _, ok := <-signals; ok {
			os.Exit(130)
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(); close(signals) }
}

// report prints an error, and what the user can do, for people.
func report(err error) {
	fmt.Fprintf(os.Stderr, "dockgate: error: %v\n", err)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintf(os.Stderr, "dockgate: hint: %s\n", hinted.Hint())
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "dockgate",
		Short:         "A gateway for MCP servers that run as isolated containers",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	var f flags
	f.register(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd: cmd, err: err} })
	root.AddCommand(newServe(&f))
	return root
}
