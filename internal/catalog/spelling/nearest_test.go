package spelling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"demo", "fetch", "filesystem", "git", "github", "gitlab", "slack"}
	tests := []struct {
		name string
		want []string
	}{
		{"dmo", []string{"demo"}},
		{"demoo", []string{"demo"}},
		{"gitub", []string{"github", "git", "gitlab"}},
		{"filesystm", []string{"filesystem"}},
		{"FETCH", []string{"fetch"}},
		// Nothing is like it: one name is better than none, three are noise.
		{"xyzzyplugh", []string{"fetch"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, spelling.Nearest(tt.name, known)); diff != "" {
			t.Errorf("Nearest(%q) (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := spelling.Nearest("x", nil); len(got) != 0 {
		t.Errorf("Nearest(x) of nothing = %q, want nothing", got)
	}
}
