package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/plan"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
)

const entries = `
version: 1
servers:
  git:
    image: mcp/git:1
    command: ["--mode", "{{config.mode}}"]
    config: {type: object, properties: {mode: {type: string}}, required: [mode]}
  gitlab:
    image: mcp/gitlab:1
  away:
    remote: {url: "https://example.com/mcp"}
  webshop:
    image: "web:1"
    helpers: [{name: db, image: "db:1", ready: started}]
  box:
    tools:
      - {name: a, run: {image: "one:1"}}
      - {name: b, run: {image: "two:1"}}
      - {name: c, run: {image: "one:1"}}
      - {name: d, inputSchema: {type: object, properties: {path: {type: string}}}, run: {image: "three:1", mounts: [{source: "{{arguments.path}}", target: /in}]}}
  engine:
    tools:
      - {name: docker, run: {image: "docker:cli", mounts: [{source: /var/run/docker.sock, target: /var/run/docker.sock}]}}
  later:
    unsupported: needs the npm package later
`

// A desk is a planner and what stands around it: images and settings.
type desk struct {
	plan.Planner
	known    map[string]sandbox.Image
	ensured  []string
	settings map[string]any // of everybody, for git
	// meanwhile is done while an image is made present.
	meanwhile func()
	fails     error
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	file, err := catalog.Parse(catalog.Origin{Catalog: "test", Kind: catalog.User}, []byte(entries))
	if err != nil {
		t.Fatal(err)
	}
	servers, _ := catalog.Merge(file)
	d := &desk{known: make(map[string]sandbox.Image), settings: map[string]any{"mode": "slow"}}
	d.Catalog = func() *catalog.Catalog { return servers }
	d.Planner.Settings, d.Images = d, d
	d.Unenforced = func() []string { return []string{"no swap limit"} }
	return d
}

func imageOf(ref string) sandbox.Image {
	return sandbox.Image{
		Ref: ref, Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:" + ref, Platform: "linux/amd64"},
		Config: sandbox.ImageConfig{Entrypoint: []string{"/server"}},
	}
}

func (d *desk) Settings(_ context.Context, _ principal.Principal, server string) (map[string]any, error) {
	if server != "git" {
		return nil, d.fails
	}
	return d.settings, d.fails
}

func (d *desk) Known(_ context.Context, ref string) (sandbox.Image, bool, error) {
	image, ok := d.known[ref]
	return image, ok, d.fails
}

func (d *desk) Ensure(_ context.Context, ref string, progress func(plan.Progress)) (sandbox.Image, error) {
	d.ensured = append(d.ensured, ref)
	progress(plan.Progress{Status: "Downloading", Done: 1, Total: 2})
	if d.meanwhile != nil {
		d.meanwhile()
	}
	d.known[ref] = imageOf(ref)
	return d.known[ref], d.fails
}

func TestPlanOffline(t *testing.T) {
	d := newDesk(t)
	_, err := d.Plan(t.Context(), principal.Local, "git")
	var unresolved *plan.UnresolvedError
	if !errors.As(err, &unresolved) || !plan.Unresolved(err) || unresolved.Image != "mcp/git:1" {
		t.Fatalf("Plan() of an image nobody knows = %v, want an UnresolvedError", err)
	}
	if got, want := unresolved.Hint(), "resolve it, and pull it if it is not on the engine, with: dockgate update git"; got != want {
		t.Errorf("Hint() = %s, want %s", got, want)
	}
	d.known["mcp/git:1"] = imageOf("mcp/git:1")
	made, err := d.Plan(t.Context(), principal.Local, "git")
	if err != nil {
		t.Fatalf("Plan() = %v, want nil", err)
	}
	if len(d.ensured) > 0 {
		t.Errorf("Plan() asked the engine for %v, want nothing", d.ensured)
	}
	if diff := cmp.Diff([]string{"/server", "--mode", "slow"}, slices.Concat(made.Spec.Entrypoint, made.Spec.Command)); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if made.Entry.Name != "git" || made.Spec.Image.Pin != imageOf("mcp/git:1").Pin {
		t.Errorf("Plan() = %s of %s, want git of its image", made.Entry.Name, made.Spec.Image.Pin.Digest)
	}
	if made.Digest != made.Spec.Digest() || made.GrantDigest != made.Grant.Digest() || made.Digest == made.GrantDigest {
		t.Error("the digests are not those of the Spec and the Grant")
	}
	if diff := cmp.Diff([]string{"no swap limit"}, made.Grant.Unenforced); diff != "" {
		t.Errorf("unenforced (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	var (
		unknown     *catalog.UnknownServerError
		unsupported *plan.UnsupportedError
		settings    *catalog.SettingsError
	)
	tests := []struct {
		server string
		kind   any
		want   string
	}{
		{"gitt", &unknown, `unknown server "gitt"; nearest: git`},
		{"later", &unsupported, `server "later" cannot be run: needs the npm package later`},
		{"git", &settings, `server "git": setting "mode" is required`},
	}
	for _, tt := range tests {
		d := newDesk(t)
		d.settings = nil
		_, err := d.Prepare(t.Context(), principal.Local, tt.server, nil)
		if !errors.As(err, tt.kind) || err.Error() != tt.want {
			t.Errorf("Prepare(%s) = %v, want %s", tt.server, err, tt.want)
		}
		if len(d.ensured) > 0 {
			t.Errorf("Prepare(%s) pulled %v before it refused", tt.server, d.ensured)
		}
		d.known["mcp/git:1"] = imageOf("mcp/git:1")
		if _, err := d.Plan(t.Context(), principal.Local, tt.server); !errors.As(err, tt.kind) || err.Error() != tt.want {
			t.Errorf("Plan(%s) = %v, want %s", tt.server, err, tt.want)
		}
	}
}

// A remote server needs no image, and is another one for each principal.
func TestRemote(t *testing.T) {
	d := newDesk(t)
	made, err := d.Plan(t.Context(), principal.Local, "away")
	if err != nil {
		t.Fatalf("Plan(away) = %v, want nil", err)
	}
	prepared, err := d.Prepare(t.Context(), principal.Local, "away", nil)
	if err != nil || prepared.Digest != made.Digest || prepared.GrantDigest != made.GrantDigest {
		t.Errorf("Prepare(away) = %s, %v, want the plan %s", prepared.Digest, err, made.Digest)
	}
	other, err := d.Plan(t.Context(), principal.Principal{ID: "other"}, "away")
	if err != nil || other.Digest == made.Digest {
		t.Errorf("Plan(away) of another principal = %s, %v, want another digest", other.Digest, err)
	}
	if other.GrantDigest != made.GrantDigest || other.Spec.Program() != made.Spec.Program() {
		t.Error("a remote server asks for other rights for another principal, want the same")
	}
	if len(d.ensured) > 0 {
		t.Errorf("planning a remote server pulled %v, want nothing", d.ensured)
	}
}

// A server of tools has an image for each, and is planned once all are there.
func TestTools(t *testing.T) {
	d := newDesk(t)
	_, err := d.Plan(t.Context(), principal.Local, "box")
	if !plan.Unresolved(err) {
		t.Fatalf("Plan() of images nobody knows = %v, want an UnresolvedError", err)
	}
	d.known["one:1"] = imageOf("one:1")
	if _, err := d.Plan(t.Context(), principal.Local, "box"); !plan.Unresolved(err) || !strings.Contains(err.Error(), "two:1") {
		t.Errorf("Plan() with one of two images = %v, want an UnresolvedError of two:1", err)
	}
	made, err := d.Prepare(t.Context(), principal.Local, "box", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one:1", "two:1"}, d.ensured); diff != "" {
		t.Errorf("images made present (-want +got):\n%s", diff)
	}
	if len(made.Spec.Runs) != 3 || made.Spec.Runs[2].Image.Pin != imageOf("one:1").Pin {
		t.Errorf("Prepare() = %+v, want three tools of two images", made.Spec.Runs)
	}
	entry, err := d.Catalog().Server("engine")
	if err != nil {
		t.Fatal(err)
	}
	want := `server "engine" cannot be run: its tool "docker" is not run: it mounts the engine's socket, which is the right to everything on this machine`
	if err := plan.Supported(entry); err == nil || err.Error() != want {
		t.Errorf("Supported(engine) = %v, want %s", err, want)
	}
}

// A server has the images of its helpers too.
func TestHelpers(t *testing.T) {
	d := newDesk(t)
	made, err := d.Prepare(t.Context(), principal.Local, "webshop", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web:1", "db:1"}, d.ensured); diff != "" {
		t.Errorf("images made present (-want +got):\n%s", diff)
	}
	if len(made.Spec.Helpers) != 1 || made.Spec.Helpers[0].Spec.Image.Pin != imageOf("db:1").Pin || len(made.Grant.Helpers) != 1 {
		t.Errorf("Prepare() = %+v, want the helper of its image", made.Spec.Helpers)
	}
}

func TestPrepare(t *testing.T) {
	d := newDesk(t)
	var told []string
	made, err := d.Prepare(t.Context(), principal.Local, "git", func(p plan.Progress) {
		told = append(told, fmt.Sprintf("%s %d/%d", p.Status, p.Done, p.Total))
	})
	if err != nil {
		t.Fatalf("Prepare() = %v, want nil", err)
	}
	if diff := cmp.Diff([]string{"Downloading 1/2"}, told); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	planned, err := d.Plan(t.Context(), principal.Local, "git")
	if err != nil || planned.Digest != made.Digest || planned.GrantDigest != made.GrantDigest {
		t.Errorf("Plan() after Prepare() = %s, %v, want %s", planned.Digest, err, made.Digest)
	}

	d.fails = errors.New("the disk is full")
	if _, err := d.Prepare(t.Context(), principal.Local, "git", nil); !errors.Is(err, d.fails) {
		t.Errorf("Prepare() = %v, want the reason", err)
	}
}

func TestWhatOthersCannotRead(t *testing.T) {
	d := newDesk(t)
	d.fails = errors.New("the disk is full")
	if _, err := d.Plan(t.Context(), principal.Local, "git"); !errors.Is(err, d.fails) {
		t.Errorf("Plan() = %v, want the reason", err)
	}
}

func TestPlansAreFresh(t *testing.T) {
	mode := func(d *desk, who string) string {
		made, err := d.Plan(t.Context(), principal.Principal{ID: who}, "git")
		if err != nil {
			t.Fatalf("Plan() = %v, want nil", err)
		}
		return strings.Join(made.Spec.Command, " ")
	}
	prepared := func(t *testing.T) *desk {
		d := newDesk(t)
		d.known["mcp/git:1"] = imageOf("mcp/git:1")
		if got := mode(d, "ann"); got != "--mode slow" {
			t.Errorf("Plan() = %s, want --mode slow", got)
		}
		d.settings = map[string]any{"mode": "fast"}
		return d
	}
	tests := []struct {
		name   string
		change func(*desk)
		who    string
		want   string
	}{
		{"at once", func(*desk) {}, "ann", "--mode slow"},
		{"somebody else", func(*desk) {}, "bob", "--mode fast"},
		{"shortly after", func(*desk) { <-time.After(2*time.Second - time.Nanosecond) }, "ann", "--mode slow"},
		{"later", func(*desk) { <-time.After(2 * time.Second) }, "ann", "--mode fast"},
		{"Forget", func(d *desk) { d.Forget("git") }, "ann", "--mode fast"},
		{"Forget another", func(d *desk) { d.Forget("gitlab") }, "ann", "--mode slow"},
		{"ForgetAll", func(d *desk) { d.ForgetAll() }, "ann", "--mode fast"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := prepared(t)
				tt.change(d)
				if got := mode(d, tt.who); got != tt.want {
					t.Errorf("Plan() = %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A plan that was begun before a change is not kept after it.
func TestForgetWhilePlanning(t *testing.T) {
	for name, forget := range map[string]func(*desk){
		"Forget":    func(d *desk) { d.Forget("git") },
		"ForgetAll": func(d *desk) { d.ForgetAll() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.meanwhile = func() { forget(d) }
				if _, err := d.Prepare(t.Context(), principal.Local, "git", nil); err != nil {
					t.Fatalf("Prepare() = %v, want nil", err)
				}
				d.settings = map[string]any{"mode": "fast"}
				made, err := d.Plan(t.Context(), principal.Local, "git")
				if want := []string{"--mode", "fast"}; err != nil || !slices.Equal(made.Spec.Command, want) {
					t.Errorf("Plan() = %v, %v, want %v", made.Spec.Command, err, want)
				}
			})
		})
	}
}
