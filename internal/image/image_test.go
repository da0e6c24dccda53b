package image_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/image"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
)

// An engine answers what a Resolver asks of one. What a tag stands for can be
// changed.
type engine struct {
	mu    sync.Mutex
	tag   string   // the digest that every tag stands for
	asked []string // what images were asked for, and pulled
}

func digest(n string) string { return "sha256:" + strings.Repeat(n, 64) }

func (e *engine) move(digest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tag = digest
}

// take returns what was asked since it was taken last.
func (e *engine) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := e.asked
	e.asked = nil
	return asked
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Ostype", "linux")
	w.Header().Set("Content-Type", "application/json")
	path := strings.TrimPrefix(r.URL.Path, "/v1.41/")
	e.mu.Lock()
	defer e.mu.Unlock()
	var answer any = map[string]any{}
	switch name, isImage := strings.CutPrefix(path, "images/"); {
	case path == "version":
		answer = map[string]any{"ApiVersion": "1.41", "Os": "linux", "Arch": "amd64"}
	case path == "images/create":
		from := r.URL.Query().Get("fromImage")
		e.asked = append(e.asked, "pull "+from)
	case isImage:
		name = strings.TrimSuffix(name, "/json")
		e.asked = append(e.asked, name)
		repository, exact, isExact := strings.Cut(name, "@")
		if !isExact {
			repository, _, _ = strings.Cut(name, ":")
			exact = e.tag
		}
		answer = map[string]any{
			"Id": exact, "RepoDigests": []string{repository + "@" + exact}, "Os": "linux", "Architecture": "amd64",
			"Config": map[string]any{"Cmd": []string{exact}},
		}
	}
	_ = json.NewEncoder(w).Encode(answer) // who does not get it says so
}

// open returns a Resolver beside an engine whose tags stand for 1.
func open(t *testing.T) (*image.Resolver, *engine) {
	t.Helper()
	e := &engine{tag: digest("1")}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	connected, err := docker.Connect(t.Context(), owner.Options{
		Options: reach.Options{Host: strings.Replace(server.URL, "http", "tcp", 1)},
		State:   "state", Dir: dir, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connected.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return again(t, image.Options{Store: db, Engine: connected, Logger: slog.New(slog.DiscardHandler)}), e
}

func again(t *testing.T, o image.Options) *image.Resolver {
	t.Helper()
	r, err := image.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What an engine said that it cannot enforce is known before it is asked again.
func TestUnenforced(t *testing.T) {
	r, _ := open(t)
	if got := r.Unenforced(); len(got) > 0 {
		t.Errorf("Unenforced() = %q before the engine was asked, want nothing", got)
	}
	if _, err := r.Ensure(t.Context(), "example/notes:1", nil); err != nil {
		t.Fatal(err)
	}
	got := r.Unenforced()
	if diff := cmp.Diff(got, again(t, r.Options).Unenforced()); len(got) == 0 || diff != "" {
		t.Errorf("Unenforced() = %q, and opened again (-want +got):\n%s", got, diff)
	}
}

// What a reference stood for when it was resolved is what is made present from
// then on, wherever its tag moves, until somebody updates it.
func TestResolvedOnce(t *testing.T) {
	r, e := open(t)
	const ref = "example/notes:1"
	if _, ok, err := r.Known(t.Context(), ref); ok || err != nil {
		t.Errorf("Known(%s) = %v, %v before it was resolved, want that it is not", ref, ok, err)
	}
	ensure := func(want string, wantAsked ...string) {
		t.Helper()
		got, err := r.Ensure(t.Context(), ref, nil)
		if err != nil || got.Pin.Digest != want || got.Pin.Kind != sandbox.RepoDigest || got.Ref != ref {
			t.Errorf("Ensure(%s) = %+v, %v, want it pinned to %s", ref, got, err, want)
		}
		if diff := cmp.Diff(wantAsked, e.take()); diff != "" {
			t.Errorf("asked of the engine (-want +got):\n%s", diff)
		}
	}
	named := "docker.io/" + ref
	ensure(digest("1"), named)
	e.move(digest("2"))
	ensure(digest("1"), "docker.io/example/notes@"+digest("1"))

	before, after, err := r.Update(t.Context(), ref, nil)
	if err != nil || before.Pin.Digest != digest("1") || after.Pin.Digest != digest("2") {
		t.Errorf("Update(%s) = %s, %s, %v, want from 1 to 2", ref, before.Pin.Digest, after.Pin.Digest, err)
	}
	if asked := e.take(); !slices.ContainsFunc(asked, func(s string) bool { return strings.HasPrefix(s, "pull ") }) {
		t.Errorf("Update(%s) asked %q, want a pull", ref, asked)
	}
	ensure(digest("2"), "docker.io/example/notes@"+digest("2"))
}
