package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The MCP inspector starts the gateway itself, once for each command.
func TestInspector(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	needImage(t, api, "dockgate-test/everything")
	installed := needClients(t)
	h := newHouse(t, demo+"  everything: {image: dockgate-test/everything}\n")
	inspect := func(serve []string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		// The entry is the one that people write into their client's configuration.
		entry := map[string]any{"command": binary, "args": h.args(append([]string{"serve"}, serve...)...)}
		config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"dockgate": entry}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(file, config, 0o600); err != nil {
			t.Fatal(err)
		}
		line := []string{"--cli", "--config", file, "--server", "dockgate"}
		cmd := installed.Command(ctx, installed.Inspector, append(line, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if !json.Valid(out) { // a result that says it is an error is one, with an exit code
			t.Fatalf("inspector %s: %v, no JSON\n%s%s", strings.Join(args, " "), err, out, &stderr)
		}
		return string(out)
	}
	all := []string{"--approve", "all"}
	for _, tt := range []struct {
		serve []string
		args  []string
		want  string
	}{
		{nil, []string{"--method", "tools/list"}, `"mcp_find"`},
		{nil, []string{"--method", "tools/call", "--tool-name", "mcp_find", "--tool-arg", "query=demo server"}, `thing`},
		{[]string{"--approve", "pinned"}, []string{"--method", "tools/call", "--tool-name", "mcp_add", "--tool-arg", "name=thing"}, `APPROVAL_DENIED`},
		{all, []string{"--method", "tools/call", "--tool-name", "mcp_add", "--tool-arg", "name=everything"}, `everything__echo`},
		{nil, []string{"--method", "tools/list"}, `"everything__echo"`},
		{nil, []string{"--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hi"}, `Echo: hi`},
		{nil, []string{"--method", "prompts/list"}, `"everything__simple-prompt"`},
		{nil, []string{"--method", "resources/list"}, `architecture.md`},
		{nil, []string{"--method", "tools/call", "--tool-name", "mcp_remove", "--tool-arg", "name=everything"}, `everything removed`},
	} {
		if got := inspect(tt.serve, tt.args...); !strings.Contains(got, tt.want) {
			t.Errorf("inspector %s =\n%s\nwant %s in it", strings.Join(tt.args, " "), got, tt.want)
		}
	}
}

// The inspector speaks with the gateway over HTTP, in both eras.
func TestInspectorHTTP(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	installed := needClients(t)
	h := newHouse(t, demo)
	h.learn(t, "thing")
	url := h.serveOpen(t, "--approve", "pinned", "--server", "thing")
	for _, era := range []string{"legacy", "modern"} {
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"--method", "tools/list"}, `"thing__echo"`},
			{[]string{"--method", "tools/call", "--tool-name", "thing__echo", "--tool-arg", "text=hi"}, `"hi"`},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			args := append([]string{"--cli", url, "--transport", "http", "--protocol-era", era}, tt.args...)
			out, err := installed.Command(ctx, installed.Inspector, args...).CombinedOutput()
			cancel()
			if err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("inspector %s = %v\n%s\nwant %s in it", strings.Join(args, " "), err, out, tt.want)
			}
		}
	}
}
