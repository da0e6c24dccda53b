package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/bench/raw"
)

// label is on every container that the benchmark starts by itself.
const label = "dockgate.bench"

// A template is how the gateway creates the containers of a server, as the
// engine tells it. What the gateway is compared with is created just so.
type template struct {
	config container.Config
	host   container.HostConfig
}

// An attached is a container behind the bare calls of the engine: created,
// attached to, started.
type attached struct {
	*raw.Conversation
	engine *client.Client
	id     string
	stream client.HijackedResponse
	in     io.Reader
	stop   func() bool
}

// attach starts a container of a template. It ends with ctx at the latest.
func (w *world) attach(ctx context.Context, t template) (*attached, error) {
	config := t.config
	config.Labels = map[string]string{label: w.id}
	created, err := w.engine.ContainerCreate(ctx, client.ContainerCreateOptions{Config: &config, HostConfig: &t.host})
	if err != nil {
		return nil, err
	}
	joined, err := w.engine.ContainerAttach(ctx, created.ID, client.ContainerAttachOptions{
		Stream: true, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, err
	}
	a := &attached{engine: w.engine, id: created.ID, stream: joined.HijackedResponse, in: &raw.Frames{From: joined.Reader}}
	a.Conversation = raw.New(a.in, joined.Conn)
	a.stop = context.AfterFunc(ctx, a.stream.Close)
	if _, err := w.engine.ContainerStart(ctx, a.id, client.ContainerStartOptions{}); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	return a, nil
}

// close ends the container and waits until it is gone.
func (a *attached) close(ctx context.Context) error {
	a.stop()
	removed := a.engine.ContainerWait(ctx, a.id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	err := a.stream.CloseWrite()
	defer a.stream.Close()
	select {
	case <-removed.Result:
	case waiting := <-removed.Error:
		if !cerrdefs.IsNotFound(waiting) {
			err = errors.Join(err, waiting)
		}
	}
	return err
}

// dockerRun returns the arguments of a "docker run -i" that starts a container
// of a template.
func (w *world) dockerRun(t template) []string {
	h := t.host
	args := []string{
		"run", "-i", "--rm", "--pull", "never", "--label", label + "=" + w.id,
		"--network", string(h.NetworkMode), "--ipc", string(h.IpcMode),
		"--log-driver", h.LogConfig.Type,
		"--memory", strconv.FormatInt(h.Memory, 10), "--memory-swap", strconv.FormatInt(h.MemorySwap, 10),
		"--cpus", strconv.FormatFloat(float64(h.NanoCPUs)/1e9, 'f', -1, 64),
		"--cpu-shares", strconv.FormatInt(h.CPUShares, 10),
		"--shm-size", strconv.FormatInt(h.ShmSize, 10),
		"--no-healthcheck",
	}
	if h.Init != nil && *h.Init {
		args = append(args, "--init")
	}
	if h.ReadonlyRootfs {
		args = append(args, "--read-only")
	}
	if h.PidsLimit != nil {
		args = append(args, "--pids-limit", strconv.FormatInt(*h.PidsLimit, 10))
	}
	for _, dropped := range h.CapDrop {
		args = append(args, "--cap-drop", dropped)
	}
	for _, option := range h.SecurityOpt {
		args = append(args, "--security-opt", option)
	}
	for target, options := range h.Tmpfs {
		args = append(args, "--tmpfs", target+":"+options)
	}
	for _, limit := range h.Ulimits {
		args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", limit.Name, limit.Soft, limit.Hard))
	}
	for _, variable := range t.config.Env {
		args = append(args, "--env", variable)
	}
	if t.config.User != "" {
		args = append(args, "--user", t.config.User)
	}
	words := slices.Concat(t.config.Entrypoint, t.config.Cmd)
	return append(append(args, "--entrypoint", words[0], t.config.Image), words[1:]...)
}

// none waits until the engine has no container of a filter, such as
// "label", "dockgate.server=demo".
func (w *world) none(ctx context.Context, labels ...string) error {
	filters := make(client.Filters)
	for _, l := range labels {
		filters = filters.Add("label", l)
	}
	return eventually(ctx, 10*time.Millisecond, func() (bool, error) {
		found, err := w.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
		return len(found.Items) == 0, err
	})
}
