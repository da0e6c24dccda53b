package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/source"
)

func formats() []struct {
	in   string
	want source.Format
} {
	return []struct {
		in   string
		want source.Format
	}{
		{"version: 1\nservers: {x: {image: y}}", source.Native},
		{"servers: {}", source.Native},
		{"", source.Native},
		{"- a", source.Native},
		{"version: 3\nregistry: {x: {image: y}}", source.Docker},
		{`{"registry": {"x": {"image": "y"}}}`, source.Docker},
		{"name: x\nabout: {title: X}", source.DockerSource},
		{"name: x\nrun: {command: [a]}", source.DockerSource},
		{`{"mcpServers": {}}`, source.Client},
		{`{/* none */ "servers": {"x": {"command": "npx"}}, "inputs": []}`, source.Client},
		{`{"editor.fontSize": 5, "mcp": {"servers": {"x": {"url": "https://x"}}}}`, source.Client},
		{"version: \"1.0\"\nservers: {x: {command: npx}}", source.Manifest},
		{"version: 1.0\ncli_alternatives: {}", source.Manifest},
		{`{"x": {"capabilities": [], "command": "y"}}`, source.Registry},
		{`{"x": {"transport": "stdio"}, "y": {}}`, source.Native},
		{"services: {x: {image: y, x-mcp: {}}}", source.Compose},
		{`{"name": "a/b", "packages": []}`, source.Official},
		{`{"servers": [{"server": {"name": "a/b", "remotes": []}}], "metadata": {}}`, source.Official},
		{"servers: {x: {connection: {command: npx}}}", source.Custom},
		{"discovery: {servers: [{name: x, connection: {command: npx}}]}", source.Custom},
		{"servers: {x: {image: y, command: [a]}}", source.Native},
	}
}

func TestRecognize(t *testing.T) {
	for _, tt := range formats() {
		if got := source.Recognize("file", []byte(tt.in)); got != tt.want {
			t.Errorf("Recognize(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	load := func(path string) (catalog.File, error) {
		return source.Load(t.Context(), catalog.Project, path, catalog.Surroundings{})
	}
	missing := filepath.Join(dir, "missing.yaml")
	if _, err := load(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("Load(missing) = %v, want fs.ErrNotExist and the path", err)
	}
	var folder *source.FolderError
	if _, err := load(dir); !errors.As(err, &folder) || !strings.Contains(err.Error(), dir) || folder.Hint() == "" {
		t.Errorf("Load(folder) = %v, want a FolderError with the path and a hint", err)
	}
	path := filepath.Join(dir, "servers.yaml")
	for text, line := range map[string]int{
		"version: 1\nservers: {x: {image: y}}\n":                                        2,
		"version: 2\n\nregistry: {x: {image: y}}":                                       3,
		"{\n// a comment\n\"registry\": {\n\"x\": {\"image\": \"\\ud83d\\ude00y\",},}}": 4,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := load(path)
		if strings.Contains(text, "ud83d") { // a surrogate pair, which YAML has no word for
			want := path + ":4: registry.x.image: is \"\U0001F600y\", which is not an image"
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("Load(%q) = %v, want %s", text, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		want := catalog.Origin{Catalog: path, Kind: catalog.Project, Line: line}
		if diff := cmp.Diff(want, file.Servers[0].Origin); diff != "" {
			t.Errorf("Load(%q) has the origin (-want +got):\n%s", text, diff)
		}
	}
}

// A client's configuration names no server at first. It is one all the same,
// and stops nobody who reads every client's.
func TestClientsWithoutServers(t *testing.T) {
	for path, text := range map[string]string{
		"/home/ann/.claude.json":                              `{"numStartups": 3, "projects": {"/x": {"mcpServers": {}}}}`,
		"/home/ann/.cursor/mcp.json":                          "{}",
		"/home/ann/.config/Claude/claude_desktop_config.json": " \n",
		"/home/ann/.codeium/windsurf/mcp_config.json":         `{"mcpServers": null}`,
		"/work/project/.vscode/mcp.json":                      `{"inputs": [], "servers": {}}`,
		"/home/ann/.docker/mcp-servers.json":                  `{"mcpServers": {}}`,
		"/work/project/.mcp.json":                             "",
	} {
		file, err := source.Parse(t.Context(), catalog.Origin{Catalog: path}, []byte(text), catalog.Surroundings{Home: "/home/ann", Dir: "/work/project"})
		if err != nil || len(file.Servers) > 0 {
			t.Errorf("Parse(%s, %s) = %v, %v, want no server", path, text, file.Servers, err)
		}
	}
	for path, want := range map[string]string{
		"/home/ann/.cursor/mcp.json": "mcpServers: is a list, want a mapping",
		"/home/ann/servers.yaml":     "mcpServers: unknown field",
	} {
		_, err := source.Parse(t.Context(), catalog.Origin{Catalog: path}, []byte(`{"mcpServers": []}`), catalog.Surroundings{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s) of a list = %v, want %s", path, err, want)
		}
	}
}

func TestLoadFolders(t *testing.T) {
	home := filepath.Join(t.TempDir(), "mcp")
	if err := os.MkdirAll(filepath.Join(home, "catalogs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "catalogs", "a.yaml"), []byte("registry: {x: {image: y}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := source.Load(t.Context(), catalog.User, home, catalog.Surroundings{})
	if err != nil || len(file.Servers) != 1 {
		t.Errorf("Load(home of the toolkit) = %d servers, %v, want 1", len(file.Servers), err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "x", "server.yaml"), []byte("name: x\nabout: {}\nrun: {}\nmeta: 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = source.Load(t.Context(), catalog.User, folder, catalog.Surroundings{})
	if want := filepath.Join(folder, "x", "server.yaml") + ":4: meta: is \"5\", want a mapping"; err == nil || err.Error() != want {
		t.Errorf("Load(folder of sources) = %v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range formats() {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := source.Parse(t.Context(), catalog.Origin{Catalog: "f"}, []byte(text), catalog.Surroundings{})
		catalogtest.Check(t, text, file, err)
	})
}
