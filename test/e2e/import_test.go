//go:build unix

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// In its image the gateway may only read the home folder. What it cannot write
// there is said, with what to do; and that does it.
func TestImportInImage(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/gateway")
	if os.Getenv("DOCKER_HOST") != "" && !strings.HasPrefix(os.Getenv("DOCKER_HOST"), "unix://") {
		t.Skip("the engine is not on this machine")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), []byte(`{"mcpServers": {"own": {"command": "npx", "args": ["-y", "example"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(flags ...string) (string, error) {
		args := append([]string{"run", "--rm", "--network", "none", "-v", home + ":" + home + ":ro", "-e", "DOCKGATE_HOST_HOME=" + home}, flags...)
		out, err := exec.CommandContext(t.Context(), "docker", append(args, "dockgate/gateway", "import", filepath.Join(home, "mcp.json"), "--write")...).CombinedOutput()
		return string(out), err
	}
	said, err := run()
	hint := regexp.MustCompile(`hint: .* on the host run: (mkdir -p \S+); then this command again with (.*) after "docker run"`).FindStringSubmatch(said)
	if err == nil || hint == nil || !strings.Contains(said, "own catalog "+filepath.Join(home, ".config", "dockgate", "servers.yaml")+" cannot be written") {
		t.Fatalf("import --write with a home folder that is read only = %v, %s, want what to do", err, said)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", hint[1]).CombinedOutput(); err != nil { //nolint:gosec // what the program says is to be run
		t.Fatalf("%s: %v\n%s", hint[1], err, out)
	}
	flags, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+hint[2]).Output() //nolint:gosec // the same
	if err != nil {
		t.Fatal(err)
	}
	if said, err = run(strings.Fields(string(flags))...); err != nil {
		t.Fatalf("import --write as the hint has it = %v, %s", err, said)
	}
	written, err := os.ReadFile(filepath.Join(home, ".config", "dockgate", "servers.yaml"))
	if err != nil || !strings.Contains(string(written), "own:") {
		t.Errorf("own catalog = %s, %v, want the server", written, err)
	}
}
