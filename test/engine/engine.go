// Package engine connects tests and the tools beside them to the engine that
// test/engine.sh found or started.
package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/moby/moby/client"
)

// Connect returns a client of the engine that the Docker command line would
// use: DOCKER_HOST, or the current context. The caller closes it. An engine
// that does not answer is an error.
func Connect(ctx context.Context) (*client.Client, error) {
	options := []client.Opt{client.FromEnv}
	if os.Getenv("DOCKER_HOST") == "" {
		out, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
		if host := strings.TrimSpace(string(out)); err == nil && host != "" {
			options = append(options, client.WithHost(host))
		}
	}
	connected, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("docker engine: %w", err)
	}
	if _, err := connected.Ping(ctx, client.PingOptions{}); err != nil {
		_ = connected.Close()
		return nil, fmt.Errorf("docker engine: %w; test/engine.sh finds or starts one", err)
	}
	return connected, nil
}
