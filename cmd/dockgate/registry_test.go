package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// runRegistry is "registry FILE NAME...", which starts a registry of the
// official kind with the records of the file, as its published schema has
// them, and puts its URL in the place of REGISTRY in the other files and into
// the variable REGISTRY. From "registry" alone on it is out of order: it keeps
// its port, so that nobody else answers there.
func runRegistry(ts *testscript.TestScript, neg bool, args []string) {
	l := ts.Value("line").(*line)
	if neg {
		ts.Fatalf("usage: registry [FILE NAME...]")
	}
	if len(args) == 0 {
		l.registryDown.Store(true)
		return
	}
	var records []struct {
		Server json.RawMessage `json:"server"`
		Meta   json.RawMessage `json:"_meta,omitempty"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &records))
	name := func(i int) string {
		var named struct {
			Name string `json:"name"`
		}
		ts.Check(json.Unmarshal(records[i].Server, &named))
		return named.Name
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a client that has gone
	}
	mux.HandleFunc("GET /v0/servers", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil || limit < 1 || limit > 100 {
			http.Error(w, "limit", http.StatusUnprocessableEntity)
			return
		}
		found, next := []any{}, ""
		for i := range records {
			if name(i) <= query.Get("cursor") || !strings.Contains(name(i), query.Get("search")) {
				continue
			}
			if len(found) == limit {
				next = name(i - 1)
				break
			}
			found = append(found, records[i])
		}
		answer(w, map[string]any{"servers": found, "metadata": map[string]any{"nextCursor": next, "count": len(found)}})
	})
	mux.HandleFunc("GET /v0/servers/{name}/versions/{version}", func(w http.ResponseWriter, r *http.Request) {
		for i := range records {
			if name(i) == r.PathValue("name") && r.PathValue("version") == "latest" {
				answer(w, records[i])
				return
			}
		}
		http.NotFound(w, r)
	})
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.registryDown.Load() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	ts.Defer(registry.Close)
	ts.Setenv("REGISTRY", registry.URL)
	for _, file := range args[1:] {
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.ReplaceAll(ts.ReadFile(file), "REGISTRY", registry.URL)), 0o600))
	}
}
