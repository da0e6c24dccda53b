// Package catalogtest holds the formats that catalogs are read in to what all
// of them promise: entries that are valid and can be written in the native
// format, and mistakes that name their place.
package catalogtest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/native"
)

// Golden compares a text with a file. With DOCKGATE_UPDATE set in the
// environment of the test it writes the file first.
func Golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("DOCKGATE_UPDATE") != "" { //nolint:forbidigo // a switch for whoever runs the tests
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // a test names it
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Entries compares entries, as they are in the native format, with a file.
func Entries(t *testing.T, path string, servers []catalog.Server) {
	t.Helper()
	Golden(t, path, string(RoundTrip(t, servers)))
}

// RoundTrip writes entries in the native format, checks that reading them
// gives the same entries, and returns what was written.
func RoundTrip(t *testing.T, servers []catalog.Server) []byte {
	t.Helper()
	written, err := native.Encode(servers)
	if err != nil {
		t.Fatalf("Encode = %v", err)
	}
	again, err := catalog.Parse(catalog.Origin{Catalog: "written"}, written)
	if err != nil {
		t.Fatalf("Parse of what was written = %v", err)
	}
	same := cmp.Options{
		cmpopts.IgnoreFields(catalog.Server{}, "Origin", "EnabledAt"), cmpopts.EquateEmpty(),
		cmp.FilterValues(func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 },
			cmp.Comparer(func(a, b json.RawMessage) bool { return compact(t, a) == compact(t, b) })),
	}
	if diff := cmp.Diff(servers, again.Servers, same); diff != "" {
		t.Errorf("entries that were written and read (-before +after):\n%s", diff)
	}
	return written
}

// Mistakes compares the problems of a file with a golden file.
func Mistakes(t *testing.T, path string, err error) {
	t.Helper()
	var problems catalog.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the error is %v, want Problems", err)
	}
	Golden(t, path, err.Error()+"\n")
}

// Check holds what a reader made of any text to its promises; for fuzzing.
func Check(t *testing.T, text string, file catalog.File, err error) {
	t.Helper()
	var problems catalog.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			if p.Text == "" || p.Line < 0 || p.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 {
				t.Errorf("%q is reported as %+v", text, p)
			}
		}
		if len(problems) == 0 || len(file.Servers) > 0 {
			t.Errorf("%q = %d servers and %d problems", text, len(file.Servers), len(problems))
		}
	case err != nil:
		t.Errorf("%q = %v, want Problems", text, err)
	}
	for _, s := range file.Servers {
		if err := s.Validate(); err != nil {
			t.Errorf("%q is accepted as %+v, and Validate does not: %v", text, s, err)
		}
	}
	if err == nil && unique(file.Servers) {
		RoundTrip(t, file.Servers)
	}
}

func unique(servers []catalog.Server) bool {
	seen := make(map[string]bool)
	for _, s := range servers {
		if seen[s.Name] {
			return false
		}
		seen[s.Name] = true
	}
	return true
}

// Shared returns the path of data that is not part of this repository; the
// test is skipped where there is none.
func Shared(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
	path := filepath.Join(append([]string{dir, "..", "shared"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no data of others here: %v", err)
	}
	return path
}
