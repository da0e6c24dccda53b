package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/audit"
)

func open(t *testing.T, o audit.Options) *audit.Writer {
	t.Helper()
	w, err := audit.Open(o)
	if err != nil {
		t.Fatalf("Open(%+v): %v", o, err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return w
}

func appendAll(t *testing.T, w *audit.Writer, records ...audit.Record) {
	t.Helper()
	for _, r := range records {
		if err := w.Append(r); err != nil {
			t.Fatalf("Append(%+v): %v", r, err)
		}
	}
}

func verify(t *testing.T, dir string) audit.Report {
	t.Helper()
	report, err := audit.Verify(dir)
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	return report
}

func problems(report audit.Report) []string {
	var all []string
	for _, c := range report.Chains {
		for _, p := range c.Problems {
			all = append(all, p.String())
		}
	}
	return all
}

func call(tool string) audit.Record {
	return audit.Record{
		Session: "s1", Principal: "local", Kind: audit.KindCall, Server: "git", Tool: tool,
		Arguments: audit.Digest([]byte(`{"path":"."}`)), Outcome: "ok", DurationUS: 1200, Bytes: 99,
	}
}

func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	want := call("status")
	want.Time = time.Date(2026, 10, 1, 12, 0, 0, 123456789, time.FixedZone("", 7200))
	want.Detail = map[string]string{"image": "sha256:1", "<b>": "\u2028"}
	appendAll(t, w, want, call("log"))

	got, err := audit.Tail(t.Context(), dir, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Tool != "status" || got[1].Kind != audit.KindOpen {
		t.Fatalf("Tail = %+v, want a backdated status, the opening record, log", got)
	}
	want.Seq, want.Gateway = 2, "g1"
	ignored := cmpopts.IgnoreFields(audit.Record{}, "Prev", "Hash")
	if diff := cmp.Diff(want, got[0], ignored, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("record differs (-want +got):\n%s", diff)
	}
	if got[0].Prev != got[1].Hash || got[2].Prev != got[0].Hash {
		t.Errorf("records are not chained: %+v", got)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s = %v, want 0600", entry.Name(), info.Mode())
		}
	}
	if got := problems(verify(t, dir)); got != nil {
		t.Errorf("Verify = %q, want nothing", got)
	}
}

func TestAppendTooLong(t *testing.T) {
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	long := call("x")
	long.Detail = map[string]string{"x": strings.Repeat("x", 64<<10)}
	if err := w.Append(long); !errors.Is(err, audit.ErrTooLong) {
		t.Errorf("Append(long) = %v, want %v", err, audit.ErrTooLong)
	}
	appendAll(t, w, call("y"))
	if got := problems(verify(t, dir)); got != nil {
		t.Errorf("Verify = %q, want nothing", got)
	}
}

func TestAppendConcurrently(t *testing.T) {
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1", MaxSize: 4 << 10})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 50 {
				if err := w.Append(call(fmt.Sprint(i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Reading while it is written finds nothing wrong either.
	for range 10 {
		if got := verify(t, dir); !got.Intact() {
			t.Errorf("Verify while writing = %q, want nothing", problems(got))
		}
	}
	group.Wait()
	report := verify(t, dir)
	if got := problems(report); got != nil {
		t.Errorf("Verify = %q, want nothing", got)
	}
	chain := report.Chains[0]
	if chain.Files < 10 || chain.Records != 400+chain.Files {
		t.Errorf("%d records in %d files, want 400 and one for each of 10 files or more", chain.Records, chain.Files)
	}
}

func TestOpenContinues(t *testing.T) {
	dir := t.TempDir()
	for _, tool := range []string{"a", "b", "c"} {
		w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
		appendAll(t, w, call(tool))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.Append(call(tool)); !errors.Is(err, audit.ErrClosed) {
			t.Errorf("Append after Close = %v, want %v", err, audit.ErrClosed)
		}
	}
	report := verify(t, dir)
	if got := problems(report); got != nil || report.Chains[0].Records != 6 || report.Chains[0].Files != 3 {
		t.Errorf("Verify = %+v, want 6 records in 3 files and no problem", report)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	open(t, audit.Options{Dir: dir, Gateway: "g1"})
	var locked *audit.LockedError
	if _, err := audit.Open(audit.Options{Dir: dir, Gateway: "g1"}); !errors.As(err, &locked) {
		t.Errorf("Open twice = %v, want a LockedError", err)
	}
	open(t, audit.Options{Dir: dir, Gateway: "g2"})
	for _, id := range []string{"", "a/b", "..", "a b", strings.Repeat("a", 65)} {
		if _, err := audit.Open(audit.Options{Dir: dir, Gateway: id}); err == nil {
			t.Errorf("Open(gateway %q) = nil, want an error", id)
		}
	}
}

func TestOpenDamaged(t *testing.T) {
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	appendAll(t, w, call("a"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "g1-000001.jsonl"), func(lines []string) []string {
		lines[1] = strings.Replace(lines[1], `"a"`, `"b"`, 1)
		return lines
	})
	_, err := audit.Open(audit.Options{Dir: dir, Gateway: "g1"})
	var damaged *audit.DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(damaged.Hint(), dir) {
		t.Errorf("Open = %v, want a DamagedError with a hint that names the folder", err)
	}
}

func TestOpenAfterInterruption(t *testing.T) {
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	appendAll(t, w, call("a"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "g1-000001.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"seq":3,"ti`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	w = open(t, audit.Options{Dir: dir, Gateway: "g1"})
	appendAll(t, w, call("b"))
	report := verify(t, dir)
	want := []string{"g1-000001.jsonl:3: incomplete: the last record was not written whole"}
	if diff := cmp.Diff(want, problems(report)); diff != "" || !report.Intact() {
		t.Errorf("Verify: intact %v, problems differ (-want +got):\n%s", report.Intact(), diff)
	}
}

// A device that is always full: nothing of a record is written.
func TestAppendToFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full")
	}
	dir := t.TempDir()
	w := open(t, audit.Options{Dir: dir, Gateway: "g1"})
	appendAll(t, w, call("a"))
	disk := w.Divert(full)
	for range 2 {
		if err := w.Append(call("lost")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Append = %v, want %v", err, syscall.ENOSPC)
		}
	}
	w.Divert(disk)
	appendAll(t, w, call("b"))
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	report := verify(t, dir)
	if got := problems(report); got != nil || report.Chains[0].Records != 3 {
		t.Errorf("Verify = %+v, want 3 records and no problem", report)
	}
}

func BenchmarkAppend(b *testing.B) {
	w, err := audit.Open(audit.Options{Dir: b.TempDir(), Gateway: "g1"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	r := call("status")
	r.Detail = map[string]string{"image": "sha256:1"}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}
