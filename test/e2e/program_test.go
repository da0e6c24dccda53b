package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

// An entry of a Claude Desktop file that runs npx is installed once, with
// network, and then runs from an image of its own; without network, if the
// person takes it away.
func TestProgram(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/node")
	h := newHouse(t, "")
	dir := filepath.Dir(h.catalog)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	desktop := write("claude_desktop_config.json", `{"mcpServers": {"everything": {
		"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything@2026.8.31"], "env": {"LEVEL": "high"}}}}`)
	runtimes := write("runtimes.yaml", "version: 1\nruntimes: {npx: {image: dockgate-test/node}}\nservers: {}\n")
	by, err := engine.Tunnel(t.Context(), api)
	if err != nil {
		t.Skipf("the engine is not on this machine: %v", err)
	}
	t.Cleanup(by.Close)
	certificates := ""
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		certificates = ", certificates: /etc/ssl/certs/ca-certificates.crt"
	}
	h.config = write("config.yaml", fmt.Sprintf(
		"catalogs: [%s, %s]\n"+unhurried+"install: {env: {NPM_CONFIG_HTTPS_PROXY: %q, NPM_CONFIG_PROXY: %q}%s}\n", runtimes, desktop, by.URL, by.URL, certificates))
	t.Cleanup(func() { uninstall(t, api, "@modelcontextprotocol/server-everything@2026.8.31") })

	h.learn(t, "everything")
	session := connect(t, h.serve(t, "--approve", "all", "--server", "everything"), upstream.Legacy)
	result, err := session.Call(t.Context(), "tools/call", []byte(`{"name":"everything__echo","arguments":{"message":"installed"}}`), nil)
	if err != nil || !strings.Contains(string(result), "Echo: installed") {
		t.Errorf("echo of the package = %.300s, %v", result, err)
	}
	listed, err := h.command(t, "images", "ls")
	if err != nil || !strings.Contains(listed, "@modelcontextprotocol/server-everything@2026.8.31") {
		t.Errorf("images ls = %s, %v, want the package", listed, err)
	}

	// The same package again: what is installed is used, and needs no network.
	bare := newHouse(t, "  bare: {program: {runtime: npx, package: \"@modelcontextprotocol/server-everything\", version: 2026.8.31}}\n")
	bare.config = filepath.Join(filepath.Dir(bare.catalog), "config.yaml")
	if err := os.WriteFile(bare.config, []byte("catalogs: ["+runtimes+", "+bare.catalog+"]\n"+unhurried), 0o600); err != nil {
		t.Fatal(err)
	}
	bare.learn(t, "bare")
	plan, err := bare.command(t, "plan", "bare")
	if err != nil || !strings.Contains(plan, "network:   none") || !strings.Contains(plan, "npx @modelcontextprotocol/server-everything@2026.8.31 in dockgate-test/node") {
		t.Errorf("plan bare = %s, %v, want the package without network", plan, err)
	}
}

// A server in a container that the user runs is spoken to, and said not to be
// sandboxed; the container stays.
func TestExecEntry(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	withoutReaper(t)
	users, err := testcontainers.Run(t.Context(), "dockgate/demo", testcontainers.WithLogger(log.TestLogger(t)),
		testcontainers.WithConfigModifier(func(c *container.Config) { c.OpenStdin = true }),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.NetworkMode = "none" }))
	testcontainers.CleanupContainer(t, users)
	if err != nil {
		t.Fatal(err)
	}
	name := users.GetContainerID()
	h := newHouse(t, "  inside: {exec: {container: "+name+"}, command: [/demo]}\n")
	h.learn(t, "inside")
	gate := h.serve(t, "--approve", "pinned", "--server", "inside")
	session := connect(t, gate, upstream.Legacy)
	result, err := session.Call(t.Context(), "tools/call", []byte(`{"name":"inside__echo","arguments":{"text":"inside"}}`), nil)
	if err != nil || !strings.Contains(string(result), "inside") {
		t.Errorf("echo in the container = %.300s, %v\n%s", result, err, gate.stderr)
	}
	if plan, err := h.command(t, "plan", "inside"); err != nil || !strings.Contains(plan, "NOT sandboxed by us") {
		t.Errorf("plan inside = %s, %v, want it to say that it is not sandboxed", plan, err)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := api.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
	if err != nil || !found.Container.State.Running {
		t.Errorf("the user's container does not run any more: %v", err)
	}
}

// withoutReaper keeps testcontainers from starting a container that cleans up
// behind it: its image cannot be pulled everywhere, and each test cleans up.
func withoutReaper(t *testing.T) {
	t.Helper()
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
}

// uninstall removes the images of a package.
func uninstall(t *testing.T, api *client.Client, pkg string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	images, err := api.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", "dockgate.package="+pkg)})
	if err != nil {
		t.Error(err)
	}
	for _, image := range images.Items {
		if _, err := api.ImageRemove(ctx, image.ID, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
}
