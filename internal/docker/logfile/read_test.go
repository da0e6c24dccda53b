package logfile_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker/logfile"
)

// folder returns a folder of log files, and where it is.
func folder(t *testing.T) (*logfile.Folder, string) {
	t.Helper()
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	return logfile.In(dir), logs
}

func write(t *testing.T, file, text string) {
	t.Helper()
	opened, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	kept, logs := folder(t)
	write(t, filepath.Join(logs, "git.log.2"), "one\n")
	write(t, filepath.Join(logs, "git.log.1"), "two\nthree\n")
	write(t, filepath.Join(logs, "git.log"), "four\nfi")
	tests := []struct {
		server string
		n      int
		want   []string
	}{
		{"git", -1, []string{"one", "two", "three", "four", "fi"}},
		{"git", 10, []string{"one", "two", "three", "four", "fi"}},
		{"git", 3, []string{"three", "four", "fi"}},
		{"git", 0, []string{}},
		{"silent", -1, nil},
	}
	for _, tt := range tests {
		got, err := kept.Read(tt.server, tt.n)
		if err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("Read(%q, %d) = %q, %v, want %q", tt.server, tt.n, got, err, tt.want)
		}
	}
	if got, err := kept.Read("../git", -1); err == nil {
		t.Errorf("Read(../git) = %q, want an error", got)
	}
}

func TestFollow(t *testing.T) {
	kept, logs := folder(t)
	name := filepath.Join(logs, "git.log")
	// What happens after each line has arrived.
	steps := []struct {
		arrived string
		then    func()
	}{
		{"two", func() { write(t, name, "four\n") }}, // completes a line
		{"three and four", func() {
			write(t, name, "five\nsi")
			if err := os.Rename(name, name+".1"); err != nil {
				t.Error(err)
			}
			write(t, name, "seven\n")
		}},
		{"five", func() {}},
		{"si", func() {}}, // no more comes in the old file
		{"seven", func() {}},
	}
	write(t, name, "one\ntwo\nthree and ")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for got, err := range kept.Follow(ctx, "git", 1) {
			if err != nil {
				t.Fatalf("Follow: line %d: %v", n, err)
			}
			if got != steps[n].arrived {
				t.Fatalf("Follow: line %d = %q, want %q", n, got, steps[n].arrived)
			}
			steps[n].then()
			if n++; n == len(steps) {
				cancel()
			}
		}
		if n != len(steps) {
			t.Errorf("Follow ended after %d lines, want %d", n, len(steps))
		}
	})
}
