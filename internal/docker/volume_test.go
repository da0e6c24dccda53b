package docker_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
	"github.com/dockgate/dockgate/internal/secret"
)

// A volume by its name outlives the container, and is made if it is not there;
// the file of a secret is mounted, and cannot be written.
func TestVolumesAndSecretFiles(t *testing.T) {
	_, image := dockertest.Probe(t)
	c := dockertest.API(t)
	engine := dockertest.Require(t)
	if !engine.Local() {
		t.Skip("the engine does not see this machine's files")
	}
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(credentials, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := "dockgate-test-" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		if _, err := c.VolumeRemove(context.WithoutCancel(t.Context()), name, client.VolumeRemoveOptions{}); err != nil {
			t.Errorf("the volume is not there after the container: %v", err)
		}
	})
	spec := dockertest.Spec(image, probe.Look)
	spec.Mounts = []sandbox.Mount{{Volume: name, Target: "/kept"}}
	spec.Secrets = []sandbox.Secret{{Name: "probe.file", From: "CREDENTIALS", Env: "CREDENTIALS", File: true, Value: secret.NewValue(credentials)}}
	report := looks(t, engine, spec)
	for target, want := range map[string]string{"/kept": "rw", spec.Secrets[0].Target(): "ro"} {
		if got, _, _ := strings.Cut(report.Mounts[target], ","); got != want {
			t.Errorf("mount %s has %q, want %s", target, report.Mounts[target], want)
		}
	}
}
