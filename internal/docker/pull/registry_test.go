package pull_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

// A hub is a real registry on loopback, which engines reach without TLS.
type hub struct {
	*httptest.Server
	user, password string // of basic authentication, if not empty
	// swap gives this digest's content for every other manifest asked for by
	// digest.
	swap atomic.Pointer[string]
	// pushed are the digests that were put there.
	pushed []string
}

func newHub(t *testing.T, user, password string) *hub {
	t.Helper()
	h := &hub{user: user, password: password}
	serve := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.user != "" {
			if user, password, _ := r.BasicAuth(); user != h.user || password != h.password {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
				return
			}
		}
		if before, _, ok := strings.Cut(r.URL.Path, "/manifests/sha256:"); ok && h.swap.Load() != nil {
			r.URL.Path = before + "/manifests/" + *h.swap.Load()
		}
		serve.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) host() string { return strings.TrimPrefix(h.URL, "http://") }

// push puts an image or an index there and returns its digest. What engines
// pull of it is removed after the test.
func (h *hub) push(t *testing.T, repository string, what remote.Taggable) string {
	t.Helper()
	ref, err := name.ParseReference(h.host()+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	options := []remote.Option{}
	if h.user != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: h.user, Password: h.password}))
	}
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(ref, what, options...)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, what, options...)
	}
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Head(ref, options...)
	if err != nil {
		t.Fatal(err)
	}
	h.pushed = append(h.pushed, descriptor.Digest.String())
	return descriptor.Digest.String()
}

// removeImages removes what the engine has of the hub when the test ends.
func (h *hub) removeImages(t *testing.T) {
	c := dockertest.API(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		list, err := c.ImageList(ctx, client.ImageListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		var names []string
		for _, image := range list.Items {
			for _, known := range append(image.RepoTags, image.RepoDigests...) {
				if strings.HasPrefix(known, h.host()+"/") {
					names = append(names, known)
				}
			}
		}
		// Some engines know an image whose tag has moved on by its digest only.
		for _, known := range append(names, h.pushed...) {
			if _, err := c.ImageRemove(ctx, known, client.ImageRemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) {
				t.Logf("image of the test stays: %v", err)
			}
		}
	})
}

// image is a small image for this machine whose content nobody else has.
func image(t *testing.T) v1.Image {
	t.Helper()
	made, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	given, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := given.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: []string{"/entry"}, Cmd: []string{"command"}, Env: []string{"A=1"}, User: "1:2", WorkingDir: "/w",
		Volumes: map[string]struct{}{"/b": {}, "/a": {}},
	}
	made, err = mutate.ConfigFile(made, config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestResolve(t *testing.T) {
	engine := dockertest.Require(t)
	hub := newHub(t, "", "")
	hub.removeImages(t)
	byTag := hub.push(t, "by-tag:1", image(t))
	byDigest := hub.push(t, "by-digest:1", image(t))
	byBoth := hub.push(t, "by-both:1", image(t))
	latest := hub.push(t, "no-tag:latest", image(t))
	tests := []struct{ ref, digest string }{
		{"/by-tag:1", byTag},
		{"/by-digest@" + byDigest, byDigest},
		{"/by-both:1@" + byBoth, byBoth},
		{"/no-tag", latest},
	}
	for _, tt := range tests {
		t.Run(tt.ref, func(t *testing.T) {
			ref := hub.host() + tt.ref
			var last pull.Progress
			got, err := engine.Resolve(t.Context(), ref, func(p pull.Progress) {
				if p.Done < last.Done {
					t.Errorf("progress goes back from %+v to %+v", last, p)
				}
				last = p
			})
			if err != nil {
				t.Fatalf("Resolve(%q) = %v", ref, err)
			}
			want := pull.Resolved{Pulled: true, Image: sandbox.Image{
				Ref: ref,
				Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: tt.digest, Platform: "linux/" + runtime.GOARCH},
				Config: sandbox.ImageConfig{
					Entrypoint: []string{"/entry"}, Cmd: []string{"command"}, Env: []string{"A=1"}, User: "1:2", WorkingDir: "/w",
					Volumes: []string{"/a", "/b"},
				},
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Resolve(%q) (-want +got):\n%s", ref, diff)
			}
			if last.Ref != ref || last.Layers != 2 || last.LayersDone != 2 || last.Done != last.Total {
				t.Errorf("last progress = %+v, want 2 layers of %s, all done", last, ref)
			}
			want.Pulled = false
			again, err := engine.Resolve(t.Context(), ref, func(pull.Progress) { t.Error("pulls what is here") })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, again); diff != "" {
				t.Errorf("Resolve(%q) again (-want +got):\n%s", ref, diff)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	engine := dockertest.Require(t)
	hub := newHub(t, "", "")
	hub.removeImages(t)
	hub.push(t, "here:1", image(t))
	foreign := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image(t), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}},
	})
	hub.push(t, "foreign:1", foreign)
	gone := newHub(t, "", "")
	goneHost := gone.host()
	gone.Close()
	missing := "sha256:" + strings.Repeat("ab", 32)
	tests := []struct {
		ref    string
		reason error
	}{
		{hub.host() + "/not-here:1", pull.ErrNotFound},
		{hub.host() + "/here:2", pull.ErrNotFound},
		{hub.host() + "/here@" + missing, pull.ErrNotFound},
		{hub.host() + "/foreign:1", pull.ErrNoPlatform},
		{goneHost + "/here:1", pull.ErrUnreachable},
		{missing, pull.ErrNotFound},
		{"lower/UPPER", pull.ErrReference},
		{"", pull.ErrReference},
	}
	for _, tt := range tests {
		for name, resolve := range map[string]func(context.Context, string, func(pull.Progress)) (pull.Resolved, error){
			"Resolve": engine.Resolve, "Latest": engine.Latest,
		} {
			got, err := resolve(t.Context(), tt.ref, nil)
			var imageErr *pull.Error
			if !errors.As(err, &imageErr) || !errors.Is(err, tt.reason) {
				t.Errorf("%s(%q) = %+v, %v, want an ImageError: %v", name, tt.ref, got, err, tt.reason)
				continue
			}
			if imageErr.Hint() == "" {
				t.Errorf("%s(%q) has no hint", name, tt.ref)
			}
		}
	}
}

func TestDigestMismatch(t *testing.T) {
	engine := dockertest.Require(t)
	hub := newHub(t, "", "")
	hub.removeImages(t)
	good := hub.push(t, "app:good", image(t))
	evil := hub.push(t, "app:evil", image(t))
	hub.swap.Store(&evil)
	got, err := engine.Resolve(t.Context(), hub.host()+"/app@"+good, nil)
	if !errors.Is(err, pull.ErrDigestMismatch) {
		t.Errorf("Resolve() of a digest with other content = %+v, %v, want ErrDigestMismatch", got, err)
	}
}

func TestCredentials(t *testing.T) {
	dockertest.Require(t)
	hub := newHub(t, "alice", "s3cret")
	hub.removeImages(t)
	login := func(user, password string) map[string]any {
		return map[string]any{"auths": map[string]any{hub.host(): map[string]string{
			"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		}}}
	}
	// A credential helper is a program that is given the registry on stdin.
	helpers := t.TempDir()
	script := "#!/bin/sh\nread -r host\necho '{\"ServerURL\":\"'$host'\",\"Username\":\"alice\",\"Secret\":\"s3cret\"}'\n"
	if err := os.WriteFile(filepath.Join(helpers, "docker-credential-test"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", helpers+string(os.PathListSeparator)+os.Getenv("PATH"))
	tests := []struct {
		name   string
		config map[string]any
		reason error
	}{
		{"none", map[string]any{}, pull.ErrUnauthorized},
		{"wrong", login("alice", "guess"), pull.ErrUnauthorized},
		{"right", login("alice", "s3cret"), nil},
		{"helper", map[string]any{"credHelpers": map[string]string{hub.host(): "test"}}, nil},
		{"helper that is missing", map[string]any{"credHelpers": map[string]string{hub.host(): "not-there"}}, pull.ErrUnauthorized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			repository := strings.ReplaceAll(tt.name, " ", "-") + ":1"
			hub.push(t, repository, image(t))
			dir := t.TempDir()
			encoded, err := json.Marshal(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "config.json"), encoded, 0o600); err != nil {
				t.Fatal(err)
			}
			engine := dockertest.Connect(t, owner.Options{Options: reach.Options{ConfigDir: dir}})
			got, err := engine.Resolve(t.Context(), hub.host()+"/"+repository, nil)
			if !errors.Is(err, tt.reason) || (err == nil) != (tt.reason == nil) {
				t.Errorf("Resolve() = %+v, %v, want %v", got, err, tt.reason)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error shows the password: %v", err)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	engine := dockertest.Require(t)
	hub := newHub(t, "", "")
	hub.removeImages(t)
	ref := hub.host() + "/moving:1"
	probes, _ := dockertest.Probe(t)
	first := hub.push(t, "moving:1", probes)
	old, err := engine.Resolve(t.Context(), ref, nil)
	if err != nil || old.Pin.Digest != first {
		t.Fatalf("Resolve() = %+v, %v, want digest %s", old, err, first)
	}
	second := hub.push(t, "moving:1", image(t))
	if got, err := engine.Resolve(t.Context(), ref, nil); err != nil || got.Pulled || got.Pin.Digest != first {
		t.Errorf("Resolve() = %+v, %v, want what the engine has: %s", got, err, first)
	}
	if got, err := engine.Latest(t.Context(), ref, nil); err != nil || !got.Pulled || got.Pin.Digest != second {
		t.Errorf("Latest() = %+v, %v, want what the registry has: %s", got, err, second)
	}
	hub.Close()
	got, err := engine.Latest(t.Context(), ref, nil)
	if err != nil || got.Pulled || got.Pin.Digest != second {
		t.Errorf("Latest() without the registry = %+v, %v, want the engine's own %s", got, err, second)
	}
	if !errors.Is(got.Offline, pull.ErrUnreachable) {
		t.Errorf("Offline = %v, want ErrUnreachable", got.Offline)
	}
	// The tag has moved, the pin has not.
	p, err := engine.Start(t.Context(), dockertest.Spec(old.Image, probe.Exit, "5"))
	if err != nil {
		t.Fatalf("Start() of the first digest = %v", err)
	}
	<-p.Done()
	if got, want := p.Exit(), (sandbox.Exit{Code: 5}); got != want {
		t.Errorf("Exit() = %+v, want %+v", got, want)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLocalImage(t *testing.T) {
	_, built := dockertest.Probe(t)
	engine := dockertest.Require(t)
	if built.Pin.Kind != sandbox.LocalID {
		t.Errorf("pin of an image that was never in a registry = %+v, want its id", built.Pin)
	}
	for name, resolve := range map[string]func(context.Context, string, func(pull.Progress)) (pull.Resolved, error){
		"Resolve": engine.Resolve, "Latest": engine.Latest,
	} {
		got, err := resolve(t.Context(), built.Pin.Digest, nil)
		if err != nil {
			t.Errorf("%s(%q) = %v", name, built.Pin.Digest, err)
			continue
		}
		want := pull.Resolved{Image: built}
		want.Ref = built.Pin.Digest
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of an id (-want +got):\n%s", name, diff)
		}
	}
}
