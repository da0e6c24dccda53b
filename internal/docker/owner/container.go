package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// A Container is a container of a gateway of this state folder.
type Container struct {
	ID     string
	Name   string
	Server string
	// Image is the image by digest or id.
	Image string
	// Owner is the gateway that started it.
	Owner   string
	Created time.Time
	Expires time.Time
	// State is the engine's word: "created", "running", "removing", "exited", …
	State string
}

// Running returns the containers of servers of all gateways of this state
// folder, the oldest first.
func (o *Objects) Running(ctx context.Context) ([]Container, error) { return o.containers(ctx, "") }

// A Gateway is a container of a gateway that clients share.
type Gateway struct {
	Container
	// Lives is false for what a gateway has left that has ended.
	Lives bool
}

// Gateways returns the containers of shared gateways of this state folder, the
// oldest first.
func (o *Objects) Gateways(ctx context.Context) ([]Gateway, error) {
	all, err := o.containers(ctx, roleGateway)
	if err != nil {
		return nil, err
	}
	gateways := make([]Gateway, len(all))
	for i, c := range all {
		gateways[i].Container = c
		if gateways[i].Lives, err = living(o.books.dir, c.Owner); err != nil {
			return nil, err
		}
	}
	return gateways, nil
}

// containers returns those of one role.
func (o *Objects) containers(ctx context.Context, role string) ([]Container, error) {
	list, err := o.books.API.ContainerList(ctx, client.ContainerListOptions{
		All:     true,
		Filters: make(client.Filters).Add("label", labelState+"="+o.books.state),
	})
	if err != nil {
		return nil, o.books.Explain(err)
	}
	running := make([]Container, 0, len(list.Items))
	for _, found := range list.Items {
		if found.Labels[labelRole] != role {
			continue
		}
		what := labelledObject(ContainerObject, found.ID, time.Unix(found.Created, 0), found.Labels)
		c := Container{
			ID: found.ID, Server: what.Server, Owner: what.Owner, Image: found.Image,
			Created: what.created, Expires: what.expires, State: string(found.State),
		}
		if len(found.Names) > 0 {
			c.Name = strings.TrimPrefix(found.Names[0], "/")
		}
		running = append(running, c)
	}
	slices.SortStableFunc(running, func(a, b Container) int { return a.Created.Compare(b.Created) })
	return running, nil
}

// Stats is what a container uses.
type Stats struct {
	// CPU is the share of one processor over the last second: 1.5 is one and a half.
	CPU float64
	// Memory is in bytes, without what the kernel can drop at once.
	Memory, MemoryLimit uint64
	PIDs, PIDLimit      uint64
	// NetworkIn and NetworkOut are in bytes since the start.
	NetworkIn, NetworkOut uint64
	// Read and Written are in bytes from and to disks since the start.
	Read, Written uint64
}

// ErrNotOurs is what errors wrap about a container that no gateway of this
// state folder has made, or that is gone.
var ErrNotOurs = errors.New("no such container of this state folder")

// Stats returns what the container uses. The engine takes a second to
// measure.
func (o *Objects) Stats(ctx context.Context, id string) (Stats, error) {
	if err := o.own(ctx, id); err != nil {
		return Stats{}, err
	}
	response, err := o.books.API.ContainerStats(ctx, id, client.ContainerStatsOptions{IncludePreviousSample: true})
	if err != nil {
		return Stats{}, o.books.Explain(err)
	}
	var sample container.StatsResponse
	if err := errors.Join(json.NewDecoder(response.Body).Decode(&sample), response.Body.Close()); err != nil {
		return Stats{}, fmt.Errorf("usage of container %s: %w", id, err)
	}
	return measured(sample), nil
}

func measured(sample container.StatsResponse) Stats {
	s := Stats{
		Memory:      sample.MemoryStats.Usage,
		MemoryLimit: sample.MemoryStats.Limit,
		PIDs:        sample.PidsStats.Current,
		PIDLimit:    sample.PidsStats.Limit,
	}
	// The page cache that nobody uses, by its name on cgroups v1 and v2.
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if cache, ok := sample.MemoryStats.Stats[name]; ok && cache < s.Memory {
			s.Memory -= cache
			break
		}
	}
	used := sample.CPUStats.CPUUsage.TotalUsage - sample.PreCPUStats.CPUUsage.TotalUsage
	if elapsed := sample.Read.Sub(sample.PreRead); elapsed > 0 && !sample.PreRead.IsZero() {
		s.CPU = float64(used) / float64(elapsed)
	}
	for _, network := range sample.Networks {
		s.NetworkIn += network.RxBytes
		s.NetworkOut += network.TxBytes
	}
	for _, disk := range sample.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(disk.Op) {
		case "read":
			s.Read += disk.Value
		case "write":
			s.Written += disk.Value
		}
	}
	return s
}

// stopTime is how long a container has to end that somebody stops, whose Spec
// is not known.
const stopTime = 3 * time.Second

// Stop stops and removes a container of any gateway of this state folder. The
// gateway that started it sees that it was stopped from outside.
func (o *Objects) Stop(ctx context.Context, id string) error {
	if err := o.own(ctx, id); err != nil {
		return err
	}
	seconds := int(stopTime / time.Second)
	_, err := o.books.API.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return o.books.Explain(err)
	}
	return o.books.Remove(ctx, id)
}

// own checks that the container is one of this state folder.
func (o *Objects) own(ctx context.Context, id string) error {
	found, err := o.books.API.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return fmt.Errorf("container %s: %w", id, ErrNotOurs)
	case err != nil:
		return o.books.Explain(err)
	case found.Container.Config == nil || found.Container.Config.Labels[labelState] != o.books.state:
		return fmt.Errorf("container %s: %w", id, ErrNotOurs)
	}
	return nil
}
