package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dockgate/dockgate/internal/audit"
)

// A disk that fills up while records are written: the last one may be written
// in part, and none is lost that was promised.
func TestAppendToFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 16<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := audit.Open(audit.Options{Dir: dir, Gateway: "g1"})
	if err != nil {
		t.Fatal(err)
	}
	promised := 1
	for err == nil {
		if err = w.Append(call("x")); err == nil {
			promised++
		}
	}
	for range 3 {
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Append = %v, want %v", err, syscall.ENOSPC)
		}
		err = w.Append(call("x"))
	}
	report := verify(t, dir)
	if got := report.Chains[0].Records; got != promised || !report.Intact() {
		t.Errorf("on the full disk: %d records, want %d; problems %q", got, promised, problems(report))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	appendAll(t, w, call("y"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	report = verify(t, dir)
	if got := report.Chains[0]; got.Records <= promised || !report.Intact() {
		t.Errorf("with space again: %d records, want more than %d; problems %q", got.Records, promised, problems(report))
	}
}
