package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/rules"
	"github.com/dockgate/dockgate/internal/tool"
)

func newExplain(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "explain SERVER TOOL",
		Short: "Show what the tool rules say of a tool, and why",
		Long: `Show what the tool rules say of a tool, and why: each rule in its order,
whether it matches, and which one decides. Nothing is started: a tool that its
server has not listed yet is explained by its name.` + exits,
		Example: `  dockgate explain github delete_repo
  dockgate explain github delete_repo --json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeTools(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				ref := tool.Ref{Server: args[0], Name: args[1]}
				stock, err := d.Desk.Stock(cmd.Context(), principal.Local, ref.Server)
				if err != nil {
					return err
				}
				definition := tool.Definition{Name: ref.Name}
				item, known := stock.Item(ref.Name)
				if known {
					definition = item.Definition
				}
				if !known {
					tell(cmd, "%s", clean(unlisted(ref, stock.Items)))
				}
				return explain(cmd, explained{ref, known, d.Now().Rules.Explain(ref.Server, definition)}, out)
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// unlisted says that a tool is not there, and which are like it: an
// explanation of a name that was typed wrongly looks like one of a tool.
func unlisted(ref tool.Ref, items []meta.Item) string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.Name
	}
	text := ref.Server + " has listed no such tool"
	if near := catalog.Nearest(ref.Name, names); len(near) > 0 {
		text += "; nearest: " + strings.Join(near, ", ")
	}
	return text + "; it is explained by its name"
}

// An explained is a tool and what the rules make of it.
type explained struct {
	tool.Ref
	known bool // the server has listed it
	rules.Explanation
}

// explain prints an explanation.
func explain(cmd *cobra.Command, e explained, out output) error {
	type step struct {
		Number  int        `json:"number"`
		Rule    rules.Rule `json:"rule"`
		Matched bool       `json:"matched"`
		Decides bool       `json:"decides"`
		Why     string     `json:"why"`
	}
	steps := make([]step, len(e.Steps))
	for i, s := range e.Steps {
		steps[i] = step{s.Number, s.Rule, s.Matched, s.Decides, s.Why}
	}
	title := "Tool: " + clean(e.Server+":"+e.Name)
	if !e.known {
		title += " (not listed)"
	}
	return out.print(cmd, struct {
		Server   string        `json:"server"`
		Tool     string        `json:"tool"`
		Known    bool          `json:"known"`
		Enabled  bool          `json:"enabled"`
		Decision rules.Verdict `json:"decision"`
		Why      []string      `json:"why"`
		Tags     []string      `json:"tags"`
		Rules    []step        `json:"rules"`
	}{e.Server, e.Name, e.known, e.Enabled(), e.Verdict, e.Why, append([]string{}, e.Tags...), steps}, func() error {
		return describeExplanation(cmd, title, e.Explanation)
	})
}

func describeExplanation(cmd *cobra.Command, title string, e rules.Explanation) error {
	paint := paintFor(cmd.OutOrStdout())
	decision := map[rules.Verdict]string{
		rules.Allow: paint.green("enabled"), rules.Ask: paint.yellow("enabled, a person confirms each call"), rules.Deny: paint.red("disabled"),
	}[e.Verdict]
	lines := []string{title, "Decision: " + decision}
	for _, why := range e.Why {
		lines = append(lines, "  "+clean(why))
	}
	if len(e.Tags) > 0 {
		lines = append(lines, "Tags: "+clean(strings.Join(e.Tags, ", ")))
	}
	if len(e.Steps) > 0 {
		lines = append(lines, "", fmt.Sprintf("Tool Rules (%d):", len(e.Steps)))
	}
	for _, step := range e.Steps {
		mark := " "
		switch {
		case step.Decides:
			mark = paint.bold("▶")
		case step.Matched:
			mark = "✓"
		}
		lines = append(lines, fmt.Sprintf("%s %d. %s", mark, step.Number, clean(step.Rule.String())))
		place := step.Rule.Place
		if place != "" {
			place = "  (" + place + ")"
		}
		lines = append(lines, "     "+clean(step.Why+place))
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}
