package e2e_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/upstream"
)

// A secret reaches the server that was granted it, and no other place: not the
// state folder, the gateway's messages, a plan, a list, or an error.
func TestSecretsStayInside(t *testing.T) {
	const canary = "canary-6f1d8e1b9c"
	api := needEngine(t)
	needImage(t, api, "dockgate-test/everything")
	t.Setenv("THING_TOKEN", canary)
	t.Setenv("OTHER_TOKEN", canary+"-not-named")
	h := newHouse(t, `  everything:
    image: dockgate-test/everything
    secrets: [{name: thing.token, env: TOKEN, from: THING_TOKEN, required: true, instructions: Ask Ann}]
`)
	gate := h.serve(t, "--verbose", "--approve", "all", "--server", "everything")
	session := connect(t, gate, upstream.Legacy)
	call := func(params string) string {
		t.Helper()
		result, err := session.Call(t.Context(), "tools/call", json.RawMessage(params), nil)
		if err != nil {
			return err.Error()
		}
		return string(result)
	}
	inside := call(`{"name":"everything__get-env","arguments":{}}`)
	if !strings.Contains(inside, canary) || strings.Contains(inside, "OTHER_TOKEN") || strings.Contains(inside, "not-named") {
		t.Errorf("the server's environment is %s, want TOKEN and nothing of OTHER_TOKEN", inside)
	}
	seen := map[string]string{"an error": call(`{"name":"everything__get-envv"}`), "own tools": call(`{"name":"mcp_active"}`)}
	for _, args := range [][]string{
		{"plan", "everything"},
		{"plan", "everything", "--json"},
		{"ps"},
		{"ps", "--json"},
		{"approvals", "--json"},
		{"audit", "tail"},
		{"logs", "everything"},
		{"doctor"},
		{"catalog", "show", "everything"},
	} {
		out, err := h.command(t, args...)
		if err != nil {
			t.Error(err)
		}
		seen["dockgate "+strings.Join(args, " ")] = out
	}
	_ = session.Close()
	_ = gate.Close()
	_ = gate.cmd.Wait()
	seen["the gateway's messages"] = gate.stderr.String()
	err := filepath.WalkDir(h.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		seen[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, content := range seen {
		if bytes.Contains([]byte(content), []byte(canary)) {
			t.Errorf("the secret stands in %s", place)
		}
	}
}

// A missing secret is an error before the start, with its instructions, and
// the next call works once it is there.
func TestMissingSecret(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	h := newHouse(t, `  thing:
    image: dockgate/demo
    secrets: [{name: thing.token, env: TOKEN, required: true, instructions: Ask Ann}]
`)
	dir := t.TempDir()
	t.Chdir(dir)
	session := connect(t, h.serve(t, "--approve", "all", "--server", "thing"), upstream.Legacy)
	call := func() string {
		t.Helper()
		result, err := session.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"thing__add","arguments":{"a":1,"b":1}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(result)
	}
	if got := call(); !strings.Contains(got, "CONFIGURATION_ERROR") || !strings.Contains(got, "Ask Ann") {
		t.Errorf("a call without the secret = %s, want CONFIGURATION_ERROR with the instructions", got)
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("TOKEN=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(); strings.Contains(got, "isError") {
		t.Errorf("a call with the secret in .env = %s, want a result", got)
	}
}

// A catalog with mistakes stops the gateway before anything runs, and names
// each of them.
func TestBrokenCatalog(t *testing.T) {
	h := newHouse(t, "  thing: {image: dockgate/demo, imagge: x}\n  mcp: {image: x}\n")
	_, err := h.command(t, "serve")
	if !isExit(err, 2) || !strings.Contains(err.Error(), "catalog.yaml:3: servers.thing.imagge") || !strings.Contains(err.Error(), "catalog.yaml:4:") {
		t.Errorf("serve = %v, want exit 2 with both mistakes and their lines", err)
	}
	if _, err := os.Stat(h.state); err == nil {
		t.Error("a gateway that did not start has made its state folder")
	}
}
