// Package ranking measures the search: how well it ranks for queries whose
// answers are known, how fast it is, and how much memory an index takes.
//
// A corpus is one tool a line, {"id", "server", "name", "description",
// "schema"}. Queries are {"id", "query", "kind", "groups"}: a group is one thing
// that is needed, by the ids that are as good for it, and a kind, if there is
// one, has figures of its own.
package ranking

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/dockgate/dockgate/internal/search"
)

// A Figures is what was measured. Shares are of 1.
type Figures struct {
	Queries int     `json:"queries"`
	R1      float64 `json:"R@1"`
	R3      float64 `json:"R@3"`
	R5      float64 `json:"R@5"`
	R10     float64 `json:"R@10"`
	MRR     float64 `json:"MRR"`
	NDCG10  float64 `json:"nDCG@10"`
}

// A Report is the result of one run.
type Report struct {
	Figures
	// Entries is the number of tools, or servers.
	Entries int     `json:"entries"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	BuildMS float64 `json:"build_ms"`
	// Bytes is what the heap grew by with the index.
	Bytes int64 `json:"bytes"`
	// Kinds has the figures by the kind of query, where there are kinds.
	Kinds map[string]Figures `json:"kinds,omitempty"`
}

// Run is the command line "search" of the benchmark.
func Run(args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("bench search", flag.ContinueOnError)
	set.SetOutput(stderr)
	corpus := set.String("corpus", "", "`file` of tools, one JSON object a line, or a catalog (YAML)")
	queries := set.String("queries", "", "`file` of queries, one JSON object a line")
	kind := set.String("kind", "tools", "what is found: `tools or servers`")
	asJSON := set.Bool("json", false, "print JSON")
	scale := set.Int("scale", 0, "instead of a corpus, measure speed with a made-up one of so many `tools`")
	if err := set.Parse(args); err != nil {
		return err
	}
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("unknown argument %q", set.Arg(0))
	case *kind != "tools" && *kind != "servers":
		return fmt.Errorf("--kind is %q, want tools or servers", *kind)
	case *scale < 0 || *scale > 0 && (*corpus != "" || *queries != ""):
		return errors.New("--scale is a number of tools, and without --corpus and --queries")
	case *scale > 0:
		report, err := MeasureScale(*scale)
		if err != nil {
			return err
		}
		if *asJSON {
			return encode(stdout, report)
		}
		return report.table(stdout)
	case *corpus == "" || *queries == "":
		return errors.New("--corpus and --queries, or --scale, are needed")
	}
	report, err := Measure(*corpus, *queries, *kind)
	if err != nil {
		return err
	}
	if *asJSON {
		return encode(stdout, report)
	}
	return report.table(stdout)
}

// Measure ranks a corpus for queries, both files. The kind is "tools" or
// "servers".
func Measure(corpus, queries, kind string) (Report, error) {
	servers, ids, err := readCorpus(corpus)
	if err != nil {
		return Report{}, err
	}
	all, err := readLines[query](queries)
	if err != nil {
		return Report{}, err
	}
	if len(all) == 0 {
		return Report{}, fmt.Errorf("%s: no queries", queries)
	}
	build := search.NewTools
	id := func(h search.Hit) []string { return ids[[2]string{h.Server, h.Tool}] }
	if kind == "servers" {
		build = search.NewServers
		id = func(h search.Hit) []string { return []string{h.Server} }
	}
	index, report := measureBuild(func() *search.Index { return build(servers) })
	tallies := map[string]*tally{"": {}}
	for _, q := range all {
		var found []string
		for _, hit := range index.Search(search.Query{Text: q.Query, Limit: depth}) {
			for _, one := range id(hit) {
				if !slices.Contains(found, one) {
					found = append(found, one)
				}
			}
		}
		tallies[""].add(found, q.Groups)
		if q.Kind != "" {
			if tallies[q.Kind] == nil {
				tallies[q.Kind] = &tally{}
			}
			tallies[q.Kind].add(found, q.Groups)
		}
	}
	report.Figures = tallies[""].figures()
	for kind, t := range tallies {
		if kind != "" {
			if report.Kinds == nil {
				report.Kinds = make(map[string]Figures)
			}
			report.Kinds[kind] = t.figures()
		}
	}
	report.P50, report.P99 = latencies(len(all), func(i int) {
		index.Search(search.Query{Text: all[i%len(all)].Query, Limit: 10})
	})
	runtime.KeepAlive(index)
	return report, nil
}

// measureBuild builds an index three times and reports the median, and what
// the last one keeps.
func measureBuild(build func() *search.Index) (*search.Index, Report) {
	var took [3]float64
	for i := range took[1:] {
		began := time.Now()
		build()
		took[i] = milliseconds(time.Since(began))
	}
	before := heap()
	began := time.Now()
	index := build()
	took[2] = milliseconds(time.Since(began))
	report := Report{Entries: index.Len(), Bytes: heap() - before}
	slices.Sort(took[:])
	report.BuildMS = took[1]
	return index, report
}

// heap returns the bytes that are in use.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has freed is swept by the second
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // a heap fits
}

// leastSamples makes a 99th percentile that is more than the worst.
const leastSamples = 1000

// latencies returns the median and the 99th percentile of do, in microseconds.
// Every i below n is done at least once.
func latencies(n int, do func(i int)) (p50, p99 float64) {
	samples := make([]float64, max(n, leastSamples))
	for i := range samples {
		began := time.Now()
		do(i)
		samples[i] = microseconds(time.Since(began))
	}
	return percentile(samples, 0.5), percentile(samples, 0.99)
}

func percentile(samples []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func (r Report) table(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d entries, %d queries\n", r.Entries, r.Queries)
	row := func(name string, f Figures) {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-12s n %-5d R@1 %.3f  R@3 %.3f  R@5 %.3f  R@10 %.3f  MRR %.3f  nDCG@10 %.3f\n",
				name, f.Queries, f.R1, f.R3, f.R5, f.R10, f.MRR, f.NDCG10)
		}
	}
	row("all", r.Figures)
	for _, kind := range slices.Sorted(keys(r.Kinds)) {
		row(kind, r.Kinds[kind])
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "query p50 %.0f µs, p99 %.0f µs; build %.1f ms; %.1f MB\n", r.P50, r.P99, r.BuildMS, float64(r.Bytes)/1e6)
	}
	return err
}

func encode(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
