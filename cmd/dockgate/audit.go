package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/audit"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/principal"
)

func newAudit(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read and check the record of starts, decisions and calls",
	}
	cmd.AddCommand(newAuditTail(f), newAuditVerify(f), newAuditExport(f))
	return cmd
}

// auditDir is the folder of the record.
func (f *flags) auditDir() (string, error) {
	options, err := f.around()
	return daemon.AuditDir(options.State), err
}

func newAuditTail(f *flags) *cobra.Command {
	var n int
	var follow bool
	var out output
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the last records of all gateways",
		Long: `Print the last records of all gateways of the state folder, oldest first. Each
is checked against its own hash; "dockgate audit verify" checks the chain.` + exits,
		Example: `  dockgate audit tail -n 50
  dockgate audit tail -f --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.auditDir()
			if err != nil {
				return err
			}
			records := lastRecords(cmd.Context(), dir, n)
			if follow {
				records = audit.Follow(cmd.Context(), dir, n)
			}
			some := false
			for r, err := range records {
				if err != nil {
					return err
				}
				some = true
				if out.json {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
				} else {
					err = printRecord(cmd, r)
				}
				if err != nil {
					return err
				}
			}
			if !some && !out.json {
				tell(cmd, "nothing is recorded yet")
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", 20, "how many records; -1 is all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new ones until Ctrl-C")
	cmd.Flags().BoolVar(&out.json, "json", false, "print JSON, one record a line")
	return cmd
}

// lastRecords yields the records that are there.
func lastRecords(ctx context.Context, dir string, n int) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		records, err := audit.Tail(ctx, dir, n)
		if err != nil {
			yield(audit.Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// printRecord prints a record for people, in one line.
func printRecord(cmd *cobra.Command, r audit.Record) error {
	words := []string{r.Time.Local().Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%-10s", r.Kind)}
	subject := r.Server
	if r.Tool != "" {
		subject += "/" + r.Tool
	}
	caller := ""
	if r.Principal != "" && r.Principal != principal.Local.ID {
		caller = "by " + r.Principal
	}
	for _, word := range []string{subject, caller, r.Outcome, r.Code} {
		if word != "" {
			words = append(words, word)
		}
	}
	if r.DurationUS > 0 {
		words = append(words, (time.Duration(r.DurationUS) * time.Microsecond).String())
	}
	if r.Bytes > 0 {
		words = append(words, units.HumanSize(float64(r.Bytes)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Detail)) {
		value := r.Detail[name]
		if strings.HasPrefix(value, "sha256:") {
			value = shortDigest(value)
		}
		words = append(words, name+"="+value)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), clean(strings.Join(words, " ")))
	return err
}

func newAuditVerify(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no record was edited, deleted, inserted or moved",
		Long: `Check that no record was edited, deleted, inserted or moved, and print what was
as "file:line: fault: message". The hash of each gateway's last record, kept
somewhere else, later proves that the record up to there was not rewritten.` + exits,
		Example: `  dockgate audit verify`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.auditDir()
			if err != nil {
				return err
			}
			report, err := audit.Verify(dir)
			if err != nil {
				return err
			}
			err = out.print(cmd, reportJSON(report), func() error { return printReport(cmd, report) })
			if err == nil && !report.Intact() {
				err = errors.New("the record was changed")
			}
			return err
		},
	}
	out.flag(cmd)
	return cmd
}

func printReport(cmd *cobra.Command, report audit.Report) error {
	if len(report.Chains) == 0 {
		tell(cmd, "nothing is recorded yet")
		return nil
	}
	paint := paintFor(cmd.OutOrStdout())
	for _, chain := range report.Chains {
		for _, problem := range chain.Problems {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), clean(problem.String())); err != nil {
				return err
			}
		}
		verdict := paint.green("intact")
		if !(audit.Report{Chains: []audit.Chain{chain}}).Intact() {
			verdict = paint.red("changed")
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s in %s, %s; last hash %s\n",
			clean(chain.Gateway), count(chain.Records, "record"), count(chain.Files, "file"), verdict, chain.Hash)
		if err != nil {
			return err
		}
	}
	return nil
}

// reportJSON is a report for programs.
func reportJSON(report audit.Report) any {
	type problem struct {
		Fault   audit.Fault `json:"fault"`
		File    string      `json:"file"`
		Line    int         `json:"line,omitempty"`
		Message string      `json:"message"`
	}
	type chain struct {
		Gateway  string    `json:"gateway"`
		Files    int       `json:"files"`
		Records  int       `json:"records"`
		First    time.Time `json:"first,omitzero"`
		Last     time.Time `json:"last,omitzero"`
		Hash     string    `json:"hash"`
		Problems []problem `json:"problems"`
	}
	chains := []chain{}
	for _, c := range report.Chains {
		out := chain{c.Gateway, c.Files, c.Records, c.First, c.Last, c.Hash, []problem{}}
		for _, p := range c.Problems {
			out.Problems = append(out.Problems, problem{p.Fault, p.File, p.Line, p.Message})
		}
		chains = append(chains, out)
	}
	return struct {
		Intact bool    `json:"intact"`
		Chains []chain `json:"chains"`
	}{report.Intact(), chains}
}

func newAuditExport(f *flags) *cobra.Command {
	format := string(audit.JSONL)
	since := moment{direction: back}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the record as JSON lines or CSV",
		Long: `Print the record of all gateways, one after the other. JSON lines are as they
stand in the record, hashes included.` + exits,
		Example: `  dockgate audit export --since 30d > record.jsonl
  dockgate audit export --format csv --since 2030-01-01 > record.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != string(audit.JSONL) && format != string(audit.CSV) {
				return &usageError{cmd: cmd, err: fmt.Errorf("--format is %q, want %s or %s", format, audit.JSONL, audit.CSV)}
			}
			dir, err := f.auditDir()
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			return errors.Join(audit.Export(out, dir, since.Time, audit.Format(format)), out.Flush())
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "jsonl or csv")
	cmd.Flags().Var(&since, "since", "leave out what is older: 30d, 12h, or a date such as 2030-01-01")
	return cmd
}
