package docker_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker"
)

// logEngine returns an engine that is never asked, and the folder of its logs.
func logEngine(t *testing.T) (*docker.Engine, string) {
	t.Helper()
	dir := t.TempDir()
	engine, err := docker.Connect(t.Context(), docker.Options{Host: "unix:///nowhere", State: "test", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	return engine, logs
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

func TestReadLog(t *testing.T) {
	engine, logs := logEngine(t)
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
		got, err := engine.ReadLog(tt.server, tt.n)
		if err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("ReadLog(%q, %d) = %q, %v, want %q", tt.server, tt.n, got, err, tt.want)
		}
	}
	if got, err := engine.ReadLog("../git", -1); err == nil {
		t.Errorf("ReadLog(../git) = %q, want an error", got)
	}
}

func TestFollowLog(t *testing.T) {
	engine, logs := logEngine(t)
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
		for got, err := range engine.FollowLog(ctx, "git", 1) {
			if err != nil {
				t.Fatalf("FollowLog: line %d: %v", n, err)
			}
			if got != steps[n].arrived {
				t.Fatalf("FollowLog: line %d = %q, want %q", n, got, steps[n].arrived)
			}
			steps[n].then()
			if n++; n == len(steps) {
				cancel()
			}
		}
		if n != len(steps) {
			t.Errorf("FollowLog ended after %d lines, want %d", n, len(steps))
		}
	})
}
