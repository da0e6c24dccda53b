package catalog_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
)

func mustParse(t *testing.T, name, text string) catalog.File {
	t.Helper()
	file, err := catalog.Parse(catalog.Origin{Catalog: name, Kind: catalog.User}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMerge(t *testing.T) {
	first := mustParse(t, "first", `
version: 1
servers:
  git: {image: first/git, network: full}
  time: {image: first/time}
cli_alternatives:
  git: {check_command: [git, --version]}
  aws: {check_command: [aws, --version]}
runtimes: {npx: {image: first/node}, uvx: {image: first/uv}}
`)
	second := mustParse(t, "second", `
version: 1
servers:
  git: {image: second/git}
  art: {image: second/art}
cli_alternatives:
  git: {check_command: [second-git]}
runtimes: {npx: {image: second/node}}
`)
	merged, notes := catalog.Merge(first, second)

	var images []string
	for _, s := range merged.Servers() {
		images = append(images, s.Image)
	}
	if diff := cmp.Diff([]string{"second/art", "second/git", "first/time"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	git, err := merged.Server("git")
	if err != nil || git.Network.Mode != catalog.NetworkNone {
		t.Errorf("Server(git) = %+v, %v, want nothing kept of the first one", git, err)
	}
	var programs []string
	for _, cli := range merged.CLIs() {
		programs = append(programs, cli.CheckCommand[0])
	}
	if diff := cmp.Diff([]string{"aws", "second-git"}, programs); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"npx": "second/node", "uvx": "first/uv", "deno": ""} {
		if got, ok := merged.Runtime(name); got.Image != want || ok != (want != "") {
			t.Errorf("Runtime(%s) = %q, %t, want %q", name, got.Image, ok, want)
		}
	}
	var lines []string
	for _, note := range notes {
		lines = append(lines, note.String())
	}
	want := []string{
		`server "git" of second:4 overrides the one of first:4`,
		`cli "git" of second:7 overrides the one of first:7`,
		`runtime "npx" of second:8 overrides the one of first:9`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestUnknownServer(t *testing.T) {
	merged, _ := catalog.Merge(mustParse(t, "c", `
version: 1
servers: {github: {image: a}, gitlab: {image: a}, postgres: {image: a}, brightdata-serp: {image: a}}
`))
	tests := []struct {
		name string
		want []string
	}{
		{"githbu", []string{"github", "gitlab"}},
		{"PostgreSQL", []string{"postgres"}},
		{"serp", []string{"brightdata-serp"}},
	}
	for _, tt := range tests {
		_, err := merged.Server(tt.name)
		var unknown *catalog.UnknownServerError
		if !errors.As(err, &unknown) {
			t.Fatalf("Server(%q) = %v, want an UnknownServerError", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, unknown.Nearest); diff != "" {
			t.Errorf("nearest to %q (-want +got):\n%s", tt.name, diff)
		}
	}
	_, err := merged.Server("githbu")
	if want := `unknown server "githbu"; nearest: github, gitlab`; err.Error() != want {
		t.Errorf("Server(githbu) = %v, want %s", err, want)
	}
	empty, _ := catalog.Merge()
	if _, err := empty.Server("x"); err == nil || err.Error() != `unknown server "x": the catalog is empty` {
		t.Errorf("Server(x) of an empty catalog = %v, want that it is empty", err)
	}
}
