package catalog_test

import (
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
)

func TestRefusal(t *testing.T) {
	mount := func(source, target string) []catalog.Mount { return []catalog.Mount{{Source: source, Target: target}} }
	tests := []struct {
		run  catalog.ToolRun
		want string
	}{
		{catalog.ToolRun{Command: []string{"{{arguments.args|into}}"}}, ""},
		{catalog.ToolRun{Mounts: mount("{{config.folder}}", "/data")}, ""},
		{catalog.ToolRun{Mounts: []catalog.Mount{{Volume: "v", Target: "/data"}}}, ""},
		{catalog.ToolRun{Mounts: mount("{{arguments.folder}}", "/data")}, "say what is mounted"},
		{catalog.ToolRun{Mounts: mount("/srv/{{arguments.name}}", "/data")}, "say what is mounted"},
		{catalog.ToolRun{Mounts: mount("/srv", "{{ arguments.place }}")}, "say what is mounted"},
		{catalog.ToolRun{Mounts: mount("/srv{{", "/data")}, "say what is mounted"},
		{catalog.ToolRun{Mounts: mount("/var/run/docker.sock", "/var/run/docker.sock")}, "the engine's socket"},
		{catalog.ToolRun{Mounts: mount("//var/run/docker.sock", "/s")}, "the engine's socket"},
		{catalog.ToolRun{Mounts: mount(`\\.\pipe\docker_engine`, "/s")}, "the engine's socket"},
		{catalog.ToolRun{User: "{{arguments.uid}}"}, "as whom it runs"},
		{catalog.ToolRun{User: "{{config.uid}}"}, ""},
	}
	for _, tt := range tests {
		got := tt.run.Refusal()
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("Refusal(%+v) = %q, want %q", tt.run, got, tt.want)
		}
	}
}
