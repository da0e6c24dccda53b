package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/registry"
)

func around() catalog.Surroundings {
	known := map[string]catalog.Server{
		"postgres":   {Name: "postgres", Title: "Theirs", Image: "example/postgres", Origin: catalog.Origin{Catalog: "built-in"}, Isolation: catalog.Shared, Network: catalog.Network{Mode: catalog.NetworkNone}},
		"playwright": {Name: "playwright", Image: "example/playwright", Origin: catalog.Origin{Catalog: "built-in"}, Isolation: catalog.Shared, Network: catalog.Network{Mode: catalog.NetworkFull}},
		"nobody":     {Name: "nobody", Unsupported: "not yet"},
	}
	return catalog.Surroundings{Home: "/home/ann", Dir: "/work", Known: func(name string) (catalog.Server, bool) {
		s, ok := known[name]
		return s, ok
	}}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	file, err := registry.Parse(catalog.Origin{Catalog: "registry.json"}, read(t, "registry.json"), around())
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Entries(t, "testdata/registry.golden", file.Servers)
}

func TestMistakes(t *testing.T) {
	_, err := registry.Parse(catalog.Origin{Catalog: "mistakes.json"}, read(t, "mistakes.json"), around())
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	if registry.IsFolder(dir) {
		t.Error("IsFolder(empty) = true, want false")
	}
	for name, text := range map[string]string{
		"a.json":   `{"x": {"installed": true, "image": "example/a"}, "y": {"installed": true, "image": "example/y"}}`,
		"b.JSON":   `{"x": {"installed": true, "image": "example/b"}}`,
		"note.txt": "nothing",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !registry.IsFolder(dir) {
		t.Error("IsFolder(registry) = false, want true")
	}
	file, err := registry.LoadFolder(catalog.User, dir, around())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range file.Servers {
		got = append(got, s.Name+" "+s.Image+" "+filepath.Base(s.Origin.Catalog))
	}
	if diff := cmp.Diff([]string{"y example/y a.json", "x example/b b.JSON"}, got); diff != "" {
		t.Errorf("LoadFolder (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "c.json"), []byte(`{"z": {"installed": 5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "c.json") + `:1: z.installed: is "5", want true or false`
	if _, err := registry.LoadFolder(catalog.User, dir, around()); err == nil || err.Error() != want {
		t.Errorf("LoadFolder with a mistake = %v, want %s", err, want)
	}
}

func TestPlaces(t *testing.T) {
	want := []string{"/home/ann/.mcp-server-registry", "/home/ann/.mcp/registry", "/work/.mcp-server-registry"}
	if diff := cmp.Diff(want, registry.Places(around())); diff != "" {
		t.Errorf("Places (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(read(f, "registry.json")))
	f.Add(string(read(f, "mistakes.json")))
	f.Add(`{"mcp-server-postgres": {"command": "mcp-server-postgres", "transport": "stdio"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := registry.Parse(catalog.Origin{Catalog: "f"}, []byte(text), around())
		catalogtest.Check(t, text, file, err)
	})
}
