package sandbox_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const toolsEntry = `
version: 1
servers:
  box:
    user: "1000"
    network: full
    env: {MODE: "{{config.mode}}"}
    config: {type: object, properties: {mode: {type: string}, folder: {type: string}}}
    limits: {memory: 64MB}
    mounts: [{source: "{{config.folder}}", target: /data, read_only: true}]
    tools:
      - name: fetch
        description: Fetches <all>
        inputSchema: {type: object, properties: {args: {type: array, items: {type: string}}}, x-own: [1]}
        run: {image: example/fetch, command: ["--mode", "{{config.mode}}", "{{arguments.args|into}}"]}
      - name: own
        inputSchema: {type: object, properties: {n: {type: number}}}
        run: {image: example/own, entrypoint: [/own, "-n={{arguments.n}}"], user: "0"}
      - name: open
        inputSchema: {type: object, properties: {path: {type: string}}}
        run: {image: example/fetch, mounts: [{source: "{{arguments.path}}", target: /in}]}
      - name: engine
        run: {image: docker, mounts: [{source: /var/run/docker.sock, target: /var/run/docker.sock}]}
`

func boxOf(t *testing.T, source string) catalog.Server {
	t.Helper()
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return file.Servers[0]
}

func toolImages() map[string]sandbox.Image {
	pin := func(digest string, kind sandbox.PinKind) sandbox.Pin {
		return sandbox.Pin{Kind: kind, Digest: "sha256:" + digest, Platform: "linux/amd64"}
	}
	return map[string]sandbox.Image{
		"example/fetch": {Ref: "example/fetch", Pin: pin("f", sandbox.RepoDigest), Config: sandbox.ImageConfig{
			Entrypoint: []string{"/fetch {{"}, Cmd: []string{"--help"}, User: "nobody", WorkingDir: "/work", Volumes: []string{"/data", "/cache"},
		}},
		"example/own": {Ref: "example/own", Pin: pin("o", sandbox.LocalID), Config: sandbox.ImageConfig{Cmd: []string{"--help"}}},
	}
}

func compileBox(t *testing.T, settings map[string]any) (sandbox.Spec, error) {
	t.Helper()
	host := sandbox.Host{Stat: func(path string) (sandbox.HostPath, error) {
		return sandbox.HostPath{Real: path, Owner: "500:500", Folder: true}, nil
	}}
	return sandbox.CompileTools(boxOf(t, toolsEntry), settings, toolImages(), host)
}

func TestCompileTools(t *testing.T) {
	spec, err := compileBox(t, map[string]any{"mode": "slow", "folder": "/srv/data"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range spec.Runs {
		names = append(names, r.Tool)
	}
	if diff := cmp.Diff([]string{"fetch", "own"}, names); diff != "" {
		t.Fatalf("tools (-want +got):\n%s", diff)
	}
	want := `{"name":"fetch","description":"Fetches <all>","inputSchema":{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"}}},"x-own":[1]}}`
	var got, wanted any
	if json.Unmarshal(spec.Runs[0].Definition, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil || !cmp.Equal(got, wanted) ||
		!strings.Contains(string(spec.Runs[0].Definition), "<all>") {
		t.Errorf("definition = %s, want %s", spec.Runs[0].Definition, want)
	}
	mounts := []sandbox.Mount{{Source: "/srv/data", Target: "/data", ReadOnly: true}}
	if diff := cmp.Diff(mounts, spec.Runs[0].Mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	places := []sandbox.Tmpfs{{Target: "/tmp", Size: sandbox.DefaultTmp}, {Target: "/cache", Size: sandbox.DefaultTmp}}
	if diff := cmp.Diff(places, spec.Runs[0].Tmpfs); diff != "" {
		t.Errorf("writable places (-want +got):\n%s", diff)
	}
	if got, want := spec.Reserved(), int64(sandbox.RunsAtOnce*64<<20); got != want {
		t.Errorf("Reserved() = %d, want %d", got, want)
	}
	other, err := compileBox(t, map[string]any{"mode": "fast", "folder": "/srv/data"})
	if err != nil || other.Digest() == spec.Digest() || other.Program() != spec.Program() {
		t.Errorf("other settings give %s of %s, %v, want another Spec of the same program", other.Digest(), other.Program(), err)
	}
}

func TestGrantOfTools(t *testing.T) {
	spec, err := compileBox(t, map[string]any{"mode": "slow", "folder": "/srv/data"})
	if err != nil {
		t.Fatal(err)
	}
	grant := sandbox.NewGrant(boxOf(t, toolsEntry), spec, nil)
	want := []string{
		"source:    local, a container for each call of a tool",
		"limits:    memory 64MiB, shared memory 64MiB, 1 cpus, 512 processes, for each call; 2 calls at once",
		"network:   full",
		"image:     fetch: example/fetch",
		"pinned:    fetch: sha256:f, linux/amd64",
		`command:   fetch: "/fetch {{" --mode {{config.mode}} {{arguments.args|into}}`,
		"user:      fetch: 1000",
		"mount:     fetch: /srv/data at /data (read only)",
		"image:     own: example/own",
		"pinned:    own: sha256:o, linux/amd64 (local image, not from a registry)",
		"command:   own: /own -n={{arguments.n}}",
		"user:      own: root (without capabilities)",
		"mount:     own: /srv/data at /data (read only)",
		"left out:  open: its arguments, which the model chooses, would say what is mounted",
		"left out:  engine: it mounts the engine's socket, which is the right to everything on this machine",
		`setting:   folder = "/srv/data"`,
		`setting:   mode = "slow"`,
		"variable:  MODE=slow",
	}
	if diff := cmp.Diff(want, grant.Lines()); diff != "" {
		t.Errorf("Lines() (-want +got):\n%s", diff)
	}
	if !grant.Local() {
		t.Error("Local() = false, want true: an image is of this engine only")
	}
	var again sandbox.Grant
	encoded, err := json.Marshal(grant)
	if err != nil || json.Unmarshal(encoded, &again) != nil || again.Digest() != grant.Digest() {
		t.Errorf("a grant that was kept has the digest %s, want %s", again.Digest(), grant.Digest())
	}
	for name, change := range map[string]func(*sandbox.Spec){
		"pin":     func(s *sandbox.Spec) { s.Runs[1].Image.Pin.Digest = "sha256:x" },
		"command": func(s *sandbox.Spec) { s.Runs[0].Command = []string{"--other"} },
		"mount":   func(s *sandbox.Spec) { s.Runs[0].Mounts = nil },
		"setting": func(s *sandbox.Spec) { s.Settings = nil },
	} {
		changed := spec
		changed.Runs = slices.Clone(spec.Runs)
		change(&changed)
		if sandbox.NewGrant(boxOf(t, toolsEntry), changed, nil).Digest() == grant.Digest() {
			t.Errorf("another %s gives the same grant, want another one", name)
		}
	}
}

func TestCompileToolsRefuses(t *testing.T) {
	_, err := sandbox.CompileTools(boxOf(t, `
version: 1
servers:
  box:
    tools:
      - {name: a, run: {image: a, mounts: [{source: /etc, target: /etc}]}}
      - {name: b, run: {image: b}}
`), nil, map[string]sandbox.Image{"a": {Config: sandbox.ImageConfig{Cmd: []string{"a"}}}}, sandbox.Host{})
	want := "server \"box\": tools[0].run.mounts[0].source: /etc is never mounted: a system folder (/etc)\n" +
		"server \"box\": tools[1].run.command: neither the tool nor its image has a command"
	if err == nil || err.Error() != want {
		t.Errorf("CompileTools() = %v, want %s", err, want)
	}
}

func TestCall(t *testing.T) {
	spec, err := compileBox(t, map[string]any{"mode": "{{arguments.args|into}}"})
	if err != nil {
		t.Fatal(err)
	}
	call, err := spec.Call(spec.Runs[0], map[string]any{"args": []any{"-o", "{{config.mode}}", ""}})
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(call.Entrypoint, call.Command)
	want := []string{"/fetch {{", "--mode", "{{arguments.args|into}}", "-o", "{{config.mode}}", ""}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if call.Network != catalog.NetworkFull || call.User != "1000" || !call.NoInput || len(call.Runs) > 0 || call.Image.Pin != spec.Runs[0].Image.Pin {
		t.Errorf("Call() = %+v, want the tool's own container", call)
	}
	if eof, _ := call.Ladder(); eof != 0 {
		t.Errorf("Ladder() waits %v for a container without input, want 0", eof)
	}
	for _, arguments := range []map[string]any{
		{"args": []any{map[string]any{}}},
		{"args": "a\x00b"},
	} {
		var refused *sandbox.CompileError
		if call, err := spec.Call(spec.Runs[0], arguments); !errors.As(err, &refused) {
			t.Errorf("Call(%q) = %q, %v, want a CompileError", arguments, call.Command, err)
		}
	}
}

// Whatever the model writes, it stays a word of the command line.
func FuzzCall(f *testing.F) {
	f.Add("x")
	f.Add("{{config.mode}}")
	f.Add("--user=root;$(id)")
	run := sandbox.Run{Command: []string{"tool", "{{arguments.a}}", "-x={{arguments.a}}"}}
	f.Fuzz(func(t *testing.T, a string) {
		call, err := sandbox.Spec{Settings: map[string]any{"mode": "secret"}}.Call(run, map[string]any{"a": a})
		if strings.ContainsRune(a, 0) != (err != nil) {
			t.Fatalf("Call(%q) = %v, want an error for NUL characters alone", a, err)
		}
		if diff := cmp.Diff([]string{"tool", a, "-x=" + a}, call.Command); err == nil && diff != "" {
			t.Errorf("Call(%q) (-want +got):\n%s", a, diff)
		}
	})
}
