package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

// inspectFlags are those of inspect.
type inspectFlags struct {
	output
	examples bool
}

func newInspect(f *flags) *cobra.Command {
	var own inspectFlags
	cmd := &cobra.Command{
		Use:   "inspect SERVER TOOL",
		Short: "Show what a tool does, and its parameters",
		Long: `Show what a tool does, its parameters, and the examples that its catalog or its
schema has. Nothing is started. --examples shows those too that are made from
the required parameters.` + exits,
		Example: `  dockgate inspect github create_issue
  dockgate inspect github create_issue --examples`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeTools(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				details, err := d.Desk.Details(cmd.Context(), principal.Local, args[0], args[1])
				if err != nil {
					return err
				}
				return own.print(cmd, details, func() error { return own.show(cmd, details) })
			})
		},
	}
	own.flag(cmd)
	cmd.Flags().BoolVar(&own.examples, "examples", false, "show an example, made up if need be")
	return cmd
}

func (own inspectFlags) show(cmd *cobra.Command, details meta.Details) error {
	lines := []string{"Tool: " + clean(details.Server+":"+details.Tool)}
	switch {
	case !details.Enabled:
		lines = append(lines, "Disabled by tool rules; why: dockgate explain "+clean(details.Server+" "+details.Tool))
	case details.Confirmed:
		lines = append(lines, "A person confirms each call; why: dockgate explain "+clean(details.Server+" "+details.Tool))
	}
	if len(details.Tags) > 0 {
		lines = append(lines, "Tags: "+clean(strings.Join(details.Tags, ", ")))
	}
	lines = append(lines, "", "Description:")
	for line := range strings.Lines(strings.TrimSpace(details.Description)) {
		lines = append(lines, strings.TrimRight("  "+clean(strings.TrimRight(line, "\r\n")), " "))
	}
	lines = append(lines, "", "Parameters:")
	if len(details.Parameters) == 0 {
		lines = append(lines, "  none")
	}
	for i, p := range details.Parameters {
		need := "optional"
		if p.Required {
			need = "required"
		}
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, fmt.Sprintf("  %s (%s, %s)", clean(p.Name), clean(p.Type), need))
		if p.Description != "" {
			lines = append(lines, "    "+clean(p.Description))
		}
	}
	lines = append(lines, own.showExamples(details)...)
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

func (own inspectFlags) showExamples(details meta.Details) []string {
	examples := slices.DeleteFunc(slices.Clone(details.Examples), func(e meta.Example) bool { return e.Made && !own.examples })
	if len(examples) == 0 {
		return nil
	}
	lines := []string{"", "Examples:"}
	for i, example := range examples {
		if i > 0 {
			lines = append(lines, "")
		}
		title := example.Description
		if title == "" {
			title = fmt.Sprintf("Example %d", i+1)
		}
		lines = append(lines, "  "+clean(title)+":")
		for m, err := range jsonrpc.Members(example.Parameters) {
			if err != nil {
				break
			}
			lines = append(lines, "    "+clean(string(m.Name)+": "+string(m.Value)))
		}
	}
	return lines
}
