package native_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/native"
)

// Every field of the native format, read, written, and read again.
func TestEncode(t *testing.T) {
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := catalog.Parse(catalog.Origin{Catalog: "everything.yaml"}, data)
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Entries(t, "testdata/everything.golden", file.Servers)
	var kinds []catalog.Kind
	for _, s := range file.Servers {
		kinds = append(kinds, s.Runs())
	}
	want := []catalog.Kind{
		catalog.KindContainer, catalog.KindProgram, catalog.KindProgram, catalog.KindProgram, catalog.KindProgram,
		catalog.KindExec, catalog.KindRemote, catalog.KindTools, catalog.KindUnsupported,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("Runs (-want +got):\n%s", diff)
	}
}

// Mistakes in the fields that say what is run.
func TestMistakesOfKinds(t *testing.T) {
	data, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = catalog.Parse(catalog.Origin{Catalog: "kinds.yaml"}, data)
	catalogtest.Mistakes(t, "testdata/kinds.golden", err)
}

func TestAdd(t *testing.T) {
	origin := catalog.Origin{Catalog: "own.yaml", Kind: catalog.User}
	fresh := []catalog.Server{{Name: "a", Image: "example/a"}, {Name: "b", Image: "example/b"}}
	tests := []struct {
		name, in, want string
		kept           []string
	}{
		{"new", "", "version: 1\nservers:\n  a:\n    image: example/a\n  b:\n    image: example/b\n", nil},
		{"no servers", "version: 1\n", "version: 1\nservers:\n  a:\n    image: example/a\n  b:\n    image: example/b\n", nil},
		{"empty servers", "version: 1\nservers:\n", "version: 1\nservers:\n  a:\n    image: example/a\n  b:\n    image: example/b\n", nil},
		{"braces", "version: 1\nservers: {}\n", "version: 1\nservers:\n  a:\n    image: example/a\n  b:\n    image: example/b\n", nil},
		{
			"comments", "# Mine\nversion: 1\nservers:\n  # The best\n  a: {image: mine/a} # really\n",
			"# Mine\nversion: 1\nservers:\n  # The best\n  a: {image: mine/a} # really\n  b:\n    image: example/b\n",
			[]string{"a"},
		},
	}
	for _, tt := range tests {
		got, kept, err := native.Add(origin, []byte(tt.in), fresh)
		if err != nil {
			t.Fatalf("%s: Add = %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s: Add (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.kept, kept); diff != "" {
			t.Errorf("%s: Add keeps (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, _, err := native.Add(origin, []byte("servers: {x: {}}"), fresh); err == nil || !strings.Contains(err.Error(), "own.yaml:1: version: is missing") {
		t.Errorf("Add to a broken file = %v, want its problems", err)
	}
	if _, _, err := native.Add(origin, nil, []catalog.Server{{Name: "x y", Image: "a"}}); err == nil {
		t.Error("Add of a broken entry = nil error, want one")
	}
}
