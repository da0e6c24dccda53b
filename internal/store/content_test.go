package store_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/store"
	"github.com/dockgate/dockgate/internal/tool"
)

func moment(hour int) time.Time { return time.Date(2026, 5, 1, hour, 0, 0, 123456789, time.UTC) }

func TestOpen(t *testing.T) {
	// The name has all that means something in a database's URI.
	dir := filepath.Join(t.TempDir(), "a", "state 100%?x=y#z")
	one, two := open(t, dir), open(t, dir)
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(one.StateID()) || two.StateID() != one.StateID() {
		t.Errorf("StateID = %q and %q, want one random id", one.StateID(), two.StateID())
	}
	if other := open(t, t.TempDir()); other.StateID() == one.StateID() {
		t.Errorf("StateID = %q in two folders", other.StateID())
	}
	if one.Dir() != dir {
		t.Errorf("Dir = %q, want %q", one.Dir(), dir)
	}
	if err := one.PutEra(t.Context(), "image", "modern"); err != nil {
		t.Fatal(err)
	}
	if err := two.Verify(t.Context()); err != nil {
		t.Errorf("Verify = %v", err)
	}
	want := map[string]fs.FileMode{".": 0o700, store.FileName: 0o600, store.FileName + "-wal": 0o600, store.FileName + "-shm": 0o600, "store.lock": 0o600}
	got := map[string]fs.FileMode{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			got[path] = info.Mode().Perm()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func offer(n int) inventory.Offer {
	return inventory.Offer{
		Tools: inventory.NewTools([]tool.Definition{
			{Name: "x", JSON: fmt.Appendf(nil, "{ \"name\": \"x\",\n\"n\": %d }", n)}, {Name: "ü", JSON: []byte(`{"name":"ü"}`)},
		}),
		Prompts:      []json.RawMessage{[]byte(`{"name":"p"}`)},
		Resources:    []json.RawMessage{[]byte(`{"uri":"a"}`), []byte(`{"uri":"b"}`)},
		Templates:    []json.RawMessage{[]byte(`{"uriTemplate":"t"}`)},
		Capabilities: []byte(`{"tools":{}}`), Info: []byte(`{"name":"s"}`), Instructions: []byte(`"do"`),
		Taken: moment(n % 24),
	}
}

func TestOffers(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	keys := []inventory.Key{{Spec: "a", Capabilities: "c", Era: "modern"}, {Spec: "a", Capabilities: "c", Era: "legacy"}, {Spec: `"b`}}
	want := map[inventory.Key]inventory.Offer{keys[0]: offer(1), keys[1]: offer(2), keys[2]: {Taken: moment(3)}}
	for key, o := range want {
		if err := one.PutOffer(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	got, err := two.Offers(t.Context(), append(keys, inventory.Key{Spec: "none"}))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Offers = %v (-want +got):\n%s", err, diff)
	}
	if err := two.PutOffer(t.Context(), keys[0], offer(4)); err != nil {
		t.Fatal(err)
	}
	got, err = one.Offers(t.Context(), keys[:1])
	if diff := cmp.Diff(map[inventory.Key]inventory.Offer{keys[0]: offer(4)}, got); err != nil || diff != "" {
		t.Errorf("Offers of one key = %v (-want +got):\n%s", err, diff)
	}
	if got, err := one.Offers(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("Offers of no key = %v, %v, want none", got, err)
	}
}

func TestOffersAreBounded(t *testing.T) {
	db := open(t, t.TempDir())
	var keys []inventory.Key
	for n := range 520 {
		key := inventory.Key{Spec: fmt.Sprint(n)}
		keys = append(keys, key)
		if err := db.PutOffer(t.Context(), key, inventory.Offer{Taken: moment(0).Add(time.Duration(n))}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Offers(t.Context(), keys)
	if err != nil || len(got) != 512 {
		t.Fatalf("Offers = %d, %v, want 512", len(got), err)
	}
	for _, key := range keys[:8] {
		if _, kept := got[key]; kept {
			t.Errorf("offer %s is kept, want the oldest gone", key.Spec)
		}
	}
}

func TestEras(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	for _, era := range []string{"legacy", "modern"} {
		if err := one.PutEra(t.Context(), "sha256:1", era); err != nil {
			t.Fatal(err)
		}
	}
	got, err := two.Eras(t.Context())
	if diff := cmp.Diff(map[string]string{"sha256:1": "modern"}, got); err != nil || diff != "" {
		t.Errorf("Eras = %v (-want +got):\n%s", err, diff)
	}
}

func TestImages(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	image := func(ref, digest string) store.ResolvedImage {
		return store.ResolvedImage{
			Image: sandbox.Image{
				Ref: ref, Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: digest, Platform: "linux/amd64"},
				Config: sandbox.ImageConfig{
					Entrypoint: []string{"/a"}, Cmd: []string{"b"}, Env: []string{"C=d"}, User: "1", WorkingDir: "/w", Volumes: []string{"/v"},
				},
			},
			Resolved: moment(1),
		}
	}
	if _, ok, err := one.Image(t.Context(), "mcp/git"); ok || err != nil {
		t.Errorf("Image = %v, %v, want none", ok, err)
	}
	for _, i := range []store.ResolvedImage{image("mcp/git", "sha256:1"), image("mcp/time", "sha256:2"), image("mcp/git", "sha256:3")} {
		if err := one.PutImage(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := two.Image(t.Context(), "mcp/git")
	if diff := cmp.Diff(image("mcp/git", "sha256:3"), got); !ok || err != nil || diff != "" {
		t.Errorf("Image = %v, %v (-want +got):\n%s", ok, err, diff)
	}
	all, err := two.Images(t.Context())
	want := map[string]store.ResolvedImage{"mcp/git": image("mcp/git", "sha256:3"), "mcp/time": image("mcp/time", "sha256:2")}
	if diff := cmp.Diff(want, all); err != nil || diff != "" {
		t.Errorf("Images = %v (-want +got):\n%s", err, diff)
	}
}

func TestActivations(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	other := principal.Principal{ID: "other"}
	put := func(who principal.Principal, server string, hour int, settings map[string]any) store.Activation {
		t.Helper()
		a := store.Activation{Principal: who, Server: server, Settings: settings, By: store.Manual, At: moment(hour)}
		if err := one.PutActivation(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	settings := map[string]any{"n": json.Number("12345678901234567890"), "paths": []any{"/a"}, "deep": map[string]any{"b": true}}
	git := put(principal.Local, "git", 2, settings)
	put(principal.Local, "time", 1, nil)
	put(other, "git", 3, nil)
	later := put(principal.Local, "time", 4, map[string]any{"zone": "UTC"})
	list := func(who principal.Principal) []store.Activation {
		t.Helper()
		got, err := two.Activations(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff([]store.Activation{git, later}, list(principal.Local)); diff != "" {
		t.Errorf("Activations (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := two.DeleteActivation(t.Context(), principal.Local, "git"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]store.Activation{later}, list(principal.Local)); diff != "" {
		t.Errorf("Activations after a delete (-want +got):\n%s", diff)
	}
	if got := list(other); len(got) != 1 {
		t.Errorf("Activations of another = %v, want its own", got)
	}
	if err := one.PutActivation(t.Context(), store.Activation{Server: "git"}); err == nil {
		t.Error("PutActivation for nobody = nil, want an error")
	}
}

func TestFacts(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	got := []string{"unchanged"}
	if err := one.Fact(t.Context(), "name", &got); err != nil || got[0] != "unchanged" {
		t.Errorf("Fact that nobody set = %v, %v, want it left alone", got, err)
	}
	for _, value := range [][]string{{"a"}, {"b", "c"}} {
		if err := one.SetFact(t.Context(), "name", value); err != nil {
			t.Fatal(err)
		}
	}
	if err := two.Fact(t.Context(), "name", &got); err != nil || !cmp.Equal(got, []string{"b", "c"}) {
		t.Errorf("Fact = %v, %v, want the last one set", got, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(store.FrameOffer(offer(1)))
	f.Add(store.FrameOffer(inventory.Offer{}))
	f.Add(store.FramePins(map[string]approval.Pin{}))
	f.Add(store.FramePins(map[string]approval.Pin{"x": {Digest: "d", JSON: []byte(`{}`), Expires: moment(1)}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		if parts, err := store.Unframe(data); err == nil {
			if again, err := store.Unframe(store.Frame(parts...)); err != nil || !cmp.Equal(parts, again) {
				t.Errorf("Unframe(Frame(%q)) = %q, %v", parts, again, err)
			}
		}
		if o, err := store.UnframeOffer(data); err == nil {
			if again, err := store.UnframeOffer(store.FrameOffer(o)); err != nil || !o.Same(again) {
				t.Errorf("UnframeOffer(FrameOffer(%v)) = %v, %v", o, again, err)
			}
		}
		if pins, err := store.UnframePins(data); err == nil {
			again, err := store.UnframePins(store.FramePins(pins))
			if err != nil || !cmp.Equal(pins, again) {
				t.Errorf("UnframePins(FramePins(%v)) = %v, %v", pins, again, err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		db, err := store.Open(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart reads what a gateway with 30 servers and 10,000 tools needs
// to list them.
func BenchmarkStart(b *testing.B) {
	db, err := store.Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	schema := fmt.Sprintf(`"description":%q,"inputSchema":{"type":"object"}`, make([]byte, 150))
	var keys []inventory.Key
	var change approval.Change
	for s := range 30 {
		var definitions []tool.Definition
		pins := map[string]approval.Pin{}
		for n := range 334 {
			name := fmt.Sprintf("tool%d", n)
			d := tool.Definition{Name: name, JSON: fmt.Appendf(nil, `{"name":%q,%s}`, name, schema)}
			definitions = append(definitions, d)
			pins[name] = approval.Pin{Digest: d.Digest(), JSON: d.JSON}
		}
		grant := sandbox.Grant{Server: fmt.Sprintf("server%d", s)}
		change.PutApprovals = append(change.PutApprovals, approval.Approval{
			Server: grant.Server, Grant: grant, GrantDigest: grant.Digest(), Tools: pins,
		})
		key := inventory.Key{Spec: grant.Server}
		keys = append(keys, key)
		if err := db.PutOffer(b.Context(), key, inventory.Offer{Tools: inventory.NewTools(definitions)}); err != nil {
			b.Fatal(err)
		}
	}
	revision, err := db.Revision(b.Context())
	if err == nil {
		_, err = db.Commit(b.Context(), revision, change)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := approval.Open(b.Context(), db, approval.Options{}); err != nil {
			b.Fatal(err)
		}
		if err := inventory.New(db, db).Load(b.Context(), keys); err != nil {
			b.Fatal(err)
		}
	}
}
