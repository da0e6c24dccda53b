package logfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker/logfile"
)

// Two containers of a server write to one file. It is set aside when it is
// full, and what is too old goes.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	kept := logfile.In(dir)
	if files, err := kept.Files("git"); err != nil || len(files) > 0 {
		t.Errorf("Files() before there are any = %q, %v, want none", files, err)
	}
	one, err := kept.Open("git")
	if err != nil {
		t.Fatal(err)
	}
	other, err := kept.Open("git")
	if err != nil {
		t.Fatal(err)
	}
	// Each fills more than half of a file, so that none shares one with another.
	line := func(letter byte) []byte { return append(bytes.Repeat([]byte{letter}, 3<<20), '\n') }
	for i, letter := range []byte("abcd") {
		to := one
		if i%2 == 1 {
			to = other
		}
		if n, err := to.Write(line(letter)); n != 3<<20+1 || err != nil {
			t.Errorf("Write(%c…) = %d, %v, want all of it", letter, n, err)
		}
	}
	if err := one.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if _, err := other.Write([]byte("the end\n")); err != nil {
		t.Errorf("Write() after the other's Close = %v", err)
	}
	if err := other.Close(); err != nil {
		t.Errorf("Close() of the last user = %v", err)
	}
	logs := filepath.Join(dir, "logs")
	files, err := kept.Files("git")
	want := []string{filepath.Join(logs, "git.log.2"), filepath.Join(logs, "git.log.1"), filepath.Join(logs, "git.log")}
	if err != nil || !slices.Equal(files, want) {
		t.Fatalf("Files() = %q, %v, want %q", files, err, want)
	}
	lines, err := kept.Read("git", -1)
	if err != nil {
		t.Fatal(err)
	}
	var starts []string
	for _, l := range lines {
		starts = append(starts, l[:min(len(l), 7)])
	}
	if diff := cmp.Diff([]string{"bbbbbbb", "ccccccc", "ddddddd", "the end"}, starts); diff != "" {
		t.Errorf("Read() (-want +got):\n%s", diff)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 5<<20 || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v, want at most 5 MiB and nobody else's", file, info, err)
		}
	}
}

// A write that is lost stops nobody, and is told to the last who closes.
func TestFileThatIsLost(t *testing.T) {
	dir := t.TempDir()
	kept := logfile.In(dir)
	file, err := kept.Open("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "logs")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // there is no folder for the second file
		if n, err := file.Write(make([]byte, 3<<20)); n != 3<<20 || err != nil {
			t.Errorf("Write() = %d, %v, want that it seems to be done", n, err)
		}
	}
	if err := file.Close(); err == nil {
		t.Error("Close() = nil, want the error of the write")
	}
	if _, err := kept.Open("../git"); err == nil {
		t.Error("Open(../git) = nil, want an error")
	}
}
