package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

// The built-in Google Drive is an npm package that reads its credentials from
// a file: the one that the user's variable names is in its container, where it
// starts and lists its tools, and nothing of it is in the plan.
func TestGoogleDrive(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate-test/node")
	by, err := engine.Tunnel(t.Context(), api)
	if err != nil {
		t.Skipf("the engine is not on this machine: %v", err)
	}
	t.Cleanup(by.Close)
	h := newHouse(t, "")
	dir := filepath.Dir(h.catalog)
	certificates := ""
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		certificates = ", certificates: /etc/ssl/certs/ca-certificates.crt"
	}
	credentials := filepath.Join(dir, "credentials.json")
	for path, text := range map[string]string{
		credentials: `{"access_token": "hunter2", "token_type": "Bearer", "expiry_date": 1}`,
		h.catalog:   "version: 1\nruntimes: {npx: {image: dockgate-test/node}}\nservers: {}\n",
		filepath.Join(dir, "config.yaml"): fmt.Sprintf("catalogs: [%s]\n"+unhurried+"install: {env: {NPM_CONFIG_HTTPS_PROXY: %q, NPM_CONFIG_PROXY: %q}%s}\n",
			h.catalog, by.URL, by.URL, certificates),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.config = filepath.Join(dir, "config.yaml")
	t.Setenv("GOOGLE_CREDENTIALS", credentials)
	t.Cleanup(func() { uninstall(t, api, "@modelcontextprotocol/server-gdrive@2025.1.14") })

	h.learn(t, "google-drive")
	session := connect(t, h.serve(t, "--approve", "pinned", "--server", "google-drive"), upstream.Legacy)
	result, err := session.Call(t.Context(), "tools/list", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &listed); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, tool := range listed.Tools {
		found = found || tool.Name == "google-drive__search"
	}
	if !found {
		t.Errorf("tools = %v, want google-drive__search", listed.Tools)
	}
	plan, err := h.command(t, "plan", "google-drive")
	if err != nil || strings.Contains(plan, "hunter2") || !strings.Contains(plan, "GDRIVE_CREDENTIALS_PATH") {
		t.Errorf("plan = %s, %v, want the secret's name and not its value", plan, err)
	}
}
