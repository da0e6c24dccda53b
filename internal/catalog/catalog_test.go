package catalog_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func parse(text string) (catalog.File, error) {
	return catalog.Parse(catalog.Origin{Catalog: "test.yaml", Kind: catalog.User}, []byte(text))
}

// parseServer parses a file with one entry, named x, of the given fields.
func parseServer(t *testing.T, fields string) catalog.Server {
	t.Helper()
	file, err := parse("version: 1\nservers:\n  x:\n    " + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\n    "))
	if err != nil {
		t.Fatal(err)
	}
	return file.Servers[0]
}

// Every kind of mistake stands in one file; the golden has a line for each.
func TestMistakes(t *testing.T) {
	for _, kind := range []catalog.OriginKind{catalog.User, catalog.Project} {
		data, err := os.ReadFile("testdata/mistakes.yaml")
		if err != nil {
			t.Fatal(err)
		}
		file, err := catalog.Parse(catalog.Origin{Catalog: "mistakes.yaml", Kind: kind}, data)
		var problems catalog.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("Parse(mistakes.yaml) = %v, want Problems", err)
		}
		if diff := cmp.Diff(catalog.File{}, file); diff != "" {
			t.Errorf("Parse(mistakes.yaml) returns something of the file (-want +got):\n%s", diff)
		}
		if problems.Hint() == "" {
			t.Error("Hint() is empty")
		}
		golden := filepath.Join("testdata", "mistakes."+string(kind)+".golden")
		got := err.Error() + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("problems of a %s file (-want +got):\n%s", kind, diff)
		}
	}
}

func TestNotACatalog(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "test.yaml: is empty; it must begin with: version: 1"},
		{"# nothing\n", "test.yaml: is empty; it must begin with: version: 1"},
		{"servers: {}", "test.yaml:1: version: is missing; it must be 1"},
		{"version: 2\nservers: {x: {image: y}}\nregistry: {}", `test.yaml:1: version: is "2", want 1`},
		{"\nversion: \"1.0\"\nsurprise: 1", `test.yaml:2: version: is "1.0", want 1`},
		{"- version", "test.yaml:1: is a list, want a mapping"},
		{"version", `test.yaml:1: is "version", want a mapping`},
		{"version: 1\n---\nversion: 1", "test.yaml:2: is a second document; a catalog has one"},
		{"version: 1\nservers: [", "test.yaml:2: is not YAML: did not find expected node content"},
		{"version: 1\nservers: {x: *nobody}", "test.yaml: is not YAML: unknown anchor 'nobody' referenced"},
		{"version: 1\nservers: 7", `test.yaml:2: servers: is "7", want a mapping`},
		{"version: 1\nservers: {x: 7}", `test.yaml:2: servers.x: is "7", want a mapping`},
		{"version: 1\nservers: {[a]: {image: b}}", "test.yaml:2: servers: has a key that is a list, want a name"},
		{"version: 1\nservers: {x: &x {image: y, config: {a: *x}}}", "test.yaml:2: servers.x.config"},
	}
	for _, tt := range tests {
		_, err := parse(tt.in)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Parse(%q) = %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse(`
version: 1
servers:
  postgres:
    title: PostgreSQL
    description: Query a database
    keywords: [postgres, sql]
    tags: [database]
    image: mcp/postgres:1.0
    entrypoint: [/bin/server]
    command: ["--dir", "{{config.dir}}", 8080]
    user: 1000:1000
    env: {MODE: "{{config.mode|or:ro}}", PORT: 5432, VERBOSE: no}
    config:
      type: object
      properties: {mode: {enum: [ro, rw]}, dir: {type: string}}
    secrets:
      - {name: postgres.url, env: URL, from: POSTGRES_URL, required: true, instructions: Ask your administrator}
    network: {allow: ["db.example.com:5432", "[::1]:5432"]}
    mounts:
      - {source: "{{config.dir}}", target: /data, read_only: true}
      - {source: ~/notes, target: /notes}
    limits: {memory: 500MB, cpus: 1.5, pids: 100, shm: 64m, tmp: 1GiB}
    timeouts: {start: 30s, list: 5s, call: 1m, call_max: 10m, idle: 5m, stop: 20s}
    isolation: principal
    auto_start: true
    tools:
      - {name: query, description: Run a query, inputSchema: {type: object, properties: {z: {}, a: {}}}}
  far:
    remote: {url: "https://example.com/mcp?k=${KEY}", transport: sse, headers: {X-Key: "${KEY}"}}
    secrets: [{name: far.key, env: KEY}]
  near:
    remote: {url: http://localhost:8080}
  later:
    unsupported: needs the npm package x
cli_alternatives:
  git: {keywords: [git], check_command: [git, --version], help_command: [git, --help], description: Git, prefer_mcp_for: [pull requests], examples: [git log]}
runtimes:
  npx: {image: node:22}
`)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) catalog.Origin {
		return catalog.Origin{Catalog: "test.yaml", Kind: catalog.User, Line: line}
	}
	none := catalog.Network{Mode: catalog.NetworkNone}
	want := catalog.File{
		Origin: at(0),
		Servers: []catalog.Server{
			{
				Name: "postgres", Title: "PostgreSQL", Description: "Query a database", Origin: at(4),
				Keywords: []string{"postgres", "sql"}, Tags: []string{"database"},
				Image: "mcp/postgres:1.0", Entrypoint: []string{"/bin/server"},
				Command: []string{"--dir", "{{config.dir}}", "8080"}, User: "1000:1000",
				Env:    []catalog.Variable{{"MODE", "{{config.mode|or:ro}}"}, {"PORT", "5432"}, {"VERBOSE", "no"}},
				Config: []byte(`{"type":"object","properties":{"mode":{"enum":["ro","rw"]},"dir":{"type":"string"}}}`),
				Secrets: []catalog.Secret{
					{Name: "postgres.url", Env: "URL", From: "POSTGRES_URL", Required: true, Instructions: "Ask your administrator"},
				},
				Network: catalog.Network{Mode: catalog.NetworkAllow, Allow: []string{"db.example.com:5432", "[::1]:5432"}},
				Mounts: []catalog.Mount{
					{Source: "{{config.dir}}", Target: "/data", ReadOnly: true},
					{Source: "~/notes", Target: "/notes"},
				},
				Limits: catalog.Limits{Memory: 500 << 20, CPUs: 1.5, PIDs: 100, Shm: 64 << 20, Tmp: 1 << 30},
				Timeouts: catalog.Timeouts{
					Start: 30 * time.Second, List: 5 * time.Second, Call: time.Minute, CallMax: 10 * time.Minute,
					Idle: 5 * time.Minute, Stop: 20 * time.Second,
				},
				Isolation: catalog.PerPrincipal, AutoStart: true,
				Tools: []catalog.ToolSnapshot{{
					Name: "query", Description: "Run a query",
					InputSchema: []byte(`{"type":"object","properties":{"z":{},"a":{}}}`),
				}},
			},
			{
				Name: "far", Origin: at(29), Network: none, Isolation: catalog.Shared,
				Remote: &catalog.Remote{
					URL: "https://example.com/mcp?k=${KEY}", Transport: catalog.SSE,
					Headers: map[string]string{"X-Key": "${KEY}"},
				},
				Secrets: []catalog.Secret{{Name: "far.key", Env: "KEY"}},
			},
			{
				Name: "near", Origin: at(32), Network: none, Isolation: catalog.Shared,
				Remote: &catalog.Remote{URL: "http://localhost:8080", Transport: catalog.StreamableHTTP},
			},
			{
				Name: "later", Origin: at(34), Network: none, Isolation: catalog.Shared,
				Unsupported: "needs the npm package x",
			},
		},
		CLIs: []catalog.CLI{{
			Name: "git", Description: "Git", Origin: at(37), Keywords: []string{"git"},
			CheckCommand: []string{"git", "--version"}, HelpCommand: []string{"git", "--help"},
			PreferMCPFor: []string{"pull requests"}, Examples: []string{"git log"},
		}},
		Runtimes: map[string]catalog.Runtime{"npx": {Image: "node:22", Origin: at(39)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

// YAML's aliases stand for what they point at, but cannot make a small file
// cost much memory.
func TestAliases(t *testing.T) {
	file, err := parse("version: 1\nservers:\n  a: &a {image: x, keywords: &k [one]}\n  b: {image: y, keywords: *k}\n  c: *a\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Servers[1].Keywords; len(got) != 1 || got[0] != "one" {
		t.Errorf("keywords of b = %q, want one", got)
	}
	if got := file.Servers[2].Image; got != "x" {
		t.Errorf("image of c = %q, want x", got)
	}

	bomb := "version: 1\nservers:\n  x:\n    image: y\n    config:\n      a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for _, level := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"} {
		next := string(level[0] + 1)
		bomb += "      a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+level+", ", 10), ", ") + "]\n"
	}
	if _, err := parse(bomb); err == nil || !strings.Contains(err.Error(), "is nested too deeply or too large") {
		t.Errorf("Parse(bomb) = %.200v, want an error", err)
	}
}

func TestValidate(t *testing.T) {
	good := catalog.Server{Name: "x", Image: "y", Origin: catalog.Origin{Catalog: "c.json", Line: 7}}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate(%+v) = %v, want nil", good, err)
	}
	tests := []struct {
		change func(*catalog.Server)
		want   string
	}{
		{func(s *catalog.Server) { s.Name = "" }, "c.json:7: is not a name"},
		{func(s *catalog.Server) { s.Image = "" }, "c.json:7: needs one of image, program, exec, remote and unsupported"},
		{func(s *catalog.Server) { s.Limits.PIDs = -1 }, "c.json:7: limits.pids: is negative"},
		{func(s *catalog.Server) { s.Limits.Memory = 1 << 20 }, "c.json:7: limits.memory: is less than 6MB"},
		{func(s *catalog.Server) { s.Limits.CPUs = -1 }, "c.json:7: limits.cpus: is -1"},
		{func(s *catalog.Server) { s.Timeouts.Idle = -1 }, "c.json:7: timeouts: has a negative duration"},
		{func(s *catalog.Server) { s.Timeouts.Stop = time.Minute }, "c.json:7: timeouts.stop: is 1m0s, want 30s at most"},
		{func(s *catalog.Server) { s.Network.Mode = "some" }, `c.json:7: network: is "some"`},
		{func(s *catalog.Server) { s.Network.Allow = []string{"a:1"} }, "c.json:7: network.allow: has hosts"},
		{func(s *catalog.Server) { s.Command = []string{"a\x00b"} }, "c.json:7: command[0]: holds a NUL character"},
		{func(s *catalog.Server) { s.Config = []byte(`[]`) }, "c.json:7: config: is not a JSON Schema"},
		{func(s *catalog.Server) { s.Env = []catalog.Variable{{"A", ""}, {"A", ""}} }, "c.json:7: env.A: is set twice"},
	}
	for _, tt := range tests {
		s := good
		tt.change(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Validate(%+v) = %v, want %s", s, err, tt.want)
		}
	}
}
