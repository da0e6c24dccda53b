package docker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/docker"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every field of the format is in this catalog; the golden has what becomes of
// each.
func TestParse(t *testing.T) {
	file, err := docker.Parse(catalog.Origin{Catalog: "catalog.yaml"}, read(t, "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Entries(t, "testdata/catalog.golden", file.Servers)
}

func TestMistakes(t *testing.T) {
	file, err := docker.Parse(catalog.Origin{Catalog: "mistakes.yaml"}, read(t, "mistakes.yaml"))
	if len(file.Servers) > 0 {
		t.Errorf("Parse(mistakes.yaml) returns %d servers, want none", len(file.Servers))
	}
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
}

func TestVersion(t *testing.T) {
	tests := []struct{ in, want string }{
		{"version: 4\nregistry: {}", `c:1: version: is "4", want 2 or 3`},
		{"version: 3", "c:1: registry: is missing"},
		{"registry: {x: {image: a}}", ""},
		{`{"version": 2, "registry": {"x": {"image": "a"}}}`, ""},
	}
	for _, tt := range tests {
		got := ""
		if _, err := docker.Parse(catalog.Origin{Catalog: "c"}, []byte(tt.in)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Parse(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestParseSource(t *testing.T) {
	for _, name := range []string{"source", "source-remote", "source-poci"} {
		file, err := docker.ParseSource(catalog.Origin{Catalog: name}, read(t, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		catalogtest.Entries(t, "testdata/"+name+".golden", file.Servers)
	}
	_, err := docker.ParseSource(catalog.Origin{Catalog: "server.yaml"}, read(t, "source-mistakes.yaml"))
	catalogtest.Mistakes(t, "testdata/source-mistakes.golden", err)
}

func TestLoadSources(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		folder := filepath.Join(dir, "servers", name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "server.yaml"), []byte("name: "+name+"\nabout: {title: T}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := docker.LoadSources(catalog.User, dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range file.Servers {
		got = append(got, s.Name+" "+s.Image)
	}
	if diff := cmp.Diff([]string{"one mcp/one", "two mcp/two"}, got); diff != "" {
		t.Errorf("LoadSources (-want +got):\n%s", diff)
	}
}

func TestLoadHome(t *testing.T) {
	if docker.IsHome(t.TempDir()) {
		t.Error("IsHome(empty folder) = true, want false")
	}
	if !docker.IsHome("testdata/home") {
		t.Error("IsHome(testdata/home) = false, want true")
	}
	file, err := docker.LoadHome(catalog.User, "testdata/home")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Image string
		Tools []string
		Place string
	}
	got := make(map[string]entry)
	for _, s := range file.Servers {
		got[s.Name] = entry{s.Image, s.EnabledTools, filepath.ToSlash(s.EnabledAt)}
	}
	want := map[string]entry{
		"files":  {"mcp/files:ours", []string{"read", "list"}, "testdata/home/tools.yaml:1"}, // the later catalog's
		"search": {"mcp/search", nil, ""},
		"quiet":  {"mcp/quiet", []string{}, "testdata/home/tools.yaml:2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LoadHome's servers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"search", "files"}, file.Enabled); diff != "" {
		t.Errorf("LoadHome's Enabled (-want +got):\n%s", diff)
	}
	settings := map[string]map[string]any{"files": {"paths": []any{"/a", "/b"}, "deep": map[string]any{"n": 1.0}}}
	if diff := cmp.Diff(settings, file.Settings); diff != "" {
		t.Errorf("LoadHome's Settings (-want +got):\n%s", diff)
	}
	for _, s := range file.Servers {
		if err := s.CheckSettings(file.Settings[s.Name]); err != nil {
			t.Errorf("CheckSettings(%s) = %v, want none", s.Name, err)
		}
	}
}

// The public catalog is other people's data, and is not everywhere.
func TestPublicCatalog(t *testing.T) {
	data, err := os.ReadFile(catalogtest.Shared(t, "datasets", "docker-catalog", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := docker.Parse(catalog.Origin{Catalog: "catalog.yaml"}, data)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, s := range file.Servers {
		got[string(s.Runs())]++
		if len(s.Secrets) > 0 {
			got["with secrets"]++
		}
		got["network "+string(s.Network.Mode)]++
	}
	want := map[string]int{
		"container": 249, "remote": 76, "tools": 3, "with secrets": 168,
		"network allow": 3, "network none": 3 + 76, "network full": 246,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the public catalog asks for (-want +got):\n%s", diff)
	}
	catalogtest.RoundTrip(t, file.Servers)
	for _, s := range file.Servers {
		if s.Name != "curl" {
			continue
		}
		var schema map[string]any // whole, as the catalog has it
		if err := json.Unmarshal(s.Tools[0].InputSchema, &schema); err != nil || schema["required"] == nil || schema["properties"] == nil {
			t.Errorf("curl's schema is %s, %v", s.Tools[0].InputSchema, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"catalog.yaml", "mistakes.yaml"} {
		catalogtest.Seed(f, filepath.Join("testdata", name), "registry")
	}
	f.Add("registry: {x: {image: a, volumes: ['{{x.a|volume|into}}:b'], config: [{name: y, properties: {a: {properties: {}}}}]}}")
	f.Add("registry: {x: {image: a, env: [{name: A, value: '{{x.a.b}}'}], command: ['{{x.a}}']}}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := docker.Parse(catalog.Origin{Catalog: "f"}, []byte(text))
		catalogtest.Check(t, text, file, err)
	})
}

func FuzzParseSource(f *testing.F) {
	for _, name := range []string{"source.yaml", "source-poci.yaml", "source-mistakes.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := docker.ParseSource(catalog.Origin{Catalog: "f"}, []byte(text))
		catalogtest.Check(t, text, file, err)
	})
}
