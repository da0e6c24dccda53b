package dockertest

import (
	"os"
	"testing"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Image returns an image that "make images" builds. Without it the test is
// skipped, or fails if an engine is required.
func Image(t *testing.T, e *docker.Engine, ref string) sandbox.Image {
	t.Helper()
	resolved, err := e.Resolve(t.Context(), ref, nil)
	if err != nil && os.Getenv("TEST_ENGINE") == "require" {
		t.Fatalf("image %s: %v; run: make images", ref, err)
	}
	if err != nil {
		t.Skipf("image %s: %v; run: make images", ref, err)
	}
	return resolved.Image
}
