package client_test

import (
	"encoding/json"
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
