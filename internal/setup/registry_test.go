package setup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/setup"
)

// A gateway starts with what a registry has answered before, and asks again
// while it runs. What is found there is a stock to choose from, and replaces
// nobody's entry.
func TestRegistrySource(t *testing.T) {
	var asked atomic.Int64
	var down atomic.Bool // it keeps its port, so that nobody else answers there
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path != "/v0/servers" || r.URL.Query().Get("search") != "clock" {
			http.NotFound(w, r)
			return
		}
		_, err := fmt.Fprintf(w, `{"servers": [
			{"server": {"name": "example/clock", "version": "%d", "packages": [{"registryType": "oci", "identifier": "example/clock:%[1]d"}]}},
			{"server": {"name": "example/mine", "packages": [{"registryType": "oci", "identifier": "example/mine"}]}}
		], "metadata": {}}`, asked.Add(1))
		if err != nil {
			t.Error(err)
		}
	}))
	defer registry.Close()
	const configuration = `
discovery:
  cache: {ttl: 1ns}
  sources:
    - {type: official-registry, url: '%s', search: clock}
  servers: {example.mine: {image: registry.example.com/mine:2}}
`
	in := configured(t, inputs(t), fmt.Sprintf(configuration, registry.URL))
	in.Answers = filepath.Join(t.TempDir(), "registry")
	image := func(s *setup.Setup, name string) string {
		entry, err := s.Catalog.Server(name)
		if err != nil {
			t.Error(err)
		}
		return entry.Image
	}
	for range 2 {
		s := read(t, in)
		if got := image(s, "example.clock"); got != "example/clock:1" {
			t.Errorf("the image at the start = %q, want example/clock:1", got)
		}
		if got := image(s, "example.mine"); got != "registry.example.com/mine:2" {
			t.Errorf("the image of the user's own = %q, want registry.example.com/mine:2", got)
		}
		if place := s.Places[1]; place.Type != policy.OfficialRegistry || !place.Found || place.Configured || place.Servers != 2 || place.File() != "" {
			t.Errorf("the place = %+v, want a registry with a stock of 2 servers", place)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("two starts asked %d times, want once", asked.Load())
	}
	in.Again = true
	if got := image(read(t, in), "example.clock"); got != "example/clock:2" {
		t.Errorf("the image after a reload = %q, want example/clock:2", got)
	}
	down.Store(true)
	if got := image(read(t, in), "example.clock"); got != "example/clock:2" {
		t.Errorf("the image without the registry = %q, want what was kept", got)
	}
	in.Answers = ""
	place := read(t, in).Places[1]
	if place.Found || place.Problem == "" {
		t.Errorf("the place without an answer = %+v, want a problem", place)
	}
}
