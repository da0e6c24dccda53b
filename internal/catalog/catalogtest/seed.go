package catalogtest

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
)

// Seed gives a fuzz target each entry of a file, alone in the mapping that
// holds them: whole files are too large to be changed in a useful way.
func Seed(f *testing.F, path, holder string) {
	f.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // a test names it
	if err != nil {
		f.Fatal(err)
	}
	root := document.New(path).Open(data, "")
	if root == nil {
		f.Fatalf("%s cannot be read", path)
	}
	entries := document.Member(root, holder)
	if entries == nil || entries.Kind != yaml.MappingNode {
		f.Fatalf("%s has no %s", path, holder)
	}
	for i := 0; i+1 < len(entries.Content); i += 2 {
		seed, err := yaml.Marshal(map[string]any{holder: &yaml.Node{Kind: yaml.MappingNode, Content: entries.Content[i : i+2]}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(seed))
	}
}
