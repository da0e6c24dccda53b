package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
)

// errNoPython says that this machine has no Python to make an image of. The
// others are made all the same.
var errNoPython = errors.New("no Python with pip on this machine (Debian: apt-get install python3 python3-pip)")

// A python is an interpreter of this machine.
type python struct {
	// Program is its binary, and Library the folder of its standard library.
	Program, Library string
	// Pip is the folder of its package installer.
	Pip string
}

// describePython prints a python.
const describePython = `
import json, os, pip, sys, sysconfig
print(json.dumps({
    "Program": os.path.realpath(sys.executable),
    "Library": os.path.realpath(sysconfig.get_path("stdlib")),
    "Pip": os.path.realpath(pip.__path__[0]),
}))`

// pythonRuntime is an image with Python and pip, in which packages are
// installed.
func pythonRuntime(ctx context.Context, w *workshop) ([]layer, config, error) {
	l, err := w.once("python", func() ([]entry, error) {
		if runtime.GOOS != "linux" || runtime.GOARCH != w.arch {
			return nil, fmt.Errorf("%w: it is no Linux machine of the engine's architecture %s", errNoPython, w.arch)
		}
		found, err := findPython(ctx)
		if err != nil {
			return nil, err
		}
		return found.entries(ctx)
	})
	return []layer{l}, config{Env: []string{"PATH=/usr/bin:/bin"}, Cmd: []string{"/usr/bin/python3"}}, err
}

// findPython finds a Python with pip: the system's, another one, or the
// system's once it was installed.
func findPython(ctx context.Context) (python, error) {
	if found, err := firstPython(ctx); err == nil {
		return found, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return python{}, errNoPython
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "python3", "python3-pip"}} {
		command := exec.CommandContext(ctx, "apt-get", args...) //nolint:gosec // the words above
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := command.CombinedOutput(); err != nil {
			return python{}, fmt.Errorf("%w: apt-get %s: %w\n%s", errNoPython, args[0], err, out)
		}
	}
	return firstPython(ctx)
}

// firstPython returns the first Python that has pip.
func firstPython(ctx context.Context) (python, error) {
	for _, program := range []string{"/usr/bin/python3", "python3"} {
		// Isolated: what the user or a virtual environment has is not in the image.
		out, err := exec.CommandContext(ctx, program, "-I", "-c", describePython).Output() //nolint:gosec // the words above
		var found python
		if err == nil && json.Unmarshal(out, &found) == nil {
			return found, nil
		}
	}
	return python{}, errNoPython
}

// entries returns the interpreter, its libraries and pip, where this machine
// has them, for there the interpreter looks.
func (p python) entries(ctx context.Context) ([]entry, error) {
	entries := append(rootFiles(),
		entry{name: p.Program[1:], mode: 0o755, source: p.Program},
	)
	if p.Program != "/usr/bin/python3" {
		entries = append(entries, entry{name: "usr/bin/python3", mode: 0o777, link: p.Program})
	}
	binaries := []string{p.Program}
	for _, folder := range []string{p.Library, p.Pip} {
		below, err := tree(folder, folder[1:])
		if err != nil {
			return nil, err
		}
		for _, e := range below {
			inside := "/" + strings.TrimPrefix(e.name, folder[1:]+"/")
			if slices.ContainsFunc(leftOut(), func(part string) bool { return strings.Contains(inside+"/", part) }) {
				continue
			}
			entries = append(entries, e)
			if path.Base(path.Dir(e.name)) == "lib-dynload" {
				binaries = append(binaries, "/"+e.name)
			}
		}
	}
	libraries, err := loads(ctx, binaries...)
	if err != nil {
		return nil, err
	}
	for _, library := range libraries {
		entries = append(entries, entry{name: library[1:], mode: 0o755, source: library})
	}
	return entries, nil
}

// leftOut are the parts of paths in a library of Python that no server needs:
// what was compiled for this machine's files, other packages, windows.
func leftOut() []string {
	return []string{"/__pycache__/", "/site-packages/", "/dist-packages/", "/test/", "/idlelib/", "/tkinter/", "/_tkinter.", "/turtledemo/", "/ensurepip/", "/config-"}
}
