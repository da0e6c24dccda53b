// Package npm installs packages for tests into a cache outside of the tree,
// once for each list of packages. Install scripts are not run.
package npm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

// ErrMissing says that npm is not there.
var ErrMissing = errors.New("npm is not on the PATH: install Node.js with npm (Debian: apt-get install nodejs npm)")

// Cache returns a folder in the cache that tests share. It outlives the test.
func Cache(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "dockgate-test", name)
	return dir, os.MkdirAll(dir, 0o700)
}

// A Folder holds installed packages below node_modules.
type Folder string

// Install returns a folder with packages, each "name@version", and what they
// need. It installs them if no call did before. Several processes may call it
// at the same time.
func Install(ctx context.Context, packages ...string) (folder Folder, err error) {
	packages = slices.Sorted(slices.Values(packages))
	manifest, err := manifestOf(packages)
	if err != nil {
		return "", err
	}
	cache, err := Cache("npm")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256(manifest))[:16])
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := os.Stat(dir); err == nil {
		return Folder(dir), nil
	}
	program, err := exec.LookPath("npm")
	if err != nil {
		return "", ErrMissing
	}
	// A folder is there only once it is whole.
	fresh, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := os.WriteFile(filepath.Join(fresh, "package.json"), manifest, 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, program, "install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
	command.Dir = fresh
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	return Folder(dir), os.Rename(fresh, dir)
}

// manifestOf returns a package.json that needs packages.
func manifestOf(packages []string) ([]byte, error) {
	needs := make(map[string]string, len(packages))
	for _, p := range packages {
		at := strings.LastIndexByte(p, '@')
		if at < 1 || at == len(p)-1 {
			return nil, fmt.Errorf("npm package %q: want name@version", p)
		}
		needs[p[:at]] = p[at+1:]
	}
	return json.Marshal(map[string]any{"private": true, "dependencies": needs})
}

// Path returns the path of a file of a package.
func (f Folder) Path(name, file string) string {
	return filepath.Join(string(f), "node_modules", filepath.FromSlash(name), filepath.FromSlash(file))
}

// Script returns the script, below the package's folder, that a package runs
// as its command. A package with several must have one of its own name.
func (f Folder) Script(name string) (string, error) {
	text, err := os.ReadFile(f.Path(name, "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", fmt.Errorf("package.json of %s: %w", name, err)
	}
	var script string
	if err := json.Unmarshal(manifest.Bin, &script); err == nil {
		return filepath.ToSlash(filepath.Clean(script)), nil
	}
	var scripts map[string]string
	if err := json.Unmarshal(manifest.Bin, &scripts); err != nil {
		return "", fmt.Errorf("package.json of %s: no command: %w", name, err)
	}
	for key, value := range scripts {
		if len(scripts) == 1 || key == name[strings.LastIndexByte(name, '/')+1:] {
			return filepath.ToSlash(filepath.Clean(value)), nil
		}
	}
	return "", fmt.Errorf("package.json of %s: several commands, none of its name", name)
}

// Node returns a package with the Node.js binary for Linux on an architecture,
// in Go's words, and the path of the binary in it. Tests run npm packages with
// it, whatever the machine has.
func Node(goarch string) (pkg, binary string, err error) {
	arch, ok := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	if !ok {
		return "", "", fmt.Errorf("no Node.js package for linux/%s", goarch)
	}
	return "node-linux-" + arch + "@22.23.3", "bin/node", nil
}
