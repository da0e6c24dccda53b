package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/plan"
)

// writeJSON writes a value for programs.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// An output is the form of a listing: for people, or as JSON.
type output struct{ json bool }

// flag adds --json to a command.
func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// print prints value as JSON, or what people prints.
func (o output) print(cmd *cobra.Command, value any, people func() error) error {
	if o.json {
		return writeJSON(cmd.OutOrStdout(), value)
	}
	return people()
}

// columnGap is how many spaces are between the columns of a table.
const columnGap = 3

// writeTable writes rows below a header, in columns.
func writeTable(w io.Writer, header []string, rows [][]string) error {
	var table bytes.Buffer
	columns := tabwriter.NewWriter(&table, 0, 0, columnGap, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = clean(cell)
		}
		if _, err := fmt.Fprintln(columns, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	// A column goes on only where every row has it, so empty cells stay until now.
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// shortenLast cuts the last column of a table, so that its lines fit width.
// A few words of it are left in any case.
func shortenLast(header []string, rows [][]string, width int) {
	last := len(header) - 1
	for column := range last {
		widest := len([]rune(header[column]))
		for _, row := range rows {
			widest = max(widest, len([]rune(row[column])))
		}
		width -= widest + columnGap
	}
	for _, row := range rows {
		row[last] = shorten(row[last], max(width, 20))
	}
}

// tell prints a line of talk.
func tell(cmd *cobra.Command, format string, args ...any) {
	cmd.PrintErrln(phrase(fmt.Sprintf(format, args...)))
}

// shorten cuts text at a word, so that a table fits a screen.
func shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	cut := string(runes[:width-1])
	if space := strings.LastIndexByte(cut, ' '); space > len(cut)/2 {
		cut = cut[:space]
	}
	return strings.TrimRight(cut, " ,-") + "…"
}

// shortDigest is enough of a digest to tell it from others.
func shortDigest(digest string) string {
	algorithm, hex, found := strings.Cut(digest, ":")
	if !found {
		algorithm, hex = "", digest
	}
	if len(hex) > 12 {
		hex = hex[:12]
	}
	if found {
		return algorithm + ":" + hex
	}
	return hex
}

// shortImage shortens the digest in the name of an image.
func shortImage(image string) string {
	name, digest, found := strings.Cut(image, "@")
	if found {
		return name + "@" + shortDigest(digest)
	}
	if strings.HasPrefix(image, "sha256:") {
		return shortDigest(image)
	}
	return image
}

// ago says how long something is past.
func ago(t time.Time) string { return units.HumanDuration(time.Since(t)) + " ago" }

// pullProgress shows how a pull goes: a bar on a terminal, else lines. Done
// takes the bar away.
func pullProgress(cmd *cobra.Command, server string) (report func(plan.Progress), done func() error) {
	if !isTerminal(cmd.ErrOrStderr()) {
		return pullLines(cmd, server), func() error { return nil }
	}
	var bar *progressbar.ProgressBar
	report = func(p plan.Progress) {
		if p.Total <= 0 {
			return
		}
		if bar == nil {
			bar = progressbar.NewOptions64(p.Total,
				progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("pulling "+server),
				progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		bar.ChangeMax64(p.Total)
		// A full bar ends, and more layers may follow.
		_ = bar.Set64(min(p.Done, p.Total-1)) //nolint:errcheck // it is decoration
	}
	return report, func() error {
		if bar == nil {
			return nil
		}
		return bar.Clear()
	}
}

// pullLines says once that a pull has begun, and then each tenth of it.
func pullLines(cmd *cobra.Command, server string) func(plan.Progress) {
	said := int64(-1)
	return func(p plan.Progress) {
		tenth := int64(0)
		if p.Total > 0 {
			tenth = p.Done * 10 / p.Total
		}
		if tenth <= said {
			return
		}
		said = tenth
		if p.Total == 0 {
			tell(cmd, "pulling %s", server)
			return
		}
		tell(cmd, "pulling %s: %d%% of %s", server, tenth*10, units.HumanSize(float64(p.Total)))
	}
}
