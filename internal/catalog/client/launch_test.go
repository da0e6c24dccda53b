package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/client"
)

// parseOne reads a configuration of a project with one server.
func parseOne(t *testing.T, entry map[string]any) catalog.Server {
	t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"foo": entry}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := client.Parse(catalog.Origin{Catalog: "/work/project/.mcp.json"}, data, around())
	if err != nil {
		t.Fatal(err)
	}
	return file.Servers[0]
}

// A source of one character is a drive only if it is a letter before a path.
func TestVolumes(t *testing.T) {
	for _, tt := range []struct {
		volume string
		want   catalog.Mount
	}{
		{".:/work", catalog.Mount{Source: "/work/project", Target: "/work"}},
		{"/:/host", catalog.Mount{Source: "/", Target: "/host"}},
		{"~:/work:ro", catalog.Mount{Source: "~", Target: "/work", ReadOnly: true}},
		{"1:/work", catalog.Mount{Volume: "1", Target: "/work"}},
		{"c:/work", catalog.Mount{Volume: "c", Target: "/work"}},
		{`C:\data:/data:ro`, catalog.Mount{Source: `C:\data`, Target: "/data", ReadOnly: true}},
		{"c:/data:/data", catalog.Mount{Source: "c:/data", Target: "/data"}},
	} {
		s := parseOne(t, map[string]any{"command": "docker", "args": []string{"run", "-v", tt.volume, "example/x"}})
		if diff := cmp.Diff([]catalog.Mount{tt.want}, s.Mounts); diff != "" || len(s.Tmpfs) > 0 {
			t.Errorf("-v %s: (-want +got):\n%s tmpfs %v", tt.volume, diff, s.Tmpfs)
		}
	}
}

// What looks like a secret stands in no entry, wherever the client has it.
func TestWithheld(t *testing.T) {
	const value = "hunter2"
	run := func(args ...string) map[string]any {
		return map[string]any{"command": "npx", "args": append([]string{"-y", "foo"}, args...)}
	}
	command := func(words ...string) catalog.Server { return catalog.Server{Command: words} }
	secret := func(env string) []catalog.Secret { return []catalog.Secret{{Env: env}} }
	for _, tt := range []struct {
		entry map[string]any
		want  catalog.Server
	}{
		{run("--api-key", "hunter2"), command("--api-key", "{{config.api-key}}")},
		{run("--api-key=hunter2", "x"), command("--api-key={{config.api-key}}", "x")},
		{run("--apiKey", "hunter2"), command("--apiKey", "{{config.apiKey}}")},
		{run("--token", "hunter2", "--token", "hunter2"), command("--token", "{{config.token}}", "--token", "{{config.token-2}}")},
		{run("API_KEY=hunter2"), command("API_KEY={{config.API_KEY}}")},
		{run("sk-proj-A1b2C3d4hunter2"), command("{{config.argument-1}}")},
		{run("--auth", "ghp_0123456789hunter2"), command("--auth", "{{config.argument-2}}")},
		{run("postgresql://u:hunter2@db/x"), command("{{config.argument-1}}")},
		{run("u:hunter2@tcp(db:3306)/x"), command("{{config.argument-1}}")},
		{run("--db=postgres://u:hunter2@db/x"), command("--db={{config.db}}")},
		{run("https://h/mcp?a=b&api_key=hunter2"), command("{{config.argument-1}}")},
		{run("--header", "Authorization: Bearer hunter2"), command("--header", "{{config.argument-2}}")},
		{run("--config", `{"a":{"apiKey":"hunter2"}}`), command("--config", "{{config.argument-2}}")},
		{
			map[string]any{"command": "docker", "args": []string{"run", "-i", "--rm", "example/x", "--password", "hunter2"}},
			command("--password", "{{config.password}}"),
		},
		{
			map[string]any{"command": "npx", "args": []string{"foo"}, "env": map[string]string{"DATABASE_URL": "postgres://u:hunter2@h/d", "LEVEL": "debug"}},
			catalog.Server{Secrets: secret("DATABASE_URL"), Env: []catalog.Variable{{Name: "LEVEL", Value: "debug"}}},
		},
		{
			map[string]any{"url": "https://h/mcp?team=a&api_key=hunter2"},
			catalog.Server{Remote: &catalog.Remote{URL: "https://h/mcp?team=a&api_key=${FOO_API_KEY}"}, Secrets: secret("FOO_API_KEY")},
		},
		{
			map[string]any{"url": "https://h/mcp", "headers": map[string]string{"X-Mine": "Bearer hunter2"}},
			catalog.Server{Remote: &catalog.Remote{URL: "https://h/mcp", Headers: map[string]string{"X-Mine": "${FOO_X_MINE}"}}, Secrets: secret("FOO_X_MINE")},
		},
		{
			map[string]any{"url": "https://h/sk-proj-A1b2C3d4hunter2/mcp"},
			catalog.Server{Unsupported: "has a secret in the path of its URL, where none can stand; give it in the query or in a header"},
		},
		{
			map[string]any{"command": "uvx", "args": []string{"--index-url", "https://u:hunter2@h/simple", "foo"}},
			catalog.Server{Unsupported: "names a registry of packages with a variable, a password or a token, which is not copied; " +
				"take it out, and set PIP_INDEX_URL in install.env of the configuration"},
		},
		{
			map[string]any{"command": "npx", "args": []string{"foo"}, "env": map[string]string{"npm_config_registry": "https://hunter2@h"}},
			catalog.Server{Unsupported: "names a registry of packages with a variable, a password or a token, which is not copied; " +
				"take it out, and set NPM_CONFIG_REGISTRY in install.env of the configuration"},
		},
		{
			map[string]any{"command": "npx", "args": []string{"git+https://u:hunter2@h/foo.git"}},
			catalog.Server{Unsupported: "names its package with a password or token, which is not copied"},
		},
	} {
		s := parseOne(t, tt.entry)
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(written), value) {
			t.Errorf("Parse(%v) = %s, want no %s in it", tt.entry, written, value)
		}
		got := catalog.Server{Command: s.Command, Env: s.Env, Unsupported: s.Unsupported}
		for _, asked := range s.Secrets {
			got.Secrets = append(got.Secrets, catalog.Secret{Env: asked.Env})
		}
		if s.Remote != nil {
			got.Remote = &catalog.Remote{URL: s.Remote.URL}
			if len(s.Remote.Headers) > 0 {
				got.Remote.Headers = s.Remote.Headers
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Parse(%v) (-want +got):\n%s", tt.entry, diff)
		}
		if asks := strings.Contains(strings.Join(s.Command, " "), "{{"); asks && (s.CheckSettings(nil) == nil || len(s.Remarks) == 0) {
			t.Errorf("Parse(%v) has no remark, or can be used without the value", tt.entry)
		}
	}
}

// What is no secret stays as it is.
func TestNotWithheld(t *testing.T) {
	for _, args := range [][]string{
		{"--token-limit", "100"},
		{"--max-tokens=4096"},
		{"--max-token", "100"},
		{"--api-key-file", "/home/ann/key", "--private-key", "/home/ann/id.pem", "--token", "~/token"},
		{"--no-token", "data"},
		{"--token", "--verbose"},
		{"--auth", "oauth", "--auth-type=bearer"},
		{"--sort-key", "name", "--project-key=DOCK"},
		{"@modelcontextprotocol/server-github@1.2.3", "sk-learn-tools-for-all", "task-0123456789abcdef"},
		{"postgresql://db:5432/x", "https://h:8080/a@b", "https://ann@h/x?page=2"},
		{"--header", "Accept: application/json"},
		{"--config", `{"region":"eu","tokens":5}`},
		{"--units=metric", "a=b", "key"},
		{"--use-api-key", "main"},
	} {
		s := parseOne(t, map[string]any{"command": "npx", "args": append([]string{"-y", "foo"}, args...)})
		if diff := cmp.Diff(args, s.Command); diff != "" || len(s.Remarks) > 0 {
			t.Errorf("Command (-want +got):\n%s remarks %v", diff, s.Remarks)
		}
	}
}
