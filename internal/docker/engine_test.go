package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest"
	testengine "github.com/dockgate/dockgate/test/engine"
)

// probeRef is the image of the probe on the engine under test. It is left
// there for the next run, as a build's cache is.
const probeRef = "dockgate.test/probe:latest"

// TestMain gives all tests one build of the probe, and looks for goroutines
// that nobody waited for.
func TestMain(m *testing.M) {
	if encoded := os.Getenv(gatewayVariable); encoded != "" {
		log.Fatal(gateway(encoded))
	}
	dir, err := os.MkdirTemp("", "dockgate-probe-")
	if err != nil {
		panic(err)
	}
	fixture.dir = dir
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		log.Print(err)
		code = 1
	}
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// fixture is what all tests of this package share.
var fixture struct {
	dir   string
	once  sync.Once
	image v1.Image
	pin   sandbox.Image
	err   error
}

// connect returns an engine with a state folder of its own.
func connect(t *testing.T, options docker.Options) *docker.Engine {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if options.State == "" {
		options.State = "test-" + strings.ToLower(rand.Text())
	}
	if options.ConfigDir == "" {
		options.ConfigDir = t.TempDir()
	}
	if options.Host == "" && options.Context == "" {
		options.Host = os.Getenv("DOCKER_HOST")
	}
	engine, err := docker.Connect(t.Context(), options)
	if err != nil {
		t.Fatalf("Connect(%+v) = %v", options, err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("Engine.Close() = %v", err)
		}
	})
	return engine
}

// require skips the test if no engine answers, or fails it if one is wanted.
func require(t *testing.T) *docker.Engine {
	t.Helper()
	engine := connect(t, docker.Options{})
	if _, err := engine.Info(t.Context()); err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("no engine answers: %v", err)
		}
		t.Skipf("no engine answers: %v", err)
	}
	return engine
}

// api is a client of the engine under test, for what the product does not do.
func api(t *testing.T) *client.Client {
	t.Helper()
	options := []client.Opt{}
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		options = append(options, client.WithHost(host))
	}
	c, err := client.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// probeImage builds the probe's image and loads it into the engine.
func probeImage(t *testing.T) (v1.Image, sandbox.Image) {
	t.Helper()
	engine := require(t)
	c := api(t)
	fixture.once.Do(func() { fixture.image, fixture.pin, fixture.err = buildProbe(engine, c) })
	if fixture.err != nil {
		t.Fatalf("image of the probe: %v", fixture.err)
	}
	return fixture.image, fixture.pin
}

func buildProbe(engine *docker.Engine, c *client.Client) (v1.Image, sandbox.Image, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary := filepath.Join(fixture.dir, "probe")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", binary, "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, sandbox.Image{}, errors.New(err.Error() + ": " + string(out))
	}
	image, err := imageOf(binary)
	if err != nil {
		return nil, sandbox.Image{}, err
	}
	tag, err := name.NewTag(probeRef)
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
	resolved, err := engine.Resolve(ctx, probeRef, nil)
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

// probeSpec starts the probe with small limits.
func probeSpec(image sandbox.Image, command ...string) sandbox.Spec {
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

func left(engine *docker.Engine) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		running, err := engine.Running(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, c := range running {
			names = append(names, c.Name+" "+c.State)
		}
		return names, nil
	}
}

func TestEngineKeepsTheContract(t *testing.T) {
	_, image := probeImage(t)
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Subject {
		engine := require(t)
		return sandboxtest.Subject{
			Engine:   engine,
			Spec:     probeSpec(image),
			Left:     left(engine),
			Enforces: sandboxtest.Enforced,
		}
	})
}
