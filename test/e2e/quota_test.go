package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// In the folder of a project that lowers the quotas, they hold on the engine:
// what is started in advance makes room for what is called, and no container
// has more memory than the project allows.
func TestProjectQuotas(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	project := t.TempDir()
	limits := filepath.Join(project, ".go-ent", "mcp-limits.yaml")
	if err := os.MkdirAll(filepath.Dir(limits), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(limits, []byte("quotas:\n  max_concurrent_mcps: 2\n  max_memory_per_mcp: \"48MB\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
	h := newHouse(t, `  ahead: {image: dockgate/demo, auto_start: true}
  one: {image: dockgate/demo}
  two: {image: dockgate/demo}
  big: {image: dockgate/demo, limits: {memory: 2GB}}
`)
	h.allowScripts(t)
	for _, server := range []string{"ahead", "one", "two"} {
		if _, err := h.command(t, "approve", "--yes", server); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.command(t, "approve", "--yes", "big"); err == nil || !strings.Contains(err.Error(), limits) {
		t.Errorf("approve big = %v, want a refusal that names %s", err, limits)
	}
	session := join(t, h.serve(t, "--server", "ahead", "--server", "one", "--server", "two"), nil)
	within(t, 20*time.Second, "the start in advance", func() bool { return len(left(t, api, h)) == 1 })
	for _, server := range []string{"one", "two", "one", "ahead"} {
		if got := text(t, session, server+"__add", map[string]any{"a": 40, "b": 2}); got != "42" {
			t.Errorf("%s__add = %q, want 42", server, got)
		}
		running, err := api.ContainerList(t.Context(), client.ContainerListOptions{
			All: true, Filters: make(client.Filters).Add("label", "dockgate.state="+h.id(t)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(running.Items); n > 2 {
			t.Errorf("%d containers after the call of %s, want 2 at most", n, server)
		}
		for _, c := range running.Items {
			inspected, err := api.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
			if cerrdefs.IsNotFound(err) {
				continue // it made room for the next
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := inspected.Container.HostConfig.Memory; got != 48<<20 {
				t.Errorf("memory of %s = %d, want 48 MB", c.Labels["dockgate.server"], got)
			}
		}
	}
}
