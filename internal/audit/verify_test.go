package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/audit"
)

func edit(t *testing.T, path string, change func([]string) []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := change(strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n"))
	joined := strings.Join(lines, "")
	if !strings.HasSuffix(joined, "\n") {
		joined += "\n"
	}
	if err := os.WriteFile(path, []byte(joined), 0o600); err != nil {
		t.Fatal(err)
	}
}

// record writes two files: opening record and calls a b c d; then again with
// e f.
func record(t *testing.T, dir string) (first, second string) {
	t.Helper()
	for _, tools := range []string{"abcd", "ef"} {
		w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
		for _, tool := range tools {
			appendAll(t, w, call(string(tool)))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "g1-000001.jsonl"), filepath.Join(dir, "g1-000002.jsonl")
}

func TestVerifyTampering(t *testing.T) {
	lines := func(change func([]string) []string) func(*testing.T, string, string) {
		return func(t *testing.T, first, _ string) { edit(t, first, change) }
	}
	tests := []struct {
		name   string
		tamper func(t *testing.T, first, second string)
		want   []string
	}{
		{"nothing", func(*testing.T, string, string) {}, nil},
		{"edited", lines(func(l []string) []string {
			l[2] = strings.Replace(l[2], `"ok"`, `"no"`, 1)
			return l
		}), []string{"g1-000001.jsonl:3: edited: record 3: its content does not match its hash"}},
		{"edited number", lines(func(l []string) []string {
			l[2] = strings.Replace(l[2], `"seq":3`, `"seq":18446744073709551615`, 1)
			return l
		}), []string{"g1-000001.jsonl:3: edited: record 18446744073709551615: its content does not match its hash"}},
		{"whitespace", lines(func(l []string) []string {
			l[2] = strings.Replace(l[2], `"seq":3`, `"seq": 3`, 1)
			return l
		}), []string{"g1-000001.jsonl:3: edited: record 3: its content does not match its hash"}},
		{"garbage", lines(func(l []string) []string {
			l[2] = "garbage\n"
			return l
		}), []string{"g1-000001.jsonl:3: edited: no record: invalid character 'g' looking for beginning of value"}},
		{"without a hash", lines(func(l []string) []string {
			l[2] = "{\"seq\":3}\n"
			return l
		}), []string{"g1-000001.jsonl:3: edited: no record: it does not end in its hash"}},
		{"deleted", lines(func(l []string) []string { return slices.Delete(l, 2, 4) }), []string{
			"g1-000001.jsonl:3: deleted: 2 of the records 3 to 4 are missing",
		}},
		{"first deleted", lines(func(l []string) []string { return l[1:] }), []string{
			"g1-000001.jsonl:1: deleted: the file does not begin with its opening record",
			"g1-000001.jsonl:1: deleted: 1 of the records 1 to 1 are missing",
		}},
		{"last of a file deleted", lines(func(l []string) []string { return l[:4] }), []string{
			"g1-000002.jsonl:1: deleted: 1 of the records 5 to 5 are missing",
		}},
		{"exchanged", lines(func(l []string) []string {
			l[2], l[3] = l[3], l[2]
			return l
		}), []string{"g1-000001.jsonl:3: moved: record 4 stands before record 3"}},
		{"twice", lines(func(l []string) []string { return slices.Insert(l, 3, l[2]) }), []string{
			"g1-000001.jsonl:4: inserted: record 3 is there twice",
		}},
		{"very long line", lines(func(l []string) []string {
			l[2] = strings.Repeat("x", 300<<10) + "\n"
			return l
		}), []string{"g1-000001.jsonl:3: edited: the line is over 65536 bytes"}},
		{"file deleted", func(t *testing.T, first, _ string) { remove(t, first) }, []string{
			"g1-000002.jsonl: deleted: the file before it is missing",
			"g1-000002.jsonl:1: deleted: 5 of the records 1 to 5 are missing",
		}},
		{"last file deleted", func(t *testing.T, _, second string) { remove(t, second) }, []string{
			"g1.head: deleted: records 6 to 8 are missing from the end",
		}},
		{"all files deleted", func(t *testing.T, first, second string) {
			remove(t, first)
			remove(t, second)
		}, []string{"g1.head: deleted: records 1 to 8 are missing from the end"}},
		{"end deleted", func(t *testing.T, _, second string) {
			edit(t, second, func(l []string) []string { return l[:1] })
		}, []string{"g1.head: deleted: records 7 to 8 are missing from the end"}},
		{"end cut within a record", func(t *testing.T, _, second string) { cut(t, second, 10) }, []string{
			"g1-000002.jsonl:3: incomplete: the last record was not written whole",
			"g1.head: deleted: records 8 to 8 are missing from the end",
		}},
		{"head deleted", func(t *testing.T, first, _ string) {
			remove(t, filepath.Join(filepath.Dir(first), "g1.head"))
		}, []string{"g1.head: deleted: it is missing, so that a record that was cut off at its end looks whole"}},
		{"head edited", func(t *testing.T, first, _ string) {
			if err := os.WriteFile(filepath.Join(filepath.Dir(first), "g1.head"), []byte("8\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"g1.head: edited: g1.head is damaged"}},
		{"replaced with its hash", func(t *testing.T, first, _ string) {
			edit(t, first, func(l []string) []string {
				l[2] = rehash(t, strings.Replace(l[2], `"ok"`, `"no"`, 1))
				return l
			})
		}, []string{"g1-000001.jsonl:4: replaced: record 4 was chained to another record 3"}},
		{"last replaced with its hash", func(t *testing.T, _, second string) {
			edit(t, second, func(l []string) []string {
				l[2] = rehash(t, strings.Replace(l[2], `"ok"`, `"no"`, 1))
				return l
			})
		}, []string{"g1.head: replaced: record 8 is not the one that it remembers"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			first, second := record(t, dir)
			tt.tamper(t, first, second)
			report := verify(t, dir)
			if diff := cmp.Diff(tt.want, problems(report)); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
			if got, want := report.Intact(), tt.want == nil; got != want {
				t.Errorf("Intact() = %v, want %v", got, want)
			}
		})
	}
}

// The end was cut off and the gateway came back: the new record keeps saying
// so, although the head has moved on.
func TestVerifyCutBeforeOpen(t *testing.T) {
	dir := t.TempDir()
	_, second := record(t, dir)
	edit(t, second, func(l []string) []string { return l[:2] })
	appendAll(t, open(t, audit.Options{Dir: dir, Gateway: "g1"}), call("g"), call("h"))
	want := []string{"g1-000003.jsonl:1: deleted: records 8 to 8 were missing when the file was opened"}
	if diff := cmp.Diff(want, problems(verify(t, dir))); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

func TestVerifyOtherGateway(t *testing.T) {
	dir := t.TempDir()
	first, _ := record(t, dir)
	appendAll(t, open(t, audit.Options{Dir: dir, Gateway: "g2"}), call("x"))
	text, err := os.ReadFile(filepath.Join(dir, "g2-000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	edit(t, first, func(l []string) []string {
		l[1] = strings.SplitAfter(string(text), "\n")[1]
		return l
	})
	want := []string{`g1-000001.jsonl:2: inserted: it is of gateway "g2"`}
	if diff := cmp.Diff(want, problems(verify(t, dir))); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

func TestVerifyNothing(t *testing.T) {
	report := verify(t, filepath.Join(t.TempDir(), "none"))
	if len(report.Chains) != 0 || !report.Intact() {
		t.Errorf("Verify of no folder = %+v, want nothing", report)
	}
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	record(t, dir)
	appendAll(t, open(t, audit.Options{Dir: dir, Gateway: "g0"}), call("x"))
	got, err := audit.Tail(t.Context(), dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, r := range got {
		tools = append(tools, r.Gateway+" "+r.Tool)
	}
	if diff := cmp.Diff([]string{"g1 f", "g0 ", "g0 x"}, tools); diff != "" {
		t.Errorf("Tail differs (-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.Tail(ended, dir, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("Tail(ended) = %v, want %v", err, context.Canceled)
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		record(t, dir)
		w := open(t, audit.Options{Dir: dir, Gateway: "g2"})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 10)
		go func() {
			defer close(got)
			for r, err := range audit.Follow(ctx, dir, 1) {
				got <- fmt.Sprint(r.Gateway, r.Tool, err)
			}
		}()
		synctest.Wait()
		appendAll(t, w, call("x"), call("y"))
		<-time.After(time.Second)
		cancel()
		var all []string
		for line := range got {
			all = append(all, line)
		}
		if diff := cmp.Diff([]string{"g2<nil>", "g2x<nil>", "g2y<nil>"}, all); diff != "" {
			t.Errorf("Follow differs (-want +got):\n%s", diff)
		}
	})
}

func TestTailDamaged(t *testing.T) {
	dir := t.TempDir()
	first, _ := record(t, dir)
	edit(t, first, func(l []string) []string {
		l[2] = "x\n"
		return l
	})
	if _, err := audit.Tail(t.Context(), dir, 3); err == nil || !strings.Contains(err.Error(), "g1-000001.jsonl:3: ") {
		t.Errorf("Tail = %v, want an error that names g1-000001.jsonl:3", err)
	}
	if err := audit.Export(&bytes.Buffer{}, dir, time.Time{}, audit.JSONL); err == nil || !strings.Contains(err.Error(), "g1-000001.jsonl:3: ") {
		t.Errorf("Export = %v, want an error that names g1-000001.jsonl:3", err)
	}
}

func TestExport(t *testing.T) {
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	old, recent := call("old"), call("=HYPERLINK(1)")
	old.Time = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	recent.Detail = map[string]string{"b": "2", "a": "1"}
	appendAll(t, w, old, recent)
	since := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)

	var jsonl bytes.Buffer
	if err := audit.Export(&jsonl, dir, since, audit.JSONL); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(jsonl.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("Export = %q, want the opening record and one call", lines)
	}
	for _, line := range lines {
		if _, err := audit.ParseRecord([]byte(line)); err != nil {
			t.Errorf("ParseRecord(%s): %v", line, err)
		}
	}

	var text bytes.Buffer
	if err := audit.Export(&text, dir, since, audit.CSV); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || len(rows[0]) != 15 {
		t.Fatalf("Export = %q, want a header and two rows of 15", rows)
	}
	want := []string{
		"g1", "3", "s1", "local", "call", "git", "'=HYPERLINK(1)", audit.Digest([]byte(`{"path":"."}`)), "ok", "", "1200", "99", `{"a":"1","b":"2"}`,
	}
	if diff := cmp.Diff(want, rows[2][1:14]); diff != "" {
		t.Errorf("row differs (-want +got):\n%s", diff)
	}
	if err := audit.Export(&text, dir, since, "xml"); err == nil {
		t.Error(`Export as "xml" = nil, want an error`)
	}
}

func FuzzParseRecord(f *testing.F) {
	dir := f.TempDir()
	w, err := audit.Open(audit.Options{Dir: dir, Gateway: "g1"})
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(w.Append(call("a")), w.Close()); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "g1-000001.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		f.Add(line)
	}
	f.Add([]byte(`{"seq":1,"hash":"` + strings.Repeat("0", 64) + `"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		folder := t.TempDir()
		path := filepath.Join(folder, "g1-000001.jsonl")
		if err := os.WriteFile(path, append(bytes.Clone(line), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Verify(folder)
		if err != nil {
			t.Fatalf("Verify: %v", err)
		}
		if r, err := audit.ParseRecord(line); err == nil && len(r.Hash) != 64 {
			t.Errorf("ParseRecord(%q) = hash %q, want 64 digits", line, r.Hash)
		}
		if report.Intact() {
			t.Errorf("Verify of %q without a head = intact", line)
		}
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, path string, bytes int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-bytes); err != nil {
		t.Fatal(err)
	}
}

// rehash gives an edited line the hash that belongs to it, as a careful forger
// would.
func rehash(t *testing.T, line string) string {
	t.Helper()
	body, _, ok := strings.Cut(line, `,"hash":"`)
	if !ok {
		t.Fatalf("no hash in %s", line)
	}
	_, prev, _ := strings.Cut(body, `"prev":"`)
	prev = strings.TrimSuffix(prev, `"`)
	return fmt.Sprintf("%s,\"hash\":\"%x\"}\n", body, sha256.Sum256([]byte(prev+body+"}")))
}
