package dockertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Main runs the tests of a package, gives them one build of the probe, looks for
// goroutines that nobody waited for, and returns the exit code. In a process that
// [KilledGateway] started it is that gateway.
func Main(m *testing.M) int {
	if encoded := os.Getenv(gatewayVariable); encoded != "" {
		log.Print(gateway(encoded))
		return 1
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
	return code
}

// gatewayVariable makes the test binary a gateway that starts one container,
// says its id, and waits to be killed. Its value is an [order].
const gatewayVariable = "DOCKGATE_TEST_GATEWAY"

// An order is what a gateway is to do that is killed.
type order struct {
	Options owner.Options
	Spec    sandbox.Spec
}

// gateway is the main of such a process.
func gateway(encoded string) error {
	var todo order
	if err := json.Unmarshal([]byte(encoded), &todo); err != nil {
		return err
	}
	ctx := context.Background()
	engine, err := docker.Connect(ctx, todo.Options)
	if err != nil {
		return err
	}
	p, err := engine.Start(ctx, todo.Spec)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(p.ID() + "\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, p)
	return errors.Join(err, errors.New("the container went before the gateway"))
}

// KilledGateway starts a gateway that starts one container, kills it with
// SIGKILL, and returns the id of the container that it has left.
func KilledGateway(t *testing.T, o owner.Options, spec sandbox.Spec) string {
	t.Helper()
	encoded, err := json.Marshal(order{o, spec})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), gatewayVariable+"="+string(encoded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("gateway = %v, want the id of its container", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("gateway exits by itself")
	}
	return strings.TrimSpace(id)
}

// Goes waits until the container is gone.
func Goes(t *testing.T, c *client.Client, id string) {
	t.Helper()
	wait := c.ContainerWait(t.Context(), id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-wait.Result:
	case err := <-wait.Error:
		if !cerrdefs.IsNotFound(err) {
			t.Fatalf("container %s stays: %v", id, err)
		}
	}
}

// Exists reports whether the engine has the container.
func Exists(t *testing.T, c *client.Client, id string) bool {
	t.Helper()
	_, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil && !cerrdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}
