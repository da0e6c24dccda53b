//go:build unix

package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/sandbox/host"
)

// A gateway in a container looks at the folders that it was told of, and takes
// nothing else for the host's, whichever way a link leads there.
func TestStatOutside(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, other := filepath.Join(root, "home"), filepath.Join(root, "other")
	for _, dir := range []string{filepath.Join(home, "notes"), other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"inner": "notes", "outer": other, "lost": filepath.Join(root, "nowhere", "x"), "dead": "gone",
	} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	around := outside.Host{Home: home, User: "1234:1234"}
	for path, want := range map[string]string{
		"home/notes": "home/notes", "home/inner": "home/notes", "home": "home",
		"other": "unseen other", "home/outer": "unseen other", "home/lost": "unseen nowhere/x", "home/lost/below": "unseen nowhere/x",
		"home/dead": "missing", "home/gone": "missing", "homeless": "unseen homeless",
	} {
		got, err := host.StatOutside(around, filepath.Join(root, path))
		var unseen *outside.UnseenError
		var text string
		switch {
		case errors.As(err, &unseen):
			text = "unseen " + relative(t, root, unseen.Path)
		case errors.Is(err, fs.ErrNotExist):
			text = "missing"
		case err != nil:
			t.Errorf("stat %s: %v", path, err)
		default:
			text = relative(t, root, got.Real)
		}
		if text != want {
			t.Errorf("stat %s = %s, want %s", path, text, want)
		}
	}
}

func relative(t *testing.T, root, path string) string {
	t.Helper()
	rest, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

// Where all that an engine shares seems to be root's, it is the user's.
func TestStatOutsideOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs files of several owners")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(root, "notes")
	if err := os.Mkdir(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		home, notes int
		user, want  string
	}{
		{0, 0, "1000:1000", "1000:1000"}, // shared by a virtual machine
		{0, 0, "", "0:0"},
		{0, 0, "0:0", "0:0"},
		{1000, 0, "1000:1000", "0:0"}, // really root's
		{1000, 1000, "1000:1000", "1000:1000"},
		{1000, 33, "1000:1000", "33:33"},
	} {
		if err := errors.Join(os.Chown(root, tt.home, tt.home), os.Chown(notes, tt.notes, tt.notes)); err != nil {
			t.Fatal(err)
		}
		got, err := host.StatOutside(outside.Host{Home: root, User: tt.user}, notes)
		if err != nil || got.Owner != tt.want {
			t.Errorf("owner with %+v = %s, %v, want %s", tt, got.Owner, err, tt.want)
		}
	}
}
