package official_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/official"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	file, err := official.Parse(catalog.Origin{Catalog: "list.json"}, read(t, "list.json"), catalog.Surroundings{})
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.Entries(t, "testdata/list.golden", file.Servers)
}

func TestMistakes(t *testing.T) {
	_, err := official.Parse(catalog.Origin{Catalog: "server.json"}, read(t, "mistakes.json"), catalog.Surroundings{})
	catalogtest.Mistakes(t, "testdata/mistakes.golden", err)
}

// registry answers as the published schema of the API says: pages by a cursor,
// a search in the names, the newest version by "latest", 404 for the rest.
func registry(t *testing.T, names []string, asked *atomic.Int64, down *atomic.Bool) *httptest.Server {
	t.Helper()
	record := func(name string) map[string]any {
		return map[string]any{
			"server": map[string]any{
				"name": name, "description": "A server", "version": "1.0.0",
				"packages": []any{map[string]any{
					"registryType": "oci", "identifier": "example/" + strings.ReplaceAll(name[strings.Index(name, "/")+1:], "_", "-") + ":1", "transport": map[string]any{"type": "stdio"},
				}},
			},
			"_meta": map[string]any{"io.modelcontextprotocol.registry/official": map[string]any{"status": "active", "isLatest": true}},
		}
	}
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0/servers", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		query := r.URL.Query()
		if query.Get("version") != "latest" {
			http.Error(w, "all versions", http.StatusBadRequest)
			return
		}
		var limit int
		if _, err := fmt.Sscan(query.Get("limit"), &limit); err != nil || limit < 1 || limit > 100 {
			http.Error(w, "limit", http.StatusUnprocessableEntity)
			return
		}
		records, next := []any{}, ""
		for _, name := range names {
			if name <= query.Get("cursor") || !strings.Contains(name, query.Get("search")) {
				continue
			}
			if len(records) == limit {
				next = names[len(names)-1]
				break
			}
			records = append(records, record(name))
		}
		if next != "" {
			last, _ := records[len(records)-1].(map[string]any)["server"].(map[string]any)
			next, _ = last["name"].(string)
		}
		answer(w, map[string]any{"servers": records, "metadata": map[string]any{"nextCursor": next, "count": len(records)}})
	})
	mux.HandleFunc("GET /v0/servers/{name}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for _, name := range names {
			if name == r.PathValue("name") && (r.PathValue("version") == "latest" || r.PathValue("version") == "1.0.0") {
				answer(w, record(name))
				return
			}
		}
		http.NotFound(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestRegistry(t *testing.T) {
	var names []string
	for i := range 250 {
		names = append(names, fmt.Sprintf("io.github.example/server-%03d", i))
	}
	var asked atomic.Int64
	var down atomic.Bool
	server := registry(t, names, &asked, &down)
	r := &official.Registry{Base: server.URL + "/", HTTP: server.Client(), TTL: time.Hour}

	all, err := r.Search(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 250 || asked.Load() != 3 {
		t.Errorf("Search = %d servers in %d requests, want 250 in 3 pages", len(all), asked.Load())
	}
	if first := all[0]; first.Name != names[0] || first.Version != "1.0.0" || first.Entry.Name != "io.github.example.server-000" || first.Entry.Image != "example/server-000:1" || first.Entry.Origin.Kind != catalog.User {
		t.Errorf("Search's first = %+v", first)
	}
	some, err := r.Search(t.Context(), "server-01", 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range some {
		got = append(got, s.Entry.Title)
	}
	if diff := cmp.Diff(names[10:14], got); diff != "" {
		t.Errorf("Search(server-01, 4) (-want +got):\n%s", diff)
	}

	// What was asked is kept, and is used while the registry is down.
	before := asked.Load()
	if _, err := r.Search(t.Context(), "server-01", 4); err != nil || asked.Load() != before {
		t.Errorf("a second Search = %v and %d more requests, want none", err, asked.Load()-before)
	}
	stale := &official.Registry{Base: server.URL, HTTP: server.Client(), TTL: time.Nanosecond}
	if _, err := stale.Search(t.Context(), "server-02", 1); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	if again, err := stale.Search(t.Context(), "server-02", 1); err != nil || len(again) != 1 {
		t.Errorf("Search while the registry is down = %d servers, %v, want what was kept", len(again), err)
	}
	var failed *official.RequestError
	if _, err := stale.Search(t.Context(), "server-03", 1); !errors.As(err, &failed) || failed.Status != http.StatusServiceUnavailable || failed.Hint() == "" {
		t.Errorf("Search of the unknown while the registry is down = %v, want a RequestError with 503", err)
	}

	for _, version := range []string{"", "1.0.0"} {
		one, err := r.Server(t.Context(), "io.github.example/server-007", version)
		if err != nil || one.Entry.Image != "example/server-007:1" {
			t.Errorf("Server(server-007, %q) = %+v, %v", version, one, err)
		}
	}
	for name, version := range map[string]string{"io.github.example/nobody": "", "io.github.example/server-007/": "", "io.github.example/server-008": "9"} {
		if _, err := r.Server(t.Context(), name, version); !errors.Is(err, official.ErrUnknown) {
			t.Errorf("Server(%s, %q) = %v, want ErrUnknown", name, version, err)
		}
	}
	nowhere := &official.Registry{Base: "http://127.0.0.1:1"}
	if _, err := nowhere.Search(t.Context(), "x", 1); !errors.As(err, &failed) || failed.Status != 0 {
		t.Errorf("Search where no registry is = %v, want a RequestError", err)
	}
}

// What one process has asked, another one need not ask; and it has something
// while the registry is down.
func TestKept(t *testing.T) {
	var asked atomic.Int64
	var down atomic.Bool
	server := registry(t, []string{"io.github.example/one", "io.github.example/two"}, &asked, &down)
	folder := filepath.Join(t.TempDir(), "registry")
	search := func(ttl time.Duration, query string) ([]official.Found, error) {
		return (&official.Registry{Base: server.URL, HTTP: server.Client(), TTL: ttl, Folder: folder}).Search(t.Context(), query, 0)
	}
	first, err := search(time.Hour, "one")
	if err != nil || len(first) != 1 {
		t.Fatalf("Search = %d servers, %v, want 1", len(first), err)
	}
	again, err := search(time.Hour, "one")
	if err != nil || asked.Load() != 1 {
		t.Errorf("Search by another process = %v after %d requests, want 1", err, asked.Load())
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("Search by another process (-first +again):\n%s", diff)
	}
	if _, err := search(time.Nanosecond, "one"); err != nil || asked.Load() != 2 {
		t.Errorf("Search when that is old = %v after %d requests, want 2", err, asked.Load())
	}
	down.Store(true)
	if again, err = search(time.Nanosecond, "one"); err != nil || len(again) != 1 {
		t.Errorf("Search while the registry is down = %d servers, %v, want what was kept", len(again), err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder holds %v, %v, want one file", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := search(time.Hour, "one"); err == nil {
		t.Error("Search believes a broken file")
	}
	down.Store(false)
	for i := range 300 {
		if _, err := search(time.Hour, fmt.Sprint("nobody-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if files, err = filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) != 256 {
		t.Errorf("the folder holds %d files, %v, want 256", len(files), err)
	}
}

// One wrong record costs nobody else anything.
func TestWrongRecords(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(`{"servers": [
			{"server": {"name": "a/wrong", "packages": 5}},
			{"server": {"packages": []}},
			{"server": {"name": "postgres", "packages": [{"registryType": "npm", "identifier": "not-yours"}]}},
			7,
			{"server": {"name": "a/right", "packages": [{"registryType": "npm", "identifier": "right"}]}}
		], "metadata": {}}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	found, err := (&official.Registry{Base: server.URL}).Search(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		got = append(got, s.Name+": "+s.Entry.Unsupported)
	}
	if diff := cmp.Diff([]string{`a/wrong: is described wrongly: packages is "5", want a list`, "a/right: "}, got); diff != "" {
		t.Errorf("Search (-want +got):\n%s", diff)
	}
	words := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer words.Close()
	var failed *official.RequestError
	if _, err := (&official.Registry{Base: words.URL}).Search(t.Context(), "", 0); !errors.As(err, &failed) || failed.Hint() == "" {
		t.Errorf("Search with a page for people = %v, want a RequestError", err)
	}
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat(" ", 1<<20))
		for range 9 {
			if _, err := w.Write(line); err != nil {
				return // the client has heard enough
			}
		}
	}))
	defer large.Close()
	if _, err := (&official.Registry{Base: large.URL}).Search(t.Context(), "", 0); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("Search with an endless answer = %v, want a refusal", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(string(read(f, "mistakes.json")))
	var list struct {
		Servers []json.RawMessage `json:"servers"`
	}
	if err := json.Unmarshal(read(f, "list.json"), &list); err != nil {
		f.Fatal(err)
	}
	for _, s := range list.Servers {
		f.Add(`{"servers": [` + string(s) + `]}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := official.Parse(catalog.Origin{Catalog: "f"}, []byte(text), catalog.Surroundings{})
		catalogtest.Check(t, text, file, err)
	})
}
