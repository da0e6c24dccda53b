package sandbox_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// host is a machine with a few folders, some of them links.
func host() sandbox.Host {
	paths := map[string]sandbox.HostPath{
		"/home/ann":             {Real: "/home/ann", Owner: "1000:1000"},
		"/home/ann/work":        {Real: "/home/ann/work", Owner: "1000:1000"},
		"/home/ann/notes":       {Real: "/home/ann/notes", Owner: "1001:100"},
		"/home/ann/keys":        {Real: "/home/ann/.ssh", Owner: "1000:1000"},
		"/home/ann/all":         {Real: "/", Owner: "0:0"},
		"/home/ann/linked":      {Real: "/srv/data", Owner: "33:33"},
		"/srv/data":             {Real: "/srv/data", Owner: "33:33"},
		"/srv/sock":             {Real: "/srv/sock", Socket: true},
		"/tmp/engine":           {Real: "/var/run/docker.sock", Socket: true},
		"/home/ann/.sshbackup":  {Real: "/home/ann/.sshbackup", Owner: "1000:1000"},
		"/home/ann/.config/app": {Real: "/home/ann/.config/app", Owner: "1000:1000"},
	}
	return sandbox.Host{Home: "/home/ann", Stat: func(path string) (sandbox.HostPath, error) {
		found, ok := paths[path]
		if !ok {
			return sandbox.HostPath{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
		}
		return found, nil
	}}
}

func image() sandbox.Image {
	return sandbox.Image{
		Ref: "mcp/thing:1",
		Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + strings.Repeat("ab", 32), Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{
			Entrypoint: []string{"/bin/thing"}, Cmd: []string{"--default"}, User: "node", WorkingDir: "/app",
			Env: []string{"PATH=/bin"}, Volumes: []string{"/cache", "/data"},
		},
	}
}

func parse(t *testing.T, entry string) catalog.Server {
	t.Helper()
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(entry), "\n", "\n    ")
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte("version: 1\nservers:\n  thing:\n"+indented+"\n"))
	if err != nil {
		t.Fatalf("catalog.Parse: %v", err)
	}
	return file.Servers[0]
}

func TestCompileGolden(t *testing.T) {
	for _, tt := range []struct {
		name, entry string
		settings    map[string]any
	}{
		{"minimal", `image: mcp/thing:1`, nil},
		{"everything", `
title: Thing
image: mcp/thing:1
command: ["--level", "{{config.level}}", "{{config.paths|into}}"]
env: {LEVEL: "{{config.level}}", EMPTY: "{{config.nothing}}", HOME: /data}
config:
  type: object
  properties:
    level: {type: string}
    nothing: {type: string}
    paths: {type: array, items: {type: string}}
secrets:
  - {name: thing.key, env: KEY, from: THING_KEY, required: true, instructions: "Get it"}
  - {name: thing.opt, env: OPT}
network: {allow: ["db.example.com:5432"]}
mounts:
  - {source: "{{config.paths|into}}", target: "{{config.paths|into}}", read_only: true}
  - {source: ~/work, target: /data}
limits: {memory: 2GB, cpus: 1.5, pids: 1024, shm: 1GB, tmp: 64MB}
`, map[string]any{"level": "a b", "paths": []any{"/srv/data", "/home/ann/notes"}}},
		{"entrypoint", "image: mcp/thing:1\nentrypoint: [/bin/sh, -c]\nuser: \"0:0\"\nnetwork: public", nil},
		{"exec", "exec: {container: tools}\ncommand: [/srv/mcp, --stdio]\nenv: {LEVEL: high}\nsecrets: [{name: thing.key, env: KEY}]", nil},
		{"package", "program: {runtime: npx, package: \"@scope/thing\", version: \"1.2\"}\ncommand: [--fast]\nnetwork: full", nil},
		{"file", "program: {runtime: uvx, file: /home/ann/notes/tool/run.py, folder: /home/ann/notes}\ncommand: [--fast]", nil},
		{"writable", "image: mcp/thing:1\nmounts: [{source: /home/ann/linked, target: /out}]", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entry := parse(t, tt.entry)
			spec, err := sandbox.Compile(entry, tt.settings, image(), host())
			if err != nil {
				t.Fatalf("Compile: %v", err)
			}
			grant := sandbox.NewGrant(entry, spec, []string{"memory limits have no effect"})
			got, err := json.MarshalIndent(map[string]any{"spec": spec, "grant": grant, "lines": grant.Lines()}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", tt.name+".json")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Errorf("Compile(%s) differs from %s (-want +got):\n%s", tt.name, golden, diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	mount := func(source string) string {
		return "image: mcp/thing:1\nmounts: [{source: \"" + source + "\", target: /data}]"
	}
	for _, tt := range []struct{ name, entry, want string }{
		{"root", mount("/"), "mounts[0].source: / is never mounted: the whole file system"},
		{"etc", mount("/etc"), "a system folder (/etc)"},
		{"below etc", mount("/etc/ssl/../passwd"), "a system folder (/etc)"},
		{"dots", mount("/home/ann/work/../../../etc"), "a system folder (/etc)"},
		{"above run", mount("/var"), "it holds the system folder /var/run"},
		{"engine's files", mount("/var/lib/docker/volumes"), "a system folder (/var/lib/docker)"},
		{"socket by name", mount("/srv/docker.sock"), "the engine's socket"},
		{"socket by link", mount("/tmp/engine"), "it is a socket or a device"},
		{"socket", mount("/srv/sock"), "it is a socket or a device"},
		{"home", mount("~"), "it holds a whole home folder"},
		{"homes", mount("/home"), "it holds a whole home folder"},
		{"another's home", mount("/home/bob"), "a whole home folder"},
		{"a Mac's home", mount("/Users/bob/"), "a whole home folder"},
		{"root's home", mount("/root"), "a whole home folder"},
		{"keys", mount("~/.ssh"), "credentials (.ssh)"},
		{"below keys", mount("~/.ssh/id"), "credentials (.ssh)"},
		{"above keys", mount("~/.config"), "it holds the credentials in .config/gcloud"},
		{"another's keys", mount("/home/bob/.aws"), "credentials (.aws)"},
		{"browser", mount("/Users/bob/Library/Application Support/Google/Chrome/Default"), "credentials (Library/Application Support/Google/Chrome)"},
		{"our own state", mount("~/.local/state/dockgate"), "credentials (.local/state/dockgate)"},
		{"keys by link", mount("/home/ann/keys"), "it leads to /home/ann/.ssh, credentials (.ssh)"},
		{"root by link", mount("/home/ann/all"), "it leads to /, the whole file system"},
		{"relative", mount("work"), `"work" is not an absolute path`},
		{"missing", mount("/home/ann/gone"), "/home/ann/gone does not exist"},
		{"over proc", "image: mcp/thing:1\nmounts: [{source: /srv/data, target: /proc/self}]", "belongs to the container itself"},
		{"twice", "image: mcp/thing:1\nmounts: [{source: /srv/data, target: /d}, {source: /home/ann/work, target: /d/}]", "/d is mounted twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sandbox.Compile(parse(t, tt.entry), nil, image(), host())
			var refused *sandbox.CompileError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Compile = %v, want a CompileError with %q", err, tt.want)
			}
		})
	}
}

// What no setting can mend is mended where the entry stands.
func TestCompileErrorHint(t *testing.T) {
	const mounts = "image: mcp/thing:1\nmounts: [{source: /etc, target: /data}]"
	for _, tt := range []struct{ entry, want string }{
		{mounts, "change its entry in /home/ann/servers.yaml:3"},
		{mounts + "\nconfig: {type: object, properties: {dir: {type: string}}}", "change the settings with: dockgate add thing --set key=value"},
	} {
		entry := parse(t, tt.entry)
		entry.Name = "thing"
		entry.Origin = catalog.Origin{Catalog: "/home/ann/servers.yaml", Kind: catalog.User, Line: 3}
		_, err := sandbox.Compile(entry, nil, image(), host())
		var refused *sandbox.CompileError
		if !errors.As(err, &refused) || refused.Hint() != tt.want {
			t.Errorf("Compile(%s) = %v with hint %q, want %q", tt.entry, err, refused.Hint(), tt.want)
		}
	}
}

func TestCompileAllows(t *testing.T) {
	for _, source := range []string{"/home/ann/work", "~/work", "/srv/data", "/home/ann/.sshbackup", "~/.config/app", "/home/ann/linked"} {
		entry := parse(t, "image: mcp/thing:1\nmounts: [{source: \""+source+"\", target: /data, read_only: true}]")
		if _, err := sandbox.Compile(entry, nil, image(), host()); err != nil {
			t.Errorf("Compile with a mount of %s = %v, want none", source, err)
		}
	}
}

func TestCompileNamesEveryProblem(t *testing.T) {
	entry := parse(t, "image: mcp/thing:1\nmounts: [{source: /etc, target: /a}, {source: /srv/none, target: /b}, {source: x, target: /c}]")
	_, err := sandbox.Compile(entry, nil, image(), host())
	if got := strings.Count(err.Error(), "\n") + 1; got != 3 {
		t.Errorf("Compile = %v\nwith %d problems, want 3", err, got)
	}
}

func TestCompileForRemoteEngine(t *testing.T) {
	h := host()
	h.RemoteEngine = true
	_, err := sandbox.Compile(parse(t, "image: mcp/thing:1\nmounts: [{source: /srv/data, target: /data}]"), nil, image(), h)
	if err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("Compile = %v, want a refusal of host mounts", err)
	}
}

func TestCompileWithoutCommand(t *testing.T) {
	bare := image()
	bare.Config = sandbox.ImageConfig{}
	if _, err := sandbox.Compile(parse(t, "image: mcp/thing:1"), nil, bare, host()); err == nil {
		t.Error("Compile of an image without a command = nil error, want one")
	}
}

func TestCompileChecksSettings(t *testing.T) {
	entry := parse(t, "image: mcp/thing:1\nconfig: {type: object, properties: {n: {type: integer}}, required: [n]}")
	for _, settings := range []map[string]any{nil, {"n": "x"}, {"other": 1}} {
		if _, err := sandbox.Compile(entry, settings, image(), host()); err == nil {
			t.Errorf("Compile with settings %v = nil error, want one", settings)
		}
	}
	for _, settings := range []map[string]any{{"n": 1.0}, {"n": json.Number("9007199254740993")}} {
		if _, err := sandbox.Compile(entry, settings, image(), host()); err != nil {
			t.Errorf("Compile with settings %v = %v, want none", settings, err)
		}
	}
}

// Two Specs of one digest offer the same tools; a right more is another grant.
func TestDigests(t *testing.T) {
	compile := func(entry string, settings map[string]any) (sandbox.Spec, sandbox.Grant) {
		server := parse(t, entry)
		spec, err := sandbox.Compile(server, settings, image(), host())
		if err != nil {
			t.Fatal(err)
		}
		return spec, sandbox.NewGrant(server, spec, nil)
	}
	base := "image: mcp/thing:1"
	spec, grant := compile(base, nil)
	again, sameGrant := compile(base, nil)
	if spec.Digest() != again.Digest() || grant.Digest() != sameGrant.Digest() {
		t.Error("one entry compiled twice has two digests")
	}
	for _, entry := range []string{
		base + "\nnetwork: full", base + "\ncommand: [x]", base + "\nenv: {A: b}", base + "\nlimits: {memory: 1GB}",
		base + "\nmounts: [{source: /srv/data, target: /d}]", base + "\nsecrets: [{name: s, env: S}]", base + "\nuser: \"5\"",
	} {
		other, otherGrant := compile(entry, nil)
		if spec.Digest() == other.Digest() {
			t.Errorf("Digest of %q = that of %q", entry, base)
		}
		if grant.Digest() == otherGrant.Digest() {
			t.Errorf("grant's Digest of %q = that of %q", entry, base)
		}
		if len(sandbox.DiffGrants(grant, otherGrant)) == 0 {
			t.Errorf("DiffGrants(%q, %q) shows nothing", base, entry)
		}
	}
	// What the engine cannot enforce is approved with the rest.
	if sandbox.NewGrant(parse(t, base), spec, []string{"no limits"}).Digest() == grant.Digest() {
		t.Error("a grant that is not enforced has the digest of one that is")
	}
	// An entry that asks for a list is shown as more than it asks for.
	_, listed := compile(base+"\nnetwork: {allow: [\"a.example:443\"]}", nil)
	if text := strings.Join(listed.Lines(), "\n"); !strings.Contains(text, "full (list not yet enforced: a.example:443)") {
		t.Errorf("Lines = %s, want the list named as not enforced", text)
	}
}
