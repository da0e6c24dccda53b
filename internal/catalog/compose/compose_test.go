package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/compose"
)

func around(env map[string]string) catalog.Surroundings {
	return catalog.Surroundings{Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
}

// folder copies testdata into a folder of the same name on every machine, and
// goes there: Compose makes paths absolute.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestParse(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "compose.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := compose.Parse(t.Context(), catalog.Origin{Catalog: path}, data, around(map[string]string{"DB_PASSWORD": "s3cret", "SESSION_KEY": "k3y"}))
	if err != nil {
		t.Fatal(err)
	}
	written := catalogtest.RoundTrip(t, file.Servers)
	for _, hidden := range []string{"s3cret", "k3y", "hidden"} {
		if strings.Contains(string(written), hidden) {
			t.Errorf("an entry holds the value %q", hidden)
		}
	}
	catalogtest.Golden(t, "testdata/compose.golden", strings.ReplaceAll(string(written), dir, "/FOLDER"))
	for _, s := range file.Servers {
		if s.Name == "db-tools" && s.Origin.Line != 3 {
			t.Errorf("db-tools stands on line %d, want 3", s.Origin.Line)
		}
	}
}

func TestProfiles(t *testing.T) {
	dir := folder(t)
	file, err := compose.LoadFolder(t.Context(), catalog.User, dir, around(map[string]string{"COMPOSE_PROFILES": "extra,more", "DB_PASSWORD": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range file.Servers {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"db-tools", "listening", "off", "settings", "web"}, names); diff != "" {
		t.Errorf("servers with a profile (-want +got):\n%s", diff)
	}
}

// An override, an include and a .env file are read as Compose reads them.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"compose.yaml":          "include: [other.yaml]\nservices: {a: {image: 'example/a:${TAG}', x-mcp: {}}}",
		"compose.override.yaml": "services: {a: {command: [over]}}",
		"other.yaml":            "services: {b: {image: example/b, x-mcp: {title: B}}}",
		".env":                  "TAG=7\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := compose.LoadFolder(t.Context(), catalog.User, dir, around(nil))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range file.Servers {
		got = append(got, strings.Join(append([]string{s.Name, s.Title, s.Image}, s.Command...), " "))
	}
	if diff := cmp.Diff([]string{"a  example/a:7 over", "b B example/b"}, got); diff != "" {
		t.Errorf("LoadFolder (-want +got):\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	data, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = compose.Parse(t.Context(), catalog.Origin{Catalog: "mistakes.yaml"}, data, around(nil))
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
	for text, want := range map[string]string{
		"services: {a: {image: b}}":               "f:1: services: hold no MCP server: none has x-mcp or the label dockgate.mcp",
		"services: {a: {imagee: b, x-mcp: {}}}":   "f: is refused by Compose: ",
		"services: {a: {image: '${X:?', x-mcp: }": "f",
	} {
		if _, err := compose.Parse(t.Context(), catalog.Origin{Catalog: "f"}, []byte(text), around(nil)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	catalogtest.Seed(f, "testdata/compose.yaml", "services")
	catalogtest.Seed(f, "testdata/mistakes.yaml", "services")
	f.Add("services: {a: {image: b, x-mcp: {}, depends_on: [c]}, c: {image: d, depends_on: [a]}}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "include") || strings.Contains(text, "extends") || strings.Contains(text, "file") {
			t.Skip("reads other files")
		}
		file, err := compose.Parse(t.Context(), catalog.Origin{Catalog: "f"}, []byte(text), around(nil))
		catalogtest.Check(t, text, file, err)
	})
}

// A secret of the environment is in no command, though Compose would put it
// there: it is a setting. What stands in plain sight in the file stays.
func TestCommands(t *testing.T) {
	const value = "hunter2"
	env := map[string]string{"TOKEN": value, "DB_URL": "postgres://app:" + value + "@db/app", "LEVEL": "debug", "REDIS_PASSWORD": value}
	for _, tt := range []struct {
		service string
		want    []string // the command
	}{
		{`command: [--token, "${TOKEN}", --level=$LEVEL]`, []string{"--token", "{{config.TOKEN}}", "--level=debug"}},
		{`command: serve --header "X-Token $TOKEN"`, []string{"serve", "--header", "X-Token {{config.TOKEN}}"}},
		{`command: ["${DB_URL}", --api-key=plain, --password, simple]`, []string{"{{config.argument-1}}", "--api-key=plain", "--password", "simple"}},
		{`command: serve --password 'simple' --other`, []string{"serve", "--password", "simple", "--other"}},
		{`command: ["--password=${ABSENT_PASSWORD:-simple}"]`, []string{"--password=simple"}},
		{`command: ["--password=$$PASSWORD"]`, []string{"--password=$PASSWORD"}},
		{
			`x-mcp: {config: {type: object, required: [level], properties: {level: {enum: [1]}}}}, command: ["--level={{config.level}}", "$TOKEN"]`,
			[]string{"--level={{config.level}}", "{{config.TOKEN}}"},
		},
	} {
		text := "services: {a: {image: b, labels: [dockgate.mcp], " + tt.service + "}}"
		file, err := compose.Parse(t.Context(), catalog.Origin{Catalog: "compose.yaml"}, []byte(text), around(env))
		if err != nil {
			t.Errorf("Parse(%s) = %v", text, err)
			continue
		}
		s := file.Servers[0]
		if diff := cmp.Diff(tt.want, s.Command); diff != "" {
			t.Errorf("command of %s (-want +got):\n%s", tt.service, diff)
		}
		if asks := strings.Contains(strings.Join(s.Command, " "), "{{"); asks != (s.CheckSettings(nil) != nil) || s.Validate() != nil {
			t.Errorf("%s: asks for settings: %v, with %s, %v", tt.service, asks, s.Config, s.Validate())
		}
	}

	file, err := compose.Parse(t.Context(), catalog.Origin{Catalog: "compose.yaml"}, []byte(`services:
  a: {image: b, x-mcp: {}, environment: {URL: "${DB_URL}"}, depends_on: {cache: {condition: service_healthy}}}
  cache:
    image: redis
    command: redis-server --requirepass ${REDIS_PASSWORD}
    healthcheck: {test: ["CMD", "redis-cli", "-a", "${REDIS_PASSWORD}", "ping"]}
`), around(env))
	if err != nil {
		t.Fatal(err)
	}
	written := catalogtest.RoundTrip(t, file.Servers)
	if strings.Contains(string(written), value) || !strings.Contains(string(written), "{{config.REDIS_PASSWORD}}") || !strings.Contains(string(written), "ready: started") {
		t.Errorf("a helper with a secret in its command = %s", written)
	}
}
