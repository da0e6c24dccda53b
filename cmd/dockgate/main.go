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
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev" //nolint:gochecknoglobals // -ldflags sets it

func main() { os.Exit(run()) }

// run is main with an exit code, as [exitCode] has it; 130 is interrupted.
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
	var own *exitError
	if !errors.As(err, &own) || !own.shown {
		fmt.Fprintf(os.Stderr, "dockgate: error: %s\n", cleanLines(phrase(err.Error())))
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintf(os.Stderr, "dockgate: hint: %s\n", cleanLines(phrase(hinted.Hint())))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dockgate",
		Short: "A gateway for MCP servers that run as isolated containers",
		Long: `A gateway for MCP servers that run as isolated containers.

An MCP client starts "dockgate serve" and sees the tools of all active servers
behind one endpoint. No server runs before a person has approved what it is and
what it may do.

Exit codes of every command: 0 done; 1 failed or used wrongly; 2 a configuration
or a catalog has mistakes, or what is named or looked for is not there; 3 the
call of a tool failed; 4 the tool rules disable it; 5 an approval is pending or
was denied; 130 interrupted. The first Ctrl-C ends what is under way and cleans
up; the second ends the process.`,
		Example: `  dockgate catalog ls
  dockgate add filesystem --set paths=$HOME/notes
  dockgate approve filesystem
  dockgate serve`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var f flags
	f.register(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{cmd: cmd, err: err} })
	root.AddGroup(
		&cobra.Group{ID: groupServers, Title: "Servers:"},
		&cobra.Group{ID: groupTools, Title: "Tools:"},
		&cobra.Group{ID: groupClients, Title: "MCP clients:"},
		&cobra.Group{ID: groupApproval, Title: "Approval, access and record:"},
		&cobra.Group{ID: groupRunning, Title: "What runs:"},
	)
	addGroup(root, groupServers, newServe(&f), newCatalog(&f), newImport(&f), newConfig(&f), newAdd(&f), newRemove(&f), newPlan(&f), newUpdate(&f), newLogin(&f), newLogout(&f), newDemo(&f))
	addGroup(root, groupTools, newList(&f), newSearch(&f), newTools(&f), newInspect(&f), newExecute(&f), newExplain(&f))
	addGroup(root, groupClients, newConnect(&f), newDisconnect(&f))
	addGroup(root, groupApproval, newApprove(&f), newDeny(&f), newRevoke(&f), newApprovals(&f), newToken(&f), newAudit(&f))
	addGroup(root, groupRunning, newPs(&f), newStats(&f), newLogs(&f), newStop(&f), newImages(&f), newDoctor(&f))
	root.AddCommand(newGateway(&f))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	checkUsage(root)
	checkHelp(root)
	// Flags are wrapped, as the texts above them are.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 80 "))
	return root
}

const (
	groupServers  = "servers"
	groupTools    = "tools"
	groupClients  = "clients"
	groupApproval = "approval"
	groupRunning  = "running"
)

func addGroup(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}

// checkUsage makes every mistake in the arguments of a command, and flags that
// do not go together, a [usageError], and gives commands that only hold others an
// answer to names that they do not have.
func checkUsage(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		checkUsage(child)
	}
	check := cmd.Args
	if check == nil {
		check = unknownCommand
	}
	if cmd.RunE == nil && cmd.Run == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			err = cmd.ValidateFlagGroups()
		}
		var usage *usageError
		if err == nil || errors.As(err, &usage) {
			return err
		}
		return &usageError{cmd: cmd, err: err}
	}
}

// checkHelp makes help of a command that is not there a mistake too.
func checkHelp(root *cobra.Command) {
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil {
			return &usageError{cmd: root, err: err}
		}
		return unknownCommand(about, rest)
	}
}

// unknownCommand refuses arguments of a command that takes subcommands, and
// names the nearest.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	failure := &usageError{cmd: cmd, err: fmt.Errorf("unknown command %q", args[0])}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		failure.hint = "did you mean: " + cmd.CommandPath() + " " + near[0]
	}
	return failure
}
