// Package e2e_test drives the built gateway, on a real engine, in front of MCP
// servers that nobody here wrote, with MCP clients that nobody here wrote.
package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/built"
	"github.com/dockgate/dockgate/test/engine"
)

// binary is the gateway, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dockgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if binary, err = built.Program(context.Background(), dir, "cmd/dockgate"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// needEngine returns the engine. Without one the test is skipped, or fails if
// TEST_ENGINE=require.
func needEngine(t *testing.T) *client.Client {
	t.Helper()
	api, err := engine.Connect(t.Context())
	if err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("TEST_ENGINE=require, but: %v", err)
		}
		t.Skipf("no engine: %v", err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

// needImage checks that an image was built (make images).
func needImage(t *testing.T, api *client.Client, name string) {
	t.Helper()
	if _, err := api.ImageInspect(t.Context(), name); err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("image %s: %v; run: make images", name, err)
		}
		t.Skipf("image %s is not built; run: make images", name)
	}
}

// A program is a process with pipes for its stdin and stdout.
type program struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	stderr *bytes.Buffer
}

// start runs a command until the test ends, at which its stdin is closed.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	cmd := exec.Command(name, args...)
	p := &program{cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = p.stderr
	var err error
	if p.WriteCloser, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.Reader, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.stderr)
		}
	})
	return p
}

// Close closes the program's stdin, which ends it.
func (p *program) Close() error { return p.WriteCloser.Close() }

// connect speaks MCP with a program.
func connect(t *testing.T, p *program, era upstream.Era) *upstream.Session {
	t.Helper()
	return connectAs(t, p, era, "{}")
}

// connectAs is connect with a client that declares capabilities.
func connectAs(t *testing.T, p *program, era upstream.Era, capabilities string) *upstream.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	session, err := upstream.Connect(ctx, p, upstream.Options{
		Client: upstream.Implementation{Name: "e2e", Version: "1"}, Era: era,
		Capabilities: json.RawMessage(capabilities),
	})
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, p.stderr)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// A house is a state folder and a catalog for the gateway.
type house struct {
	state, catalog string
	config         string // empty is none
	host           string // of the engine; empty is the one that everybody uses
}

func newHouse(t *testing.T, servers string) house {
	t.Helper()
	dir := t.TempDir()
	h := house{state: filepath.Join(dir, "state"), catalog: filepath.Join(dir, "catalog.yaml")}
	if err := os.WriteFile(h.catalog, []byte("version: 1\nservers:\n"+servers), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h house) args(args ...string) []string {
	own := []string{"--state", h.state, "--catalog", h.catalog}
	if h.config != "" {
		own = []string{"--state", h.state, "--config", h.config}
	}
	if h.host != "" {
		own = append(own, "--host", h.host)
	}
	return append(own, args...)
}

// command runs a command of the gateway to its end and returns its stdout.
func (h house) command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, h.args(args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("dockgate %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out), err
}

// serve starts the gateway.
func (h house) serve(t *testing.T, args ...string) *program {
	t.Helper()
	return start(t, binary, h.args(append([]string{"serve"}, args...)...)...)
}

// left returns the containers on the engine that belong to a state folder.
func left(t *testing.T, api *client.Client, h house) []string {
	t.Helper()
	return labelled(t, api, "dockgate.state="+h.id(t))
}

// id returns the id of the state folder.
func (h house) id(t *testing.T) string {
	t.Helper()
	db, err := store.Open(t.Context(), h.state)
	if err != nil {
		t.Fatal(err)
	}
	id := db.StateID()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

// labelled returns the containers on the engine that have a label.
func labelled(t *testing.T, api *client.Client, label string) []string {
	t.Helper()
	list, err := api.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", label),
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, strings.Join(c.Names, " ")+" "+string(c.State))
	}
	return names
}

// within waits until ok, and fails the test if that takes too long.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %v", what, limit)
		case <-look.C:
		}
	}
}

func isExit(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// allowScripts writes a configuration under which approvals need no terminal.
func (h *house) allowScripts(t *testing.T) {
	t.Helper()
	path := filepath.Join(filepath.Dir(h.catalog), "config.yaml")
	if err := os.WriteFile(path, []byte("approval: {scripted: true}\ncatalogs: ["+h.catalog+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.config = path
}
