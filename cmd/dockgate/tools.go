package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

// toolsFlags are those of tools.
type toolsFlags struct {
	output
	all  bool
	tags bool
}

func newTools(f *flags) *cobra.Command {
	var own toolsFlags
	cmd := &cobra.Command{
		Use:   "tools SERVER",
		Short: "List the tools of a server",
		Long: `List the tools of a server, as it listed them last or, if it never ran, as the
catalog has them. Nothing is started. --all lists those too that the tool rules
disable; --tags says of those without tags that they have none.` + exits,
		Example: `  dockgate tools github
  dockgate tools github --all
  dockgate tools github --tags`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: once(f.completeServers()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				stock, err := d.Desk.Stock(cmd.Context(), principal.Local, args[0])
				if err != nil {
					return err
				}
				return own.list(cmd, args[0], stock)
			})
		},
	}
	own.flag(cmd)
	cmd.Flags().BoolVar(&own.all, "all", false, "list disabled tools too")
	cmd.Flags().BoolVar(&own.tags, "tags", false, "show tags, and where there are none")
	return cmd
}

func (own toolsFlags) list(cmd *cobra.Command, server string, stock meta.Stock) error {
	tools := []meta.Listed{}
	for _, item := range stock.Items {
		if item.Enabled() || own.all {
			tools = append(tools, item.Listed())
		}
	}
	return own.print(cmd, map[string]any{"server": server, "tools": tools}, func() error {
		enabled := stock.Enabled()
		head := fmt.Sprintf("Tools from %s (%d enabled", clean(server), enabled)
		if disabled := len(stock.Items) - enabled; disabled > 0 {
			head += fmt.Sprintf(", %d disabled", disabled)
		}
		lines := []string{head + "):"}
		for _, listed := range tools {
			lines = append(lines, own.describe(paintFor(cmd.OutOrStdout()), listed)...)
		}
		if len(stock.Items) == 0 {
			tell(cmd, "%s has not listed its tools yet: it does when it runs for the first time", server)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
		return err
	})
}

func (own toolsFlags) describe(paint paint, listed meta.Listed) []string {
	lines := []string{"", paint.green("✓") + " " + clean(listed.Name)}
	switch {
	case !listed.Enabled:
		lines[1] = paint.red("✗") + " " + clean(listed.Name) + " (disabled)"
	case listed.Confirmed:
		lines[1] += " (asks)"
	}
	if listed.Summary != "" {
		lines = append(lines, "  "+clean(listed.Summary))
	}
	switch {
	case len(listed.Tags) > 0:
		lines = append(lines, "  Tags: "+clean(strings.Join(listed.Tags, ", ")))
	case own.tags:
		lines = append(lines, "  Tags: none")
	}
	return lines
}
