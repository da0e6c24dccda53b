package clients_test

import (
	"strings"
	"testing"

	"github.com/dockgate/dockgate/test/clients"
)

func TestInstall(t *testing.T) {
	paths, err := clients.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		script string
		args   []string
		want   string
	}{
		{"--version", nil, "v22."},
		{paths.Inspector, []string{"--cli", "--help"}, "--method"},
		{paths.Conformance, []string{"--help"}, "server"},
	}
	for _, tt := range tests {
		out, err := paths.Command(t.Context(), tt.script, tt.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s %s = %s, %v, want %q in it", tt.script, tt.args, out, err, tt.want)
		}
	}
}
