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
	flags := flag.NewFlagSet("bench search", flag.ContinueOnError)
	flags.SetOutput(stderr)
	corpus := flags.String("corpus", "", "`file` of tools, one JSON object a line, or a catalog (YAML)")
	queries := flags.String("queries", "", "`file` of queries, one JSON object a line")
	kind := flags.String("kind", "tools", "what is found: `tools or servers`")
	asJSON := flags.Bool("json", false, "print JSON")
	scale := flags.Int("scale", 0, "instead of a corpus, measure speed with a made-up one of so many `tools`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	case *kind != "tools" && *kind != "servers":
		return fmt.Errorf("--kind is %q, want tools or servers", *kind)
	case *scale < 0 || *scale > 0 && (*corpus != "" || *queries != ""):
		return errors.New("--scale is a number of tools, and without --corpus and --queries")
	case *scale > 0:
		report, err := MeasureScale(*scale, leastSamples)
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
	set, err := Read(*corpus, *queries, *kind)
	if err != nil {
		return err
	}
	report := set.measure()
	if *asJSON {
		return encode(stdout, report)
	}
	return report.table(stdout)
}

// A Set is a corpus with queries whose answers are known.
type Set struct {
	servers []search.Server
	queries []query
	build   func([]search.Server) *search.Index
	// ids are those of a hit.
	ids func(search.Hit) []string
}

// Read reads a corpus and queries, both files. The kind is "tools" or
// "servers".
func Read(corpus, queries, kind string) (*Set, error) {
	servers, ids, err := readCorpus(corpus)
	if err != nil {
		return nil, err
	}
	s := &Set{servers: servers, build: search.NewTools, ids: func(h search.Hit) []string { return ids[[2]string{h.Server, h.Tool}] }}
	if kind == "servers" {
		s.build = search.NewServers
		s.ids = func(h search.Hit) []string { return []string{h.Server} }
	}
	if s.queries, err = readLines[query](queries); err != nil {
		return nil, err
	}
	if len(s.queries) == 0 {
		return nil, fmt.Errorf("%s: no queries", queries)
	}
	return s, nil
}

// Rank returns how well the search ranks: of all queries, and of each kind of
// them where there are kinds.
func (s *Set) Rank() (Figures, map[string]Figures) { return s.rank(s.build(s.servers)) }

func (s *Set) rank(index *search.Index) (all Figures, kinds map[string]Figures) {
	tallies := map[string]*tally{"": {}}
	for _, q := range s.queries {
		var found []string
		for _, hit := range index.Search(search.Query{Text: q.Query, Limit: depth}) {
			for _, one := range s.ids(hit) {
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
	all = tallies[""].figures()
	delete(tallies, "")
	for kind, t := range tallies {
		if kinds == nil {
			kinds = make(map[string]Figures)
		}
		kinds[kind] = t.figures()
	}
	return all, kinds
}

// measure ranks, and measures the index.
func (s *Set) measure() Report {
	index, report := measureBuild(func() *search.Index { return s.build(s.servers) })
	report.Figures, report.Kinds = s.rank(index)
	report.P50, report.P99 = latencies(max(len(s.queries), leastSamples), func(i int) {
		index.Search(search.Query{Text: s.queries[i%len(s.queries)].Query, Limit: 10})
	})
	runtime.KeepAlive(index)
	return report
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
func latencies(n int, do func(i int)) (p50, p99 float64) {
	samples := make([]float64, n)
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
