package client_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/client"
)

// around is a machine with a few folders.
func around() catalog.Surroundings {
	there := []string{"/home/ann/notes", "/srv/data", "/srv/app", "/srv/app/pyproject.toml", "/srv/js/package.json"}
	return catalog.Surroundings{
		OS: "linux", Home: "/home/ann", Dir: "/work/project",
		Stat: func(path string) (fs.FileInfo, error) {
			if slices.Contains(there, path) {
				return nil, nil //nolint:nilnil // that it is there is all that is asked
			}
			return nil, fs.ErrNotExist
		},
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every way in which clients start servers is in these files; the goldens have
// what becomes of each.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, catalog string }{
		{"desktop.json", "claude_desktop_config.json"},
		{"vscode.json", "/work/project/.vscode/mcp.json"},
	} {
		file, err := client.Parse(catalog.Origin{Catalog: tt.catalog}, read(t, tt.name), around())
		if err != nil {
			t.Fatal(err)
		}
		catalogtest.Entries(t, "testdata/"+strings.TrimSuffix(tt.name, ".json")+".golden", file.Servers)
		if tt.name == "desktop.json" && (slices.Contains(file.Enabled, "wind") || !slices.Contains(file.Enabled, "github")) {
			t.Errorf("Enabled = %v, want all but wind", file.Enabled)
		}
	}
}

// An entry that clients pass over keeps no other from being read.
func TestEmptyEntry(t *testing.T) {
	file, err := client.Parse(catalog.Origin{Catalog: "mcp.json"}, []byte(`{"mcpServers": {"empty": {"args": []}, "git": {"command": "uvx", "args": ["a"]}, "gem": {"httpUrl": "https://example.com/sse"}}}`), around())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range file.Servers {
		got[s.Name] = string(s.Runs()) + " " + s.Unsupported
		if s.Remote != nil {
			got[s.Name] += s.Remote.Transport
		}
	}
	want := map[string]string{"empty": "unsupported names neither a command nor a url", "git": "program ", "gem": "remote streamable-http"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

// The gateway itself is no server behind it, in either of its forms.
func TestOwnEntry(t *testing.T) {
	for _, own := range []string{
		`{"command": "/usr/bin/dockgate", "args": ["serve", "--share"]}`,
		`{"command": "docker", "args": ["run", "-i", "--rm", "-v", "dockgate:/data", "dockgate/gateway", "serve"]}`,
	} {
		file, err := client.Parse(catalog.Origin{Catalog: "mcp.json"}, []byte(`{"mcpServers": {"dockgate": `+own+`}}`), around())
		if err != nil || len(file.Servers) > 0 || len(file.Enabled) > 0 {
			t.Errorf("Parse(%s) = %v, %v, want no server", own, file.Servers, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	_, err := client.Parse(catalog.Origin{Catalog: "mistakes.json"}, read(t, "mistakes.json"), around())
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
	_, err = client.ParseCustom(catalog.Origin{Catalog: "custom.yaml"}, read(t, "custom-mistakes.yaml"), around())
	catalogtest.Mistakes(t, "testdata/custom-mistakes.golden", err)
	_, err = client.Parse(catalog.Origin{Catalog: "x.json"}, []byte("{\n\"mcpServers\": {\n}"), around())
	if want := "x.json:3: is not JSON"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Parse(cut off) = %v, want %s", err, want)
	}
}

func TestParseCustom(t *testing.T) {
	for _, name := range []string{"custom", "discovery"} {
		file, err := client.ParseCustom(catalog.Origin{Catalog: name}, read(t, name+".yaml"), around())
		if err != nil {
			t.Fatal(err)
		}
		catalogtest.Entries(t, "testdata/"+name+".golden", file.Servers)
	}
}

// A client keeps the servers of many projects; those of this one are taken.
func TestProjects(t *testing.T) {
	file, err := client.Parse(catalog.Origin{Catalog: ".claude.json"}, []byte(`{
		"mcpServers": {"mine": {"command": "uvx", "args": ["a"]}},
		"projects": {"/work/project": {"mcpServers": {"here": {"command": "node", "args": ["x.js"]}}}, "/else": {"mcpServers": {"there": {"command": "uvx", "args": ["b"]}}}}
	}`), around())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range file.Servers {
		got = append(got, s.Name+" "+s.Program.String())
	}
	if diff := cmp.Diff([]string{"mine uvx a", "here node /work/project/x.js"}, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestPlaces(t *testing.T) {
	env := map[string]string{"APPDATA": `C:\Users\ann\AppData\Roaming`}
	for _, tt := range []struct {
		kind client.Type
		os   string
		want []string
	}{
		{client.DockerMCP, "linux", []string{"/home/ann/.docker/mcp-servers.json"}},
		{client.ClaudeDesktop, "darwin", []string{"/home/ann/Library/Application Support/Claude/claude_desktop_config.json"}},
		{client.ClaudeDesktop, "windows", []string{`C:\Users\ann\AppData\Roaming/Claude/claude_desktop_config.json`}},
		{client.ClaudeDesktop, "linux", []string{"/home/ann/.config/Claude/claude_desktop_config.json"}},
		{client.ClaudeCode, "linux", []string{"/home/ann/.claude.json", "/work/project/.mcp.json"}},
		{client.Windsurf, "linux", []string{"/home/ann/.windsurf/mcp.json", "/home/ann/.codeium/windsurf/mcp_config.json"}},
		{client.Cursor, "linux", []string{"/home/ann/.cursor/mcp.json", "/work/project/.cursor/mcp.json"}},
		{client.VSCode, "linux", []string{"/home/ann/.config/Code/User/mcp.json", "/work/project/.vscode/mcp.json"}},
	} {
		here := around()
		here.OS = tt.os
		here.Env = func(name string) (string, bool) { value, ok := env[name]; return value, ok }
		if diff := cmp.Diff(tt.want, client.Places(tt.kind, here)); diff != "" {
			t.Errorf("Places(%s on %s) (-want +got):\n%s", tt.kind, tt.os, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	catalogtest.Seed(f, "testdata/desktop.json", "mcpServers")
	catalogtest.Seed(f, "testdata/mistakes.json", "mcpServers")
	f.Add(string(read(f, "vscode.json")))
	f.Add(`{"mcpServers": {"x": {"command": "docker", "args": ["run", "-v", ":", "--mount", "=,", "-e", "=", "a"]}}}`)
	f.Add(`{"mcpServers": {"x": {"url": "http://x", "headers": {"": "${A", "Key": "{{"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := client.Parse(catalog.Origin{Catalog: "f"}, []byte(text), around())
		catalogtest.Check(t, text, file, err)
	})
}

func FuzzParseCustom(f *testing.F) {
	for _, name := range []string{"custom.yaml", "discovery.yaml", "custom-mistakes.yaml"} {
		f.Add(string(read(f, name)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := client.ParseCustom(catalog.Origin{Catalog: "f"}, []byte(text), around())
		catalogtest.Check(t, text, file, err)
	})
}
