package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/meta"
	"github.com/dockgate/dockgate/internal/principal"
)

func newSearch(f *flags) *cobra.Command {
	var out output
	var server string
	var limit int
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search the tools of your servers",
		Long: `Search the tools of your servers, by what they do or by name. Tools that the
tool rules disable are not found.` + exitsSearch,
		Example: `  dockgate search "github issue"
  dockgate search "create" --server github
  dockgate search "file" --limit 5`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := strings.Join(args, " ")
			if strings.TrimSpace(query) == "" {
				return &usageError{cmd: cmd, err: fmt.Errorf("the query is empty")}
			}
			if limit < 1 || limit > meta.MaxHits {
				return &usageError{cmd: cmd, err: fmt.Errorf("--limit is %d, want 1 to %d", limit, meta.MaxHits)}
			}
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				hits, err := d.Desk.Search(cmd.Context(), principal.Local, query, server, limit)
				if err != nil {
					return err
				}
				if err := out.print(cmd, map[string]any{"results": hits}, func() error { return showHits(cmd, query, hits) }); err != nil {
					return err
				}
				if len(hits) == 0 {
					return &exitError{code: 2, err: &nothingFoundError{query: query}}
				}
				return nil
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&server, "server", "", "search the tools of one server")
	cmd.Flags().IntVar(&limit, "limit", meta.DefaultHits, "the most results")
	complete := f.completeFrom(enabled)
	if err := cmd.RegisterFlagCompletionFunc("server", complete); err != nil {
		panic(err) // the flag stands above
	}
	return cmd
}

// A nothingFoundError is a search without a result.
type nothingFoundError struct{ query string }

func (e *nothingFoundError) Error() string {
	return fmt.Sprintf("no tool of your servers fits %q", e.query)
}

// Hint says where more servers are.
func (e *nothingFoundError) Hint() string {
	return "try other words; servers to add are listed by: dockgate catalog ls"
}

func showHits(cmd *cobra.Command, query string, hits []meta.Hit) error {
	paint := paintFor(cmd.OutOrStdout())
	lines := []string{fmt.Sprintf("Search results for %q (%d found):", query, len(hits))}
	for i, hit := range hits {
		lines = append(lines, "", fmt.Sprintf("%d. %s (%.0f%% match)", i+1, paint.bold(clean(hit.Server+":"+hit.Tool)), math.Round(hit.Relevance*100)))
		if hit.Summary != "" {
			lines = append(lines, "   "+clean(hit.Summary))
		}
		if len(hit.Tags) > 0 {
			lines = append(lines, "   Tags: "+clean(strings.Join(hit.Tags, ", ")))
		}
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}
