package docker_test

import (
	"os"
	"testing"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/catalogtest"
	"github.com/dockgate/dockgate/internal/catalog/docker"
)

// BenchmarkParse reads Docker's public catalog of 328 servers.
func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(catalogtest.Shared(b, "datasets", "docker-catalog", "catalog.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := docker.Parse(catalog.Origin{Catalog: "catalog.yaml"}, data); err != nil {
			b.Fatal(err)
		}
	}
}
