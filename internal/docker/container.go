package docker

import (
	"fmt"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// containerOptions is the whole of what the engine is asked to create.
func containerOptions(spec sandbox.Spec, name string, labels map[string]string) (client.ContainerCreateOptions, error) {
	image, err := pull.Exactly(spec.Image)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	var network container.NetworkMode
	switch spec.Network {
	case catalog.NetworkNone:
		network = "none"
	case catalog.NetworkFull:
		network = "bridge"
	default:
		return client.ContainerCreateOptions{}, fmt.Errorf("network %q cannot be enforced", spec.Network)
	}
	yes := true
	options := client.ContainerCreateOptions{
		Name:     name,
		Platform: pull.Platform(spec.Image.Pin.Platform),
		Config: &container.Config{
			Image:        image,
			Entrypoint:   exactly(spec.Entrypoint),
			Cmd:          exactly(spec.Command),
			WorkingDir:   spec.WorkingDir,
			User:         spec.User,
			Env:          spec.Environ(),
			Labels:       labels,
			AttachStdin:  !spec.NoInput,
			AttachStdout: true,
			AttachStderr: true,
			OpenStdin:    !spec.NoInput,
			// The container's stdin closes with our connection, so that a
			// server whose gateway was killed sees the end of its input.
			StdinOnce:   !spec.NoInput,
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &container.HostConfig{
			AutoRemove:     true,
			Init:           &yes,
			LogConfig:      container.LogConfig{Type: "none"},
			NetworkMode:    network,
			ExtraHosts:     spec.ExtraHosts,
			IpcMode:        container.IPCModePrivate,
			ReadonlyRootfs: true,
			CapDrop:        []string{"ALL"},
			SecurityOpt:    []string{"no-new-privileges"},
			Tmpfs:          tmpfs(spec.Tmpfs),
			Mounts:         mounts(spec.Binds()),
			ShmSize:        spec.Limits.Shm,
			Resources: container.Resources{
				Memory:     spec.Limits.Memory,
				MemorySwap: spec.Limits.Memory,
				NanoCPUs:   spec.Limits.NanoCPUs,
				CPUShares:  spec.Limits.CPUShares,
				PidsLimit:  &spec.Limits.PIDs,
				Ulimits:    []*container.Ulimit{(&units.Ulimit{Name: "nofile", Soft: spec.Limits.Files, Hard: spec.Limits.Files})},
			},
		},
	}
	beside(options.HostConfig, spec.Beside)
	return options, nil
}

// beside joins a container to the network and the processes of another one,
// and lets it end those, whoever they run as. It has no init process of its
// own: the other one's takes care of its processes too.
func beside(host *container.HostConfig, id string) {
	if id == "" {
		return
	}
	host.NetworkMode = container.NetworkMode("container:" + id)
	host.PidMode = container.PidMode("container:" + id)
	host.CapAdd = []string{"KILL"}
	host.Init = nil
}

// exactly is never nil: the engine puts the image's own in place of nothing,
// and the Spec is already complete.
func exactly(words []string) []string { return append([]string{}, words...) }

func tmpfs(all []sandbox.Tmpfs) map[string]string {
	options := make(map[string]string, len(all))
	for _, t := range all {
		// Package managers and runtimes run what they unpack there.
		options[t.Target] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", t.Size)
	}
	return options
}

func mounts(all []sandbox.Mount) []mount.Mount {
	binds := make([]mount.Mount, 0, len(all))
	for _, m := range all {
		if m.Volume != "" {
			binds = append(binds, mount.Mount{Type: mount.TypeVolume, Source: m.Volume, Target: m.Target, ReadOnly: m.ReadOnly})
			continue
		}
		binds = append(binds, mount.Mount{
			// Unlike the older Binds, a mount whose source is missing fails.
			Type:        mount.TypeBind,
			Source:      m.Source,
			Target:      m.Target,
			ReadOnly:    m.ReadOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	return binds
}
