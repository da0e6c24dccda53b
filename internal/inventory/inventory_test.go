package inventory_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/tool"
)

// memory is a store in memory that counts and can break.
type memory struct {
	mu             sync.Mutex
	offers         map[inventory.Key]inventory.Offer
	eras           map[string]string
	broken         error
	queries, write int
}

func (m *memory) Offers(_ context.Context, keys []inventory.Key) (map[inventory.Key]inventory.Offer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	found := map[inventory.Key]inventory.Offer{}
	for _, key := range keys {
		if offer, ok := m.offers[key]; ok {
			found[key] = offer
		}
	}
	return found, m.broken
}

func (m *memory) PutOffer(_ context.Context, key inventory.Key, offer inventory.Offer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	m.write++
	if m.offers == nil {
		m.offers = map[inventory.Key]inventory.Offer{}
	}
	m.offers[key] = offer
	return nil
}

func (m *memory) Eras(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	eras := map[string]string{}
	maps.Copy(eras, m.eras)
	return eras, m.broken
}

func (m *memory) PutEra(_ context.Context, image, era string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	m.write++
	if m.eras == nil {
		m.eras = map[string]string{}
	}
	m.eras[image] = era
	return nil
}

func (m *memory) expect(t *testing.T, queries, writes int) {
	t.Helper()
	if m.queries != queries || m.write != writes {
		t.Errorf("%d queries and %d writes, want %d and %d", m.queries, m.write, queries, writes)
	}
}

func offer(description string) inventory.Offer {
	return inventory.Offer{
		Tools: inventory.NewTools([]tool.Definition{
			{Name: "x", JSON: []byte(`{"name":"x","description":"` + description + `"}`)},
		}),
		Capabilities: []byte(`{"tools":{}}`),
		Taken:        time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
	}
}

func TestOffer(t *testing.T) {
	store := &memory{}
	one, two := inventory.New(store, store), inventory.New(store, store)
	key := inventory.Key{Spec: "sha256:1", Capabilities: "sha256:2", Era: "modern"}
	get := func(i *inventory.Inventory, key inventory.Key) (inventory.Offer, bool) {
		t.Helper()
		got, ok, err := i.Offer(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return got, ok
	}
	put := func(i *inventory.Inventory, o inventory.Offer, want bool) {
		t.Helper()
		if changed, err := i.Put(t.Context(), key, o); err != nil || changed != want {
			t.Errorf("Put = %v, %v, want %v", changed, err, want)
		}
	}
	if got, ok := get(two, key); ok {
		t.Errorf("Offer = %v, want none", got)
	}
	put(one, offer("a"), true)
	later := offer("a")
	later.Taken = later.Taken.Add(time.Hour)
	put(one, later, false)
	store.expect(t, 2, 1)

	// What another process put is found in the store; then it is in memory.
	for range 2 {
		got, ok := get(two, key)
		if diff := cmp.Diff(offer("a"), got); !ok || diff != "" {
			t.Errorf("Offer = %v (-want +got):\n%s", ok, diff)
		}
	}
	store.expect(t, 3, 1)
	for _, other := range []inventory.Key{
		{Spec: "sha256:9", Capabilities: key.Capabilities, Era: key.Era},
		{Spec: key.Spec, Capabilities: "sha256:9", Era: key.Era},
		{Spec: key.Spec, Capabilities: key.Capabilities, Era: "legacy"},
	} {
		if got, ok := get(two, other); ok {
			t.Errorf("Offer(%v) = %v, want none", other, got)
		}
	}
	changed := one.Changed()
	put(one, offer("a"), false)
	select {
	case <-changed:
		t.Error("Changed is closed after the same offer")
	default:
	}
	put(one, offer("b"), true)
	select {
	case <-changed:
	default:
		t.Error("Changed is open after another offer")
	}
	if got, ok := offer("b").Tool("x"); !ok || got.Pin != got.Digest() {
		t.Errorf("Tool(x) = %v, %v, want it with its digest", got, ok)
	}
	if got, ok := offer("b").Tool("y"); ok {
		t.Errorf("Tool(y) = %v, want none", got)
	}
	if got, _ := get(one, key); !got.Same(offer("b")) {
		t.Errorf("Offer = %v, want the new one", got)
	}
}

func TestLoad(t *testing.T) {
	store := &memory{}
	filler := inventory.New(store, store)
	var keys []inventory.Key
	for n := range 300 {
		key := inventory.Key{Spec: string(rune('a' + n))}
		keys = append(keys, key)
		if _, err := filler.Put(t.Context(), key, offer(key.Spec)); err != nil {
			t.Fatal(err)
		}
	}
	store.queries, store.write = 0, 0
	i := inventory.New(store, store)
	if err := i.Load(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if got, ok, err := i.Offer(t.Context(), key); err != nil || !ok || !got.Same(offer(key.Spec)) {
			t.Errorf("Offer(%s) = %v, %v, %v, want its own", key.Spec, got, ok, err)
		}
	}
	store.expect(t, 1, 0)
}

func TestSame(t *testing.T) {
	base := func() inventory.Offer {
		o := offer("a")
		o.Prompts = []json.RawMessage{[]byte(`{"name":"p"}`)}
		o.Resources = []json.RawMessage{[]byte(`{"uri":"r"}`)}
		o.Templates = []json.RawMessage{[]byte(`{"uriTemplate":"t"}`)}
		o.Info, o.Instructions = []byte(`{"name":"s"}`), []byte(`"do"`)
		return o
	}
	if !base().Same(base()) {
		t.Error("an offer is not the same as itself")
	}
	tests := map[string]func(*inventory.Offer){
		"tool":         func(o *inventory.Offer) { o.Tools = offer("b").Tools },
		"whitespace":   func(o *inventory.Offer) { o.Tools[0].JSON = append(o.Tools[0].JSON, ' ') },
		"fewer tools":  func(o *inventory.Offer) { o.Tools = nil },
		"prompts":      func(o *inventory.Offer) { o.Prompts = nil },
		"resources":    func(o *inventory.Offer) { o.Resources = append(o.Resources, []byte(`{}`)) },
		"templates":    func(o *inventory.Offer) { o.Templates[0] = []byte(`{}`) },
		"capabilities": func(o *inventory.Offer) { o.Capabilities = nil },
		"info":         func(o *inventory.Offer) { o.Info = []byte(`{}`) },
		"instructions": func(o *inventory.Offer) { o.Instructions = []byte(`""`) },
	}
	for name, change := range tests {
		other := base()
		change(&other)
		if base().Same(other) || other.Same(base()) {
			t.Errorf("an offer with other %s is the same", name)
		}
	}
}

// What is offered to some clients changes what is offered to any, and leaves
// the rest as it is.
func TestRevised(t *testing.T) {
	tools := func(entries ...string) (list []tool.Definition) {
		for i := 0; i < len(entries); i += 2 {
			list = append(list, tool.Definition{Name: entries[i], JSON: json.RawMessage(entries[i+1])})
		}
		return list
	}
	prompts := func(names ...string) (list []json.RawMessage) {
		for _, name := range names {
			list = append(list, json.RawMessage(`{"title":"`+name+`","name":"`+name+`"}`))
		}
		return list
	}
	offer := func(taken int64, prompts []json.RawMessage, tools ...tool.Definition) inventory.Offer {
		return inventory.Offer{Tools: inventory.NewTools(tools), Prompts: prompts, Taken: time.Unix(taken, 0)}
	}
	all := offer(1, prompts("p", "q"), tools("a", "1", "b", "2", "c", "3", "d", "4")...)
	all.Stale, all.Info = "late", json.RawMessage(`{"name":"s"}`)
	before := offer(2, prompts("q"), tools("a", "1", "b", "2", "c", "3")...)
	now := offer(3, prompts("r"), tools("e", "5", "c", "9", "a", "1")...)
	want := offer(3, prompts("p", "r"), tools("a", "1", "c", "9", "d", "4", "e", "5")...)
	want.Info, want.Resources, want.Templates = all.Info, []json.RawMessage{}, []json.RawMessage{}
	if diff := cmp.Diff(want, all.Revised(before, now)); diff != "" {
		t.Errorf("Revised() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all.Tools, all.Revised(inventory.Offer{}, before).Tools); diff != "" {
		t.Errorf("Revised() by a first listing of what was known (-want +got):\n%s", diff)
	}
}

func TestEra(t *testing.T) {
	store := &memory{}
	i := inventory.New(store, store)
	want := func(image, era string) {
		t.Helper()
		if got, err := i.Era(t.Context(), image); err != nil || got != era {
			t.Errorf("Era(%s) = %q, %v, want %q", image, got, err, era)
		}
	}
	want("sha256:1", "")
	for _, era := range []string{"legacy", "legacy", "modern"} {
		if err := i.PutEra(t.Context(), "sha256:1", era); err != nil {
			t.Fatal(err)
		}
		want("sha256:1", era)
	}
	want("sha256:2", "")
	store.expect(t, 1, 2)
	i = inventory.New(store, store)
	want("sha256:1", "modern")
}

func TestBrokenStore(t *testing.T) {
	store := &memory{}
	i := inventory.New(store, store)
	key := inventory.Key{Spec: "sha256:1"}
	if _, err := i.Put(t.Context(), key, offer("a")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("disk on fire")
	store.broken = broken
	if _, err := i.Put(t.Context(), key, offer("b")); !errors.Is(err, broken) {
		t.Errorf("Put = %v, want %v", err, broken)
	}
	if got, ok, err := i.Offer(t.Context(), key); err != nil || !ok || !got.Same(offer("b")) {
		t.Errorf("Offer = %v, %v, %v, want what was put last", got, ok, err)
	}
	if _, _, err := i.Offer(t.Context(), inventory.Key{Spec: "sha256:2"}); !errors.Is(err, broken) {
		t.Errorf("Offer of what is not in memory = %v, want %v", err, broken)
	}
	if err := i.Load(t.Context(), []inventory.Key{key}); !errors.Is(err, broken) {
		t.Errorf("Load = %v, want %v", err, broken)
	}
	if _, err := i.Era(t.Context(), "sha256:1"); !errors.Is(err, broken) {
		t.Errorf("Era = %v, want %v", err, broken)
	}
	if err := i.PutEra(t.Context(), "sha256:1", "modern"); !errors.Is(err, broken) {
		t.Errorf("PutEra = %v, want %v", err, broken)
	}
	// A failed write is tried again by the next Put of the same.
	store.broken = nil
	if _, err := i.Put(t.Context(), key, offer("b")); err != nil {
		t.Fatal(err)
	}
	if !store.offers[key].Same(offer("b")) {
		t.Errorf("stored = %v, want what was put", store.offers[key])
	}
}

func TestForget(t *testing.T) {
	store := &memory{}
	i := inventory.New(store, store)
	running, resting := inventory.Key{Spec: "sha256:1"}, inventory.Key{Spec: "sha256:2"}
	for _, key := range []inventory.Key{running, resting} {
		if _, err := i.Put(t.Context(), key, offer(key.Spec)); err != nil {
			t.Fatal(err)
		}
	}
	if since := time.Since(i.Renewed(running)); since < 0 || since > time.Minute {
		t.Errorf("Renewed is %v ago, want just now", since)
	}
	if got := i.Renewed(inventory.Key{}); !got.IsZero() {
		t.Errorf("Renewed of what nobody offered = %v, want zero", got)
	}
	store.offers = nil
	changed := i.Changed()
	if err := i.Forget(t.Context(), func(key inventory.Key) bool { return key == running }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("Changed is open after offers were forgotten")
	}
	if _, ok, err := i.Offer(t.Context(), resting); ok || err != nil {
		t.Errorf("Offer of what was forgotten = %v, %v, want none", ok, err)
	}
	if got, ok, err := i.Offer(t.Context(), running); !ok || err != nil || !got.Same(offer(running.Spec)) || !store.offers[running].Same(got) {
		t.Errorf("Offer of what runs = %v, %v, %v, want it, and stored again", got, ok, err)
	}
	if diff := cmp.Diff(inventory.Uses{Hits: 1, Misses: 1}, i.Take()); diff != "" {
		t.Errorf("Take() (-want +got):\n%s", diff)
	}
	if got := i.Take(); got != (inventory.Uses{}) {
		t.Errorf("Take() again = %+v, want none", got)
	}
	store.broken = errors.New("disk on fire")
	if err := i.Forget(t.Context(), func(inventory.Key) bool { return true }); !errors.Is(err, store.broken) {
		t.Errorf("Forget = %v, want %v", err, store.broken)
	}
	if _, ok, _ := i.Offer(t.Context(), running); !ok {
		t.Error("what runs is forgotten where it cannot be stored")
	}
}
