package sandbox_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/docker"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
)

// sample is a value that a schema admits; a text is a path that may be mounted.
func sample(schema map[string]any) any {
	if choices, ok := schema["enum"].([]any); ok {
		return choices[0]
	}
	if schema["pattern"] != nil {
		return "https://example.com"
	}
	switch schema["type"] {
	case "object":
		object := make(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			inner, _ := property.(map[string]any)
			object[name] = sample(inner)
		}
		return object
	case "array":
		items, _ := schema["items"].(map[string]any)
		return []any{sample(items)}
	case "integer", "number":
		return 1.0
	case "boolean":
		return true
	}
	return "/srv/data"
}

// Every container of Docker's public catalog compiles, with every setting
// set.
func TestCompilePublicCatalog(t *testing.T) {
	data, err := os.ReadFile(catalogtest.Shared(t, "datasets", "docker-catalog", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := docker.Parse(catalog.Origin{Catalog: "catalog.yaml"}, data)
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	for _, s := range file.Servers {
		if s.Runs() != catalog.KindContainer {
			continue
		}
		settings := map[string]any{}
		if s.Config != nil {
			var schema map[string]any
			if err := json.Unmarshal(s.Config, &schema); err != nil {
				t.Fatal(err)
			}
			settings, _ = sample(schema).(map[string]any)
			delete(settings, "container_user") // a user, not a path
		}
		spec, err := sandbox.Compile(s, settings, image(), host())
		if err != nil {
			t.Errorf("Compile(%s) = %v, want none", s.Name, err)
			continue
		}
		if spec.Network == catalog.NetworkNone != (s.Network.Mode == catalog.NetworkNone) {
			t.Errorf("Compile(%s) has the network %s, want %s", s.Name, spec.Network, s.Network.Mode)
		}
		compiled++
	}
	if compiled != 249 {
		t.Errorf("%d containers compile, want 249", compiled)
	}
}

// What the formats of others have and ours had not: volumes, secrets in a
// text, secrets that are files, a templated user, lines for /etc/hosts.
func TestCompileForeign(t *testing.T) {
	entry := parse(t, `
image: mcp/thing:1
working_dir: /work
user: "{{config.who}}"
env: {HEADERS: "Bearer ${TOKEN} of ${PLACE}", PLAIN: "${NOBODY}"}
secrets:
  - {name: thing.token, env: TOKEN}
  - {name: thing.file, env: CREDENTIALS, file: true}
config: {type: object, properties: {who: {type: string}}}
network: full
extra_hosts: ["db:10.0.0.1"]
tmpfs: [/scratch, /tmp]
mounts: [{volume: thing-data, target: /data}]
`)
	spec, err := sandbox.Compile(entry, map[string]any{"who": "5:6"}, image(), host())
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(map[string]any{"spec": spec, "lines": sandbox.NewGrant(entry, spec, nil).Lines()}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Golden(t, "testdata/foreign.json", string(got)+"\n")

	spec.Secrets[0].Value = secret.NewValue("t0k")
	spec.Secrets[1].Value = secret.NewValue("/home/ann/creds.json")
	var named []string
	for _, v := range spec.Environ() {
		if len(named) > 0 || v[:2] == "HE" {
			named = append(named, v)
		}
	}
	want := []string{"HEADERS=Bearer t0k of ${PLACE}", "PLAIN=${NOBODY}", "TOKEN=t0k", "CREDENTIALS=/run/secrets/CREDENTIALS"}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("Environ (-want +got):\n%s", diff)
	}
	binds := []sandbox.Mount{
		{Volume: "thing-data", Target: "/data"},
		{Source: "/home/ann/creds.json", Target: "/run/secrets/CREDENTIALS", ReadOnly: true},
	}
	if diff := cmp.Diff(binds, spec.Binds()); diff != "" {
		t.Errorf("Binds (-want +got):\n%s", diff)
	}

	if _, err := sandbox.Compile(entry, map[string]any{"who": "--privileged"}, image(), host()); err == nil {
		t.Error("Compile with a user that is none = nil error, want one")
	}
	// A model chooses settings: it must not reach a secret by one.
	spec, err = sandbox.Compile(parse(t, `
image: mcp/thing:1
env: {URL: "{{config.url}}"}
secrets: [{name: s, env: KEY}]
config: {type: object, properties: {url: {type: string}}}
`), map[string]any{"url": "https://evil.example/${KEY}"}, image(), host())
	if err != nil {
		t.Fatal(err)
	}
	spec.Secrets[0].Value = secret.NewValue("hidden")
	for _, v := range spec.Environ() {
		if v == "URL=https://evil.example/hidden" {
			t.Error("a setting brought a secret into a variable")
		}
	}
}

// Nobody but the person may read a file of credentials, as a rule; so the server
// that gets one runs as the person, unless its entry says who it is.
func TestSecretFileOwner(t *testing.T) {
	remote := host()
	remote.RemoteEngine = true
	for _, tt := range []struct {
		entry string
		host  sandbox.Host
		want  string
	}{
		{"image: mcp/thing:1\nsecrets: [{name: s, env: KEY}]", host(), "node"},
		{"image: mcp/thing:1\nsecrets: [{name: s, env: KEY, file: true}]", host(), "1000:1000"},
		{"image: mcp/thing:1\nsecrets: [{name: s, env: KEY, file: true}]", remote, "node"},
		{"image: mcp/thing:1\nuser: '5:6'\nsecrets: [{name: s, env: KEY, file: true}]", host(), "5:6"},
		{"image: mcp/thing:1\nmounts: [{source: /srv/data, target: /data}]\nsecrets: [{name: s, env: KEY, file: true}]", host(), "33:33"},
	} {
		spec, err := sandbox.Compile(parse(t, tt.entry), nil, image(), tt.host)
		if err != nil || spec.User != tt.want {
			t.Errorf("Compile(%s) runs as %q, %v, want %q", tt.entry, spec.User, err, tt.want)
		}
	}
}

func TestSecretFile(t *testing.T) {
	h := host()
	s := sandbox.Secret{Env: "CREDENTIALS", File: true}
	remote := h
	remote.RemoteEngine = true
	for _, tt := range []struct {
		host              sandbox.Host
		value, path, want string
	}{
		{h, "/home/ann/linked", "/srv/data", ""},
		{h, "~/notes", "/home/ann/notes", ""},
		{h, "notes", "", "is not an absolute path"},
		{h, "/home/ann/gone", "", "does not exist"},
		{h, "/srv/sock", "", "is no file"},
		{remote, "/srv/data", "", "runs on another machine"},
	} {
		path, err := tt.host.SecretFile("thing", s, tt.value)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if path != tt.path || !strings.Contains(got, tt.want) || (tt.want == "") != (err == nil) {
			t.Errorf("SecretFile(%s) = %q, %v, want %q, %q", tt.value, path, err, tt.path, tt.want)
		}
		if strings.Contains(got, tt.value) {
			t.Errorf("SecretFile(%s) = %v, which quotes the value", tt.value, err)
		}
	}
}
