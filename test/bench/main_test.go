package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/built"
	"github.com/dockgate/dockgate/test/engine"
)

// build returns a program of this module.
func build(t *testing.T, folder string) string {
	t.Helper()
	file, err := built.Program(t.Context(), t.TempDir(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// needsEngine skips a test without an engine and the demo's image, or fails it
// if they are required.
func needsEngine(t *testing.T) {
	t.Helper()
	docker, err := engine.Connect(t.Context())
	if err == nil {
		_, err = docker.ImageInspect(t.Context(), "dockgate/demo:latest")
		err = errors.Join(err, docker.Close())
	}
	switch {
	case err != nil && os.Getenv("TEST_ENGINE") == "require":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
}

func TestWarm(t *testing.T) {
	needsEngine(t)
	bench, gateway := build(t, "test/bench"), build(t, "cmd/dockgate")
	file := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), bench, "--only", "warm,catalog", "--pairs", "2", "--gateway", gateway, "--json", file,
		"--peer", "plain=docker run -i --rm --network none dockgate/demo:latest")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("bench: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"warm.call_us", "warm.raw_us", "warm.sdk_us", "warm.calls_per_s_16", "warm.ratio_raw_16", "catalog.load_328_ms",
		"peer.plain.warm.call_us", "peer.plain.warm.ratio",
	} {
		median, ok := report[key].(float64)
		if !ok || median <= 0 {
			t.Errorf("%s = %v, want a number above zero", key, report[key])
		}
		if low, _ := report[key+".low"].(float64); low <= 0 || low > median {
			t.Errorf("%s.low = %v, want a number up to %v", key, report[key+".low"], median)
		}
	}
	if _, ok := report["warm.added_us"].(float64); !ok {
		t.Errorf("warm.added_us = %v, want a number", report["warm.added_us"])
	}
	if !strings.Contains(string(out), "≤ 200") {
		t.Errorf("the table has no bar of 200:\n%s", out)
	}
}

// An interrupt ends the run and everything that it has started.
func TestInterrupt(t *testing.T) {
	needsEngine(t)
	bench, gateway := build(t, "test/bench"), build(t, "cmd/dockgate")
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), bench, "--only", "warm", "--pairs", "100000", "--gateway", gateway)
	command.Env = append(os.Environ(), "TMPDIR="+dir)
	talk, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(talk).ReadString('\n'); err != nil { // it says what it measures
		t.Fatal(err)
	}
	running(t, dir, "while it measures", func(found bool) bool { return found })
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("exit after an interrupt = %v, want status 1", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("files left = %v, %v, want none", left, err)
	}
	running(t, dir, "after an interrupt", func(found bool) bool { return !found })
	docker, err := engine.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = docker.Close() }()
	containers, err := docker.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "dockgate.bench"),
	})
	if err != nil || len(containers.Items) > 0 {
		t.Errorf("containers left = %v, %v, want none", containers.Items, err)
	}
}

// running waits until there is, or is not, a process with a path in its
// command line.
func running(t *testing.T, path, when string, wanted func(found bool) bool) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return // no /proc
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range all {
			line, err := os.ReadFile(file)
			found = found || err == nil && strings.Contains(string(line), path)
		}
		if wanted(found) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("a gateway runs %s: %v, want the opposite", when, found)
		}
	}
}

func TestMistakes(t *testing.T) {
	bench := build(t, "test/bench")
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--only", "warm,hot"}, `unknown part "hot"; known: start, catalog, cold, warm, anticipated, meta, result, http, reload, stop, rss`},
		{[]string{"--pairs", "0"}, "--pairs is 0, want 1 or more"},
		{[]string{"--peer", "docker run"}, "want NAME=COMMAND"},
		{[]string{"--peer", "a b=cat"}, "want NAME=COMMAND"},
		{[]string{"warm"}, `unknown argument "warm"`},
		{[]string{"--gateway", "no/such/program"}, "run make build"},
	}
	for _, tt := range tests {
		out, err := exec.CommandContext(t.Context(), bench, tt.args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), tt.want) {
			t.Errorf("bench %q = %v with:\n%s\nwant status 1 with %q", tt.args, err, out, tt.want)
		}
	}
}
