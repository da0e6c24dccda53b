// Command leftovers fails if the engine has a container, a network or a volume
// of ours. It runs after the tests, which must leave nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/test/engine"
)

// label is on everything that a gateway makes.
const label = "dockgate.owner"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	found, err := leftovers(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leftovers:", err)
		os.Exit(1)
	}
	for _, line := range found {
		fmt.Fprintln(os.Stderr, "left behind:", line)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
	fmt.Println("nothing was left behind")
}

func leftovers(ctx context.Context) (found []string, err error) {
	docker, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, docker.Close()) }()
	ours := make(client.Filters).Add("label", label)
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, err
	}
	for _, c := range containers.Items {
		found = append(found, fmt.Sprintf("container %.12s %s %s (owner %s)", c.ID, c.Image, c.Status, c.Labels[label]))
	}
	networks, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return nil, err
	}
	for _, n := range networks.Items {
		found = append(found, fmt.Sprintf("network %.12s %s (owner %s)", n.ID, n.Name, n.Labels[label]))
	}
	volumes, err := docker.VolumeList(ctx, client.VolumeListOptions{Filters: ours})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Items {
		found = append(found, fmt.Sprintf("volume %s (owner %s)", v.Name, v.Labels[label]))
	}
	return found, nil
}
