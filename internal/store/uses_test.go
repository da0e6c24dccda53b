package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/inventory"
)

func TestUses(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	if got, err := one.Uses(t.Context()); err != nil || got != (inventory.Uses{}) {
		t.Errorf("Uses() = %+v, %v, want none", got, err)
	}
	for _, uses := range []inventory.Uses{{Hits: 2, Misses: 1}, {Hits: 5}} {
		if err := one.AddUses(t.Context(), uses); err != nil {
			t.Fatal(err)
		}
		if err := two.AddUses(t.Context(), uses); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := two.Uses(t.Context()); err != nil || got != (inventory.Uses{Hits: 14, Misses: 2}) {
		t.Errorf("Uses() = %+v, %v, want the sum of all", got, err)
	}
}

func TestFactsByPrefix(t *testing.T) {
	db := open(t, t.TempDir())
	for _, name := range []string{"gateway/a", "gateway/b", "gateways", "%"} {
		if err := db.SetFact(t.Context(), name, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.DeleteFact(t.Context(), "gateway/b"); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteFact(t.Context(), "nobody"); err != nil {
		t.Errorf("DeleteFact of nothing = %v, want nil", err)
	}
	got, err := db.Facts(t.Context(), "gateway/")
	if len(got) != 1 || string(got["gateway/a"]) != `"gateway/a"` || err != nil {
		t.Errorf("Facts(gateway/) = %v, %v, want one", got, err)
	}
}

func TestFlushOffers(t *testing.T) {
	db := open(t, t.TempDir())
	var keys []inventory.Key
	for i, spec := range []string{"a", "b", "c"} {
		keys = append(keys, inventory.Key{Spec: spec, Era: "modern"})
		if err := db.PutOffer(t.Context(), keys[i], offer(i)); err != nil {
			t.Fatal(err)
		}
	}
	left := func() []string {
		t.Helper()
		found, err := db.Offers(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		var specs []string
		for _, key := range keys {
			if _, ok := found[key]; ok {
				specs = append(specs, key.Spec)
			}
		}
		return specs
	}
	for _, tt := range []struct {
		spec string
		want []string
	}{{"b", []string{"a", "c"}}, {"d", []string{"a", "c"}}, {"", nil}} {
		if err := db.FlushOffers(t.Context(), tt.spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, left()); diff != "" {
			t.Errorf("left after FlushOffers(%q) (-want +got):\n%s", tt.spec, diff)
		}
	}
}
