package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/setup"
)

// A completer offers the words that can stand for the next argument.
type completer = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// complete offers the names that list returns, but those that stand there
// already. At a mistake it offers nothing: a shell has no place for errors.
func complete(list func(ctx context.Context) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := list(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// once offers words for the first argument only.
func once(inner completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return inner(cmd, args, typed)
	}
}

// completeServers offers the servers of the catalogs that can run.
func (f *flags) completeServers() completer {
	return complete(func(ctx context.Context) ([]string, error) {
		options, err := f.options()
		if err != nil {
			return nil, err
		}
		servers, _, err := setup.LoadCatalog(ctx, options.Inputs)
		if err != nil {
			return nil, err
		}
		return supported(servers), nil
	})
}

func supported(servers *catalog.Catalog) []string {
	var names []string
	for _, s := range servers.Servers() {
		if s.Runs() != catalog.KindUnsupported {
			names = append(names, s.Name)
		}
	}
	return names
}

// completeFrom offers what the parts of a gateway know.
func (f *flags) completeFrom(list func(ctx context.Context, d *daemon.Daemon) ([]string, error)) completer {
	return complete(func(ctx context.Context) (names []string, err error) {
		err = f.use(ctx, func(d *daemon.Daemon) error {
			names, err = list(ctx, d)
			return err
		})
		return names, err
	})
}

func active(ctx context.Context, d *daemon.Daemon) ([]string, error) {
	return d.Active.Active(ctx, principal.Local)
}

// enabled are the servers that the user can use.
func enabled(ctx context.Context, d *daemon.Daemon) ([]string, error) {
	return d.Desk.Enabled(ctx, principal.Local)
}

func approved(_ context.Context, d *daemon.Daemon) ([]string, error) {
	var names []string
	for _, a := range d.Book.Approvals() {
		names = append(names, a.Server)
	}
	slices.Sort(names)
	return slices.Compact(names), nil // one may have several approvals
}

func asked(_ context.Context, d *daemon.Daemon) ([]string, error) {
	var names []string
	for _, q := range d.Book.Questions(approval.ProgressPending) {
		names = append(names, q.Server)
	}
	return names, nil
}

func askedOrSupported(ctx context.Context, d *daemon.Daemon) ([]string, error) {
	names, err := asked(ctx, d)
	return append(names, supported(d.Catalog())...), err
}

func running(ctx context.Context, d *daemon.Daemon) ([]string, error) {
	containers, err := d.Running(ctx)
	var names []string
	for _, c := range containers {
		names = append(names, c.Server)
	}
	return names, err
}

// completeTools offers servers of the catalogs, and then tools of the one that
// is named.
func (f *flags) completeTools() completer {
	servers := f.completeServers()
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return servers(cmd, args, typed)
		case 1:
			return f.completeFrom(func(ctx context.Context, d *daemon.Daemon) ([]string, error) {
				stock, err := d.Desk.Stock(ctx, principal.Local, args[0])
				names := make([]string, 0, len(stock.Items))
				for _, item := range stock.Items {
					names = append(names, item.Name)
				}
				return names, err
			})(cmd, nil, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
