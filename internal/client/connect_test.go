package client_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/client"
)

const backup = ".dockgate-backup"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
}

// content returns a file's text, "-" if there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestConnect(t *testing.T) {
	c := find(t, "cursor")
	const (
		text  = "{ // mine\n  \"other\": [1,2]\n}\n"
		fresh = "{\n  \"mcpServers\": {\n    \"dockgate\": {\n      \"command\": \"dockgate\",\n      \"args\": [\"serve\"]\n    }\n  }\n}\n"
	)
	path := filepath.Join(t.TempDir(), "new", "mcp.json")
	step := func(what string, do func() (client.Change, error), outcome client.Outcome, kept bool) {
		t.Helper()
		want := client.Change{Client: "cursor", Path: path, Outcome: outcome}
		if kept {
			want.Backup = path + backup
		}
		if outcome != client.Unchanged {
			want.Next = c.Next
		}
		got, err := do()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	connect := func() (client.Change, error) { return c.Connect(path, command) }
	other := func() (client.Change, error) { return c.Connect(path, client.Command{Program: "other"}) }
	disconnect := func() (client.Change, error) { return c.Disconnect(path) }
	holds := func(file, kept string) {
		t.Helper()
		if got := content(t, path); got != file {
			t.Errorf("the file is %q, want %q", got, file)
		}
		if got := content(t, path+backup); got != kept {
			t.Errorf("the backup is %q, want %q", got, kept)
		}
	}

	step("disconnect nothing", disconnect, client.Unchanged, false)
	step("connect nothing", connect, client.Created, false)
	holds(fresh, "-")
	step("connect again", connect, client.Unchanged, false)
	step("connect with others", other, client.Changed, false)
	step("connect back", connect, client.Changed, false)
	holds(fresh, "-")
	step("disconnect", disconnect, client.Removed, false)
	holds("-", "-")

	write(t, path, text)
	step("connect", connect, client.Changed, true)
	connected := content(t, path)
	holds(connected, text)
	step("connect again", connect, client.Unchanged, false)
	holds(connected, text)
	step("connect with others", other, client.Changed, true)
	holds(content(t, path), text)
	step("disconnect", disconnect, client.Restored, false)
	holds(text, "-")

	// The client writes in between.
	step("connect", connect, client.Changed, true)
	written := "{\n  \"mcpServers\": {\"dockgate\": {\"command\": \"dockgate\", \"args\": [\"serve\"], \"disabled\": true}, \"b\": {}}\n}\n"
	write(t, path, written)
	step("connect what has more", connect, client.Unchanged, false)
	holds(written, text)
	step("disconnect", disconnect, client.Changed, true)
	holds("{\n  \"mcpServers\": {\"b\": {}}\n}\n", written)

	// A backup of its own for each state that is not ours.
	step("connect", connect, client.Changed, true)
	holds(content(t, path), "{\n  \"mcpServers\": {\"b\": {}}\n}\n")
	if got := names(t, filepath.Dir(path)); len(got) != 2 {
		t.Errorf("files = %q, want the configuration and its backup", got)
	}
}

func TestConnectKeepsFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither modes nor links for everybody")
	}
	dir := t.TempDir()
	real, link := filepath.Join(dir, "dotfiles.json"), filepath.Join(dir, "link", "mcp.json")
	write(t, real, "{}\n")
	if os.Getuid() == 0 { // as with sudo
		if err := os.Chown(real, 12345, 23456); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(real)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, "cursor").Connect(link, command); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != real {
		t.Errorf("Readlink = %q, %v, want %q", target, err, real)
	}
	for _, path := range []string{real, real + backup} {
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if after.Mode() != before.Mode() || owner(after) != owner(before) {
			t.Errorf("%s has %v %s, want %v %s", path, after.Mode(), owner(after), before.Mode(), owner(before))
		}
	}
	if got := names(t, filepath.Dir(link)); len(got) != 1 {
		t.Errorf("beside the link are %q, want nothing", got)
	}
}

func TestConnectRefuses(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	write(t, broken, "{\n  \"mcpServers\": {\n    \"a\" 1\n  }\n}\n")
	dangling := filepath.Join(dir, "dangling.json")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Skip(err)
	}
	c := find(t, "claude-desktop")
	before := names(t, dir)
	text := content(t, broken)
	for path, want := range map[string]string{
		broken:   broken + ":3: column 9: invalid character '1' after object name",
		dangling: dangling + " is a link to a file that does not exist",
		dir:      dir + " is no file of at most 64 MB",
	} {
		_, connected := c.Connect(path, command)
		_, disconnected := c.Disconnect(path)
		for what, err := range map[string]error{"Connect": connected, "Disconnect": disconnected, "State": c.State(path).Err} {
			if err == nil || err.Error() != want {
				t.Errorf("%s(%s) = %v, want %s", what, path, err, want)
			}
		}
	}
	if diff := cmp.Diff(before, names(t, dir)); diff != "" || content(t, broken) != text {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
	var wrong *client.FileError
	if err := c.State(broken).Err; !errors.As(err, &wrong) || wrong.Hint() == "" || wrong.Line != 3 {
		t.Errorf("State(broken) = %v, want a FileError with a hint", err)
	}
}

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	c := find(t, "codex")
	if got := c.State(path); got.Connected || got.Err != nil {
		t.Errorf("State(nothing) = %+v, want not connected", got)
	}
	write(t, path, "[mcp_servers.dockgate]\ncommand = \"x\"\n")
	if got := c.State(path); !got.Connected || got.Err != nil {
		t.Errorf("State = %+v, want connected", got)
	}
}
