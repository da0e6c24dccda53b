//go:build unix

package e2e_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

const gatewayFolder = "../../images/gateway"

// buildGateway builds the gateway's image from its Dockerfile, as the Dockerfile
// says, and returns its tag. The image goes with the test.
func buildGateway(t *testing.T, api *client.Client) string {
	t.Helper()
	withoutReaper(t)
	const authorities = "/etc/ssl/certs/ca-certificates.crt"
	folder := t.TempDir()
	for name, source := range map[string]string{
		"Dockerfile": filepath.Join(gatewayFolder, "Dockerfile"), "dockgate": binary, "ca-certificates.crt": authorities,
	} {
		content, err := os.ReadFile(source) //nolint:gosec // the files above
		if errors.Is(err, os.ErrNotExist) && source == authorities {
			content, err = nil, nil // of a machine that keeps them elsewhere
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), content, 0o755) //nolint:gosec // a program
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.TestLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	var said strings.Builder
	tag, err := provider.BuildImage(t.Context(), &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: folder, Repo: "dockgate-test/gateway-" + strings.ToLower(rand.Text()[:8]), Tag: "built", BuildLogWriter: &said,
	}})
	if err != nil {
		t.Fatalf("build the gateway's image: %v\n%s", err, &said)
	}
	t.Cleanup(func() {
		if _, err := api.ImageRemove(context.WithoutCancel(t.Context()), tag, client.ImageRemoveOptions{Force: true, PruneChildren: true}); err != nil {
			t.Error(err)
		}
	})
	return tag
}

// The image that the other tests run is what its Dockerfile makes.
func TestDockerfile(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/gateway")
	config := func(image string) map[string]any {
		found, err := api.ImageInspect(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		// Docker adds a PATH to what it builds.
		env := slices.DeleteFunc(slices.Sorted(slices.Values(found.Config.Env)), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
		return map[string]any{
			"ENV": env, "ENTRYPOINT": found.Config.Entrypoint, "CMD": found.Config.Cmd, "WORKDIR": found.Config.WorkingDir,
			"USER": found.Config.User, "VOLUME": slices.Sorted(maps.Keys(found.Config.Volumes)), "EXPOSE": len(found.Config.ExposedPorts),
		}
	}
	if diff := cmp.Diff(config(buildGateway(t, api)), config("dockgate/gateway")); diff != "" {
		t.Errorf("the image of the Dockerfile and that of the tests differ (-Dockerfile +tests):\n%s", diff)
	}
}

// The gateway's image serves HTTP, to who has a token, and takes its servers
// along when it is stopped.
func TestImageHTTP(t *testing.T) {
	api := needEngine(t)
	needImage(t, api, "dockgate/demo")
	image := buildGateway(t, api)
	server := "thing" + strings.ToLower(rand.Text()[:8])
	socket := strings.TrimPrefix(api.DaemonHost(), "unix://")
	if !strings.HasPrefix(socket, "/") {
		t.Skipf("the engine at %s is not on this machine", api.DaemonHost())
	}
	gateway, err := testcontainers.Run(t.Context(), image,
		testcontainers.WithLogger(log.TestLogger(t)),
		testcontainers.WithCmd("serve", "--http", "0.0.0.0:8811", "--approve", "all", "--catalog", "/catalog.yaml", "--server", server),
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader("version: 1\nservers: {" + server + ": {image: dockgate/demo}}\n"), ContainerFilePath: "/catalog.yaml", FileMode: 0o644,
		}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.Binds, host.CapDrop = []string{socket + ":/var/run/docker.sock"}, []string{"ALL"}
		}),
		testcontainers.WithWaitStrategy(wait.ForLog("/mcp").WithStartupTimeout(5*time.Minute)),
	)
	testcontainers.CleanupContainer(t, gateway)
	if err != nil {
		t.Fatal(err)
	}
	code, out, err := gateway.Exec(t.Context(), []string{"/dockgate", "token", "new", "ann"}, tcexec.Multiplexed())
	if err != nil {
		t.Fatal(err)
	}
	token, err := io.ReadAll(out)
	if err != nil || code != 0 {
		t.Fatalf("token new = %d, %s, %v", code, token, err)
	}
	address, err := gateway.ContainerIP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	endpoint := &mcp.StreamableClientTransport{
		Endpoint:   "http://" + address + ":8811/mcp",
		HTTPClient: &http.Client{Transport: bearer{transport, strings.Fields(string(token))[0]}},
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: server + "__echo", Arguments: map[string]any{"text": "over HTTP"}})
	if err != nil || result.IsError {
		t.Errorf("echo = %+v, %v, want an answer", result, err)
	}
	if got := labelled(t, api, "dockgate.server="+server); len(got) != 1 {
		t.Errorf("containers of the server: %v, want one", got)
	}
	_ = session.Close()
	if err := gateway.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "its servers go with the gateway", func() bool { return len(labelled(t, api, "dockgate.server="+server)) == 0 })
}
