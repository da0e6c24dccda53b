package dockertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/sandbox"
	testengine "github.com/dockgate/dockgate/test/engine"
)

// ProbeRef is the image of the probe on the engine under test. It is left
// there for the next run, as a build's cache is.
const ProbeRef = "dockgate.test/probe:latest"

// fixture is what all tests of a package share.
var fixture struct {
	dir   string
	once  sync.Once
	image v1.Image
	pin   sandbox.Image
	err   error
}

// Probe builds the image of the probe, once in a process, and loads it into the
// engine.
func Probe(t *testing.T) (v1.Image, sandbox.Image) {
	t.Helper()
	engine := Require(t)
	c := API(t)
	fixture.once.Do(func() { fixture.image, fixture.pin, fixture.err = buildProbe(engine, c) })
	if fixture.err != nil {
		t.Fatalf("image of the probe: %v", fixture.err)
	}
	return fixture.image, fixture.pin
}

func buildProbe(engine *docker.Engine, c *client.Client) (v1.Image, sandbox.Image, error) {
	ctx := context.Background()
	binary := filepath.Join(fixture.dir, "probe")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", binary, "github.com/dockgate/dockgate/internal/docker/dockertest/testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, sandbox.Image{}, errors.New(err.Error() + ": " + string(out))
	}
	image, err := imageOf(binary)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	tag, err := name.NewTag(ProbeRef)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	archive := filepath.Join(fixture.dir, "probe.tar")
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		return nil, sandbox.Image{}, err
	}
	file, err := os.Open(archive)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	defer func() { _ = file.Close() }()
	if err := testengine.Load(ctx, c, file); err != nil {
		return nil, sandbox.Image{}, err
	}
	resolved, err := engine.Resolve(ctx, ProbeRef, nil)
	return image, resolved.Image, err
}

// imageOf makes an image of one layer with the program and an empty /tmp.
func imageOf(binary string) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, entry := range []struct {
		header tar.Header
		body   []byte
	}{
		{tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
		{tar.Header{Name: "probe", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}, program},
	} {
		if err := w.WriteHeader(&entry.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(entry.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH,
		RootFS: mustConfig(image).RootFS,
		Config: v1.Config{
			Entrypoint: []string{"/probe"},
			Env:        []string{"PATH=/", "FROM_IMAGE=yes"},
			User:       "65532",
			WorkingDir: "/tmp",
			Volumes:    map[string]struct{}{"/b": {}, "/a": {}},
		},
	})
}

func mustConfig(image v1.Image) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err)
	}
	return config
}

// Spec starts the probe with small limits.
func Spec(image sandbox.Image, command ...string) sandbox.Spec {
	return sandbox.Spec{
		Server:     "probe",
		Image:      image,
		Entrypoint: []string{"/probe"},
		Command:    command,
		User:       "65532",
		Network:    "none",
		Tmpfs:      []sandbox.Tmpfs{{Target: "/a", Size: 1 << 20}, {Target: "/b", Size: 1 << 20}},
		Limits: sandbox.Limits{
			Memory: 64 << 20, NanoCPUs: 1_500_000_000, CPUShares: 512, PIDs: 64, Shm: 8 << 20, Files: 4096,
		},
	}
}
