package docker

import "github.com/moby/moby/api/types/container"

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
