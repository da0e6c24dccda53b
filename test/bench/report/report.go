// Package report gathers what was measured, and prints it as a table for
// people and as flat JSON for programs.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/dockgate/dockgate/test/bench/sample"
)

// A Bar is what a median must keep to. The zero value is none.
type Bar struct {
	sign  string
	limit float64
}

// AtMost is the bar of what must not be more.
func AtMost(limit float64) Bar { return Bar{"≤", limit} }

// AtLeast is the bar of what must not be less.
func AtLeast(limit float64) Bar { return Bar{"≥", limit} }

func (b Bar) String() string {
	if b.sign == "" {
		return ""
	}
	return b.sign + " " + number(b.limit)
}

// verdict is "ok", "short", or nothing without a bar.
func (b Bar) verdict(median float64) string {
	switch {
	case b.sign == "":
		return ""
	case b.sign == "≤" && median <= b.limit, b.sign == "≥" && median >= b.limit:
		return "ok"
	default:
		return "short"
	}
}

// A Row is one measured figure.
type Row struct {
	// Key names the figure, and ends with its unit.
	Key string
	// Low and High are the 95 % interval of the Median of Count values.
	Median, Low, High float64
	Count             int
	Bar               Bar
}

// A Report is the figures of one run, in the order in which they were added.
type Report struct {
	// Bars are by key.
	Bars map[string]Bar
	// About are facts of the run, such as the engine's version.
	About map[string]any

	rows []Row
}

// Add sums up the values of a figure. A figure without values, or with one
// that is no number, was not measured.
func (r *Report) Add(key string, values []float64) error {
	if len(values) == 0 || slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return fmt.Errorf("%s: no number was measured: %v", key, values)
	}
	low, high := sample.Interval(values)
	r.rows = append(r.rows, Row{
		Key: key, Median: sample.Median(values), Low: low, High: high, Count: len(values), Bar: r.Bars[key],
	})
	return nil
}

// Rows returns the figures.
func (r *Report) Rows() []Row { return slices.Clone(r.rows) }

// Table writes the figures for people.
func (r *Report) Table(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var failed []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(table, format, args...)
		failed = append(failed, err)
	}
	line("MEASURE\tMEDIAN\t95 %% INTERVAL\tN\tBAR\t\n")
	for _, row := range r.rows {
		line("%s\t%s\t%s to %s\t%d\t%s\t%s\n",
			row.Key, number(row.Median), number(row.Low), number(row.High), row.Count, row.Bar, row.Bar.verdict(row.Median))
	}
	return errors.Join(append(failed, table.Flush())...)
}

// number writes three digits or more, as many as a person can use.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// JSON writes the figures and the facts as one flat object. The interval of a
// figure stands beside it, as "KEY.low" and "KEY.high".
func (r *Report) JSON(w io.Writer) error {
	flat := make(map[string]any, 3*len(r.rows)+len(r.About))
	for key, fact := range r.About {
		flat[key] = fact
	}
	for _, row := range r.rows {
		flat[row.Key] = row.Median
		flat[row.Key+".low"] = row.Low
		flat[row.Key+".high"] = row.High
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(flat)
}
