package sandbox_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/sandbox"
)

const helpersEntry = `
version: 1
servers:
  app:
    image: example/app
    config: {type: object, properties: {name: {type: string}}, required: [name]}
    limits: {memory: 64MB}
    helpers:
      - name: db
        image: example/db
        command: [postgres, -c, fsync=off]
        user: "70"
        env: {POSTGRES_DB: app}
        secrets: [{name: app.password, env: POSTGRES_PASSWORD, from: APP_PASSWORD, required: true}]
        mounts: [{volume: app-data, target: /var/lib/data}]
        limits: {memory: 128MB}
        ready: healthy
        health: {test: [pg_isready]}
      - {name: seed, image: example/db, ready: completed}
`

func TestHelpers(t *testing.T) {
	entry := boxOf(t, helpersEntry)
	pin := sandbox.Pin{Kind: sandbox.LocalID, Digest: "sha256:d", Platform: "linux/amd64"}
	images := map[string]sandbox.Image{"example/db": {Ref: "example/db", Pin: pin, Config: sandbox.ImageConfig{Cmd: []string{"seed"}}}}
	settings := map[string]any{"name": "x"}
	app := sandbox.Image{Ref: "example/app", Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:a", Platform: "linux/amd64"}, Config: sandbox.ImageConfig{Cmd: []string{"app"}}}
	spec, err := sandbox.Compile(entry, settings, app, sandbox.Host{})
	if err != nil {
		t.Fatal(err)
	}
	alone := spec.Digest()
	if spec.Helpers, err = sandbox.CompileHelpers(entry, settings, images, sandbox.Host{}); err != nil {
		t.Fatal(err)
	}
	if len(spec.Helpers) != 2 || spec.Helpers[0].Name != "db" || !spec.Helpers[0].Spec.NoInput || spec.Helpers[0].Spec.Server != "app" || spec.Digest() == alone {
		t.Errorf("CompileHelpers() = %+v, want both in their order, without input", spec.Helpers)
	}
	if got, want := spec.Reserved(), int64((64+128)<<20+sandbox.DefaultMemory); got != want {
		t.Errorf("Reserved() = %d, want %d", got, want)
	}
	grant := sandbox.NewGrant(entry, spec, nil)
	lines := grant.Lines()
	at := slices.IndexFunc(lines, func(line string) bool { return line[:7] == "helper:" })
	want := []string{
		"helper:    db, a container beside the server on a network of their own, waited for until healthy",
		"image:     db: example/db",
		"pinned:    db: sha256:d, linux/amd64 (local image, not from a registry)",
		"command:   db: postgres -c fsync=off",
		"user:      db: 70",
		"limits:    db: memory 128MiB, 1 cpus, 512 processes",
		"health:    db: pg_isready",
		"volume:    db: app-data at /var/lib/data (read and write)",
		"variable:  db: POSTGRES_DB=app",
		"secret:    db: POSTGRES_PASSWORD from APP_PASSWORD",
		"helper:    seed, a container beside the server on a network of their own, waited for until completed",
		"image:     seed: example/db",
		"pinned:    seed: sha256:d, linux/amd64 (local image, not from a registry)",
		"command:   seed: seed",
		"user:      seed: root (without capabilities)",
		"limits:    seed: memory 500MiB, 1 cpus, 512 processes",
	}
	if at < 0 {
		t.Fatalf("Lines() = %q, want helpers", lines)
	}
	if diff := cmp.Diff(want, lines[at:]); diff != "" {
		t.Errorf("Lines() (-want +got):\n%s", diff)
	}
	if !grant.Local() {
		t.Error("Local() = false, want true: a helper's image is of this engine only")
	}
	spec.Helpers = slices.Clone(spec.Helpers)
	spec.Helpers[1].Spec.Image.Pin.Digest = "sha256:other"
	if sandbox.NewGrant(entry, spec, nil).Digest() == grant.Digest() {
		t.Error("another image of a helper gives the same grant, want another one")
	}
}

func TestHelpersRefused(t *testing.T) {
	entry := boxOf(t, helpersEntry)
	_, err := sandbox.CompileHelpers(entry, map[string]any{"name": "x"}, map[string]sandbox.Image{}, sandbox.Host{})
	want := `server "app": helpers.seed.command: neither the entry nor the image has a command`
	if err == nil || err.Error() != want {
		t.Errorf("CompileHelpers() = %v, want %s", err, want)
	}
}
