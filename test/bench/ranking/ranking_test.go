package ranking_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/test/bench/ranking"
)

// A floor is what a set must reach; figures are deterministic, so it is a
// little less than what was reached.
type floor struct {
	corpus, queries, kind string
	r5, mrr               float64
	// kinds are floors of R@5 by the kind of query.
	kinds map[string]float64
}

func check(t *testing.T, folder string, f floor) {
	t.Helper()
	set, err := ranking.Read(filepath.Join(folder, f.corpus), filepath.Join(folder, f.queries), f.kind)
	if err != nil {
		t.Fatal(err)
	}
	got, kinds := set.Rank()
	t.Logf("%s, %s: %+v, kinds %+v", f.corpus, f.kind, got, kinds)
	if got.R5 < f.r5 || got.MRR < f.mrr {
		t.Errorf("Rank(%s) = R@5 %.3f, MRR %.3f, want at least %.3f, %.3f", f.queries, got.R5, got.MRR, f.r5, f.mrr)
	}
	for kind, want := range f.kinds {
		if kinds[kind].R5 < want {
			t.Errorf("Rank(%s) of kind %s = R@5 %.3f, want at least %.3f", f.queries, kind, kinds[kind].R5, want)
		}
	}
}

// Our own data, everywhere.
func TestQuality(t *testing.T) {
	check(t, "testdata", floor{
		"tools.jsonl", "tool_queries.jsonl", "tools", 0.95, 0.90,
		map[string]float64{"name": 1, "keyword": 1, "typo": 1, "other words": 0.90, "several": 0.99},
	})
	check(t, "testdata", floor{
		"catalog.yaml", "server_queries.jsonl", "servers", 0.88, 0.85,
		map[string]float64{"name": 1, "keyword": 1, "hard": 0.80},
	})
}

// Public sets, where they are beside the repository.
func TestPublicSets(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "..", "shared", "datasets")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no public data sets beside the repository")
	}
	check(t, filepath.Join(folder, "metatool-dev"), floor{"corpus.jsonl", "queries.jsonl", "tools", 0.715, 0.58, nil})
	check(t, filepath.Join(folder, "seal-dev"), floor{"corpus.jsonl", "queries.jsonl", "tools", 0.92, 0.95, nil})
	check(t, filepath.Join(folder, "docker-catalog"), floor{
		"catalog.yaml", "queries.jsonl", "servers", 0.94, 0.75, map[string]float64{"name": 1, "keyword": 0.9, "hard": 0.8},
	})
}

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, talk bytes.Buffer
	err := ranking.Run(args, &out, &talk)
	return out.String(), err
}

func TestRun(t *testing.T) {
	own := []string{"--corpus", "testdata/tools.jsonl", "--queries", "testdata/tool_queries.jsonl"}
	text, err := run(t, own...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"44 entries", "R@5", "nDCG@10", "other words", "build"} {
		if !strings.Contains(text, want) {
			t.Errorf("Run(%q) = %s, want %q in it", own, text, want)
		}
	}
	text, err = run(t, append(own, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"R@1", "R@3", "R@5", "R@10", "MRR", "nDCG@10", "p50_us", "p99_us", "build_ms", "bytes"} {
		if value, ok := report[key].(float64); !ok || value <= 0 {
			t.Errorf("Run(--json)[%s] = %v, want a number over 0", key, report[key])
		}
	}
	text, err = run(t, "--scale", "100", "--json")
	if err != nil || !strings.Contains(text, `"update_p99_us"`) {
		t.Errorf("Run(--scale 100) = %s, %v, want figures", text, err)
	}
	// A corpus of tools is one of servers, too.
	if text, err = run(t, "--corpus", "testdata/tools.jsonl", "--queries", "testdata/server_queries.jsonl", "--kind", "servers"); err != nil || !strings.Contains(text, "12 entries") {
		t.Errorf("Run(--kind servers) = %s, %v, want 12 entries", text, err)
	}
}

// An index of 10,000 tools must take less than 40 MB; the words of a language
// and those of products become fewer with every tool.
func TestMemory(t *testing.T) {
	got, err := ranking.MeasureScale(2_500, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got.Tools != 2_500 || got.Servers != 250 || got.Bytes > 12_000_000 {
		t.Errorf("MeasureScale(2500, 10) = %+v, want 2,500 tools of 250 servers in 12 MB", got)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"--corpus", "testdata/tools.jsonl"},
		{"--kind", "x", "--corpus", "a", "--queries", "b"},
		{"--corpus", "no such file", "--queries", "testdata/tool_queries.jsonl"},
		{"--corpus", "testdata/tools.jsonl", "--queries", "testdata/catalog.yaml"},
		{"--scale", "5", "--corpus", "a"},
		{"--scale", "-1"},
		{"more"},
	} {
		if text, err := run(t, args...); err == nil {
			t.Errorf("Run(%q) = %s, want an error", args, text)
		}
	}
}
