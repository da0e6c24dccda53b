// Package daemontest opens daemons for tests.
package daemontest

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/setup"
)

// Options are those of a daemon whose engine is never asked, in a folder of its
// own, with entries as a catalog.
func Options(t *testing.T, entries string) daemon.Options {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "catalog.yaml")
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	return daemon.Options{
		Inputs: setup.Inputs{
			Config: policy.Config{Catalogs: []string{file}},
			Home:   filepath.Join(dir, "home"),
			Dir:    dir,
			Env:    func(string) (string, bool) { return "", false },
		},
		State:  filepath.Join(dir, "state"),
		Engine: reach.Options{Host: "unix://" + filepath.Join(dir, "no.sock")},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Open opens a daemon, and closes it at the end of the test.
func Open(t *testing.T, o daemon.Options) *daemon.Daemon {
	t.Helper()
	d, err := daemon.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
