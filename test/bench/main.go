// Command bench measures the gateway: how soon it answers, what it adds to a
// call, what a large result costs, how it stops and how much memory it takes.
//
// Everything is measured beside what it is compared with, in turns and in one
// run: the raw exchange over the attached stream of the same kind of
// container, "docker run -i", the bare calls of the engine, and any other
// gateway (--peer). It prints medians with their 95 % intervals, and beside
// the bar of a figure whether it is met; a figure that falls short is no
// failure of the run.
//
//	go run ./test/bench [--only warm,cold] [--pairs N] [--json FILE] [--peer NAME='COMMAND']…
//	go run ./test/bench search --corpus FILE --queries FILE [--kind tools|servers] [--json]
//	go run ./test/bench search --scale 10000
//
// The first needs an engine, the image of the demo (make images) and the gateway
// (make build). The others measure the
// search (package ranking). It exits with 1 if something could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dockgate/dockgate/test/bench/ranking"
	"github.com/dockgate/dockgate/test/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	err := start(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// start measures, or is what is measured.
func start(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == echoMode {
		return serveEcho(ctx, os.Stdout)
	}
	return run(ctx, args, os.Stdout, os.Stderr)
}

// A part is what --only chooses.
type part struct {
	name    string
	measure func(context.Context, *bench) error
}

func parts() []part {
	return []part{
		{"start", measureStart},
		{"catalog", measureCatalog},
		{"cold", measureCold},
		{"warm", measureWarm},
		{"anticipated", measureAnticipated},
		{"meta", measureMeta},
		{"result", measureResult},
		{"http", measureHTTP},
		{"reload", measureReload},
		{"stop", measureStop},
		{"rss", measureMemory},
	}
}

// bars are what the figures must keep to.
func bars() map[string]report.Bar {
	return map[string]report.Bar{
		"start.list_30_ms":     report.AtMost(80),
		"start.list_10000_ms":  report.AtMost(200),
		"catalog.load_328_ms":  report.AtMost(100),
		"cold.added_ms":        report.AtMost(20),
		"warm.added_us":        report.AtMost(200),
		"warm.ratio_raw_16":    report.AtLeast(0.4),
		"http.added_us":        report.AtMost(150),
		"http.modern_added_us": report.AtMost(150),
		"http.ratio_sdk_16":    report.AtLeast(0.6),
		"http.max_stall_ms":    report.AtMost(100),
		"http.idle_session_kb": report.AtMost(20),
		"http.list_1000_ms":    report.AtMost(5),
		"meta.list_ms":         report.AtMost(5),
		"meta.search_ms":       report.AtMost(10),
		"meta.details_ms":      report.AtMost(5),
		"meta.execute_us":      report.AtMost(5000),
		"result_10mb.ratio":    report.AtMost(1.5),
		"reload.ms":            report.AtMost(500),
		"cache.hit_rate":       report.AtLeast(0.8),
		"rss.run_3_mb":         report.AtMost(50),
		"rss.list_10000_mb":    report.AtMost(90),
	}
}

// A bench is what every part measures with.
type bench struct {
	*world
	pairs  int
	peers  []peer
	report *report.Report
}

// add reports a figure.
func (b *bench) add(key string, values []float64) error { return b.report.Add(key, values) }

// rounds is how often something is done that takes a second or more.
func (b *bench) rounds(most int) int { return min(b.pairs, most) }

// partTime is more than any part takes; what hangs ends there.
const partTime = 10 * time.Minute

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && args[0] == "search" {
		return ranking.Run(args[1:], stdout, stderr)
	}
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	// The client's garbage must not be collected while something is measured;
	// see quiet.
	debug.SetMemoryLimit(1 << 30)
	w, err := newWorld(ctx, f.gateway)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	b := &bench{world: w, pairs: f.pairs, peers: f.peers, report: &report.Report{Bars: bars(), About: map[string]any{
		"run.pairs": f.pairs, "run.cpus": runtime.NumCPU(), "run.platform": runtime.GOOS + "/" + runtime.GOARCH,
		"run.engine": w.engineVersion, "run.at": time.Now().UTC().Format(time.RFC3339),
	}}}
	for _, p := range parts() {
		if len(f.only) > 0 && !slices.Contains(f.only, p.name) {
			continue
		}
		if _, err := fmt.Fprintf(stderr, "bench: measuring %s\n", p.name); err != nil {
			return err
		}
		if err := b.run(ctx, p); err != nil {
			return err
		}
	}
	if f.json != "" {
		if err := b.writeJSON(f.json); err != nil {
			return err
		}
	}
	return b.report.Table(stdout)
}

func (b *bench) run(ctx context.Context, p part) error {
	ctx, cancel := context.WithTimeoutCause(ctx, partTime, fmt.Errorf("no end after %s", partTime))
	defer cancel()
	err := p.measure(ctx, b)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // what follows from it says less
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

func (b *bench) writeJSON(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(b.report.JSON(file), file.Close())
}

// flags are the command line.
type flags struct {
	only    []string
	pairs   int
	json    string
	gateway string
	peers   []peer
}

func parse(args []string, stderr io.Writer) (flags, error) {
	f := flags{}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.IntVar(&f.pairs, "pairs", 20, "how many `pairs` are measured of each comparison")
	set.StringVar(&f.json, "json", "", "`file` for the report")
	set.StringVar(&f.gateway, "gateway", "bin/dockgate", "the gateway's `program`")
	set.Func("only", "`parts` to measure: "+names(parts()), func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			if !slices.ContainsFunc(parts(), func(p part) bool { return p.name == name }) {
				return fmt.Errorf("unknown part %q; known: %s", name, names(parts()))
			}
			f.only = append(f.only, name)
		}
		return nil
	})
	set.Func("peer", "`NAME=COMMAND` of another gateway to measure beside ours; repeatable", func(text string) error {
		p, err := parsePeer(text)
		f.peers = append(f.peers, p)
		return err
	})
	if err := set.Parse(args); err != nil {
		return flags{}, err
	}
	switch {
	case set.NArg() > 0:
		return flags{}, fmt.Errorf("unknown argument %q", set.Arg(0))
	case f.pairs < 1:
		return flags{}, fmt.Errorf("--pairs is %d, want 1 or more", f.pairs)
	}
	return f, nil
}

func names(all []part) string {
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = p.name
	}
	return strings.Join(list, ", ")
}
