// Package twin starts gateways in containers like the one that this process runs
// in, so that clients of one kind of container share a gateway that outlives
// each of them.
//
// It decides what of its own container such a gateway gets: the same image,
// user, mounts, network and limits, and no rights that it does not have itself.
// It refuses to start one where the engine does not run this container, and
// where the state folder could not be shared. A gateway that was started is
// protected from sweeps until it shows by itself that it lives; if the start
// fails nothing is left.
package twin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/owner"
)

// The limits of a gateway's container, where its model has none.
const (
	defaultMemory = 1 * units.GiB
	defaultPIDs   = 512
	// stopTime is how long it has to stop its servers, in seconds.
	stopTime = 30
)

// A Twin is the model of containers in which gateways run: the one that this
// process is in.
type Twin struct {
	// Key tells what its containers are: those with the same key have the same
	// image, user, mounts, network and limits.
	Key string

	books *owner.Books
	model client.ContainerCreateOptions
}

// Open takes a container as the model of others. It must have the state folder
// where others can have it too. The variables are those of its environment
// that they get. Close the Twin when done.
//
// The errors are [*StrangerError], [*FleetingError] and that of an engine that
// cannot be asked.
func Open(ctx context.Context, o owner.Options, id string, variables []string) (_ *Twin, err error) {
	books, err := owner.Open(o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, books.API.Close())
		}
	}()
	if id == "" {
		return nil, &StrangerError{Host: books.Host()}
	}
	found, err := books.API.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, &StrangerError{Host: books.Host()}
	case err != nil:
		return nil, books.Explain(err)
	case found.Container.Config == nil || found.Container.HostConfig == nil:
		return nil, &StrangerError{Host: books.Host()}
	}
	if !lasts(found.Container.Mounts, books.Dir()) {
		return nil, &FleetingError{Dir: books.Dir()}
	}
	model := likeness(found.Container, variables)
	text, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &Twin{Key: hex.EncodeToString(sum[:6]), books: books, model: model}, nil
}

// Close closes the connection to the engine; what was started goes on.
func (t *Twin) Close() error { return t.books.API.Close() }

// lasts reports whether a folder of a container can be mounted into others: it
// is on a volume that has a name, or on the host.
func lasts(mounts []container.MountPoint, dir string) bool {
	var on container.MountPoint
	for _, m := range mounts {
		holds := dir == m.Destination || strings.HasPrefix(dir, strings.TrimSuffix(m.Destination, "/")+"/")
		if holds && len(m.Destination) >= len(on.Destination) {
			on = m
		}
	}
	anonymous := regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(on.Name)
	return on.Type == mount.TypeBind || on.Type == mount.TypeVolume && !anonymous
}

// likeness is what is created to be like a container: with what it was given,
// and no rights that it does not have.
func likeness(c container.InspectResponse, variables []string) client.ContainerCreateOptions {
	host := c.HostConfig
	var environment []string
	for _, variable := range c.Config.Env {
		if name, _, _ := strings.Cut(variable, "="); slices.Contains(variables, name) {
			environment = append(environment, variable)
		}
	}
	resources := container.Resources{
		Memory: cmp.Or(host.Memory, defaultMemory), CPUShares: host.CPUShares, NanoCPUs: host.NanoCPUs,
		CPUPeriod: host.CPUPeriod, CPUQuota: host.CPUQuota, PidsLimit: host.PidsLimit,
	}
	resources.MemorySwap = resources.Memory
	if most := int64(defaultPIDs); host.PidsLimit == nil || *host.PidsLimit <= 0 {
		resources.PidsLimit = &most
	}
	seconds := stopTime
	return client.ContainerCreateOptions{
		Config: &container.Config{
			Image: c.Image, User: c.Config.User, WorkingDir: c.Config.WorkingDir, Env: sorted(environment), StopTimeout: &seconds,
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &container.HostConfig{
			AutoRemove:    true,
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:     container.LogConfig{Type: "none"}, // it keeps its own, which outlives it
			Binds:         sorted(host.Binds), Mounts: host.Mounts, VolumesFrom: host.VolumesFrom, Tmpfs: host.Tmpfs,
			NetworkMode: host.NetworkMode, DNS: host.DNS, DNSOptions: host.DNSOptions, DNSSearch: host.DNSSearch, ExtraHosts: host.ExtraHosts,
			CapAdd: sorted(host.CapAdd), CapDrop: sorted(host.CapDrop), GroupAdd: host.GroupAdd, SecurityOpt: sorted(host.SecurityOpt),
			ReadonlyRootfs: host.ReadonlyRootfs, UsernsMode: host.UsernsMode, Runtime: host.Runtime,
			Resources: resources,
		},
	}
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

// Start starts a gateway in a container of its own: the program with the
// arguments, and at their end "--owner" with the owner that it must be, see
// [owner.Hold]. Until ctx ends it is protected from sweeps; then it must have
// shown that it lives. What is returned gets how it ended, if that is before.
func (t *Twin) Start(ctx context.Context, program string, args ...string) (ended <-chan error, err error) {
	lock, err := t.books.Share()
	if err != nil {
		return nil, err
	}
	options, config := t.model, *t.model.Config
	options.Name = "dockgate-gateway-" + strings.ToLower(rand.Text()[:10])
	config.Entrypoint, config.Cmd = []string{program}, append(slices.Clone(args), "--owner", lock.Owner)
	config.Labels = t.books.GatewayLabels(lock.Owner)
	options.Config = &config
	if ended, err = t.create(ctx, options, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("start a container for the gateway: %w", err), lock.Release())
	}
	return ended, nil
}

// create creates and starts a container. If that fails nothing is left of it;
// else the lock is unlocked when ctx ends, or the container.
func (t *Twin) create(ctx context.Context, options client.ContainerCreateOptions, lock *owner.Lease) (<-chan error, error) {
	lasting, cancel := owner.Outlive(ctx)
	defer cancel()
	created, err := t.books.API.ContainerCreate(lasting, options)
	if err != nil {
		return nil, t.books.Explain(err)
	}
	waiting, forget := context.WithCancel(ctx)
	exits := t.books.API.ContainerWait(waiting, created.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	ended := make(chan error, 1)
	// If all goes well nothing waits for this: it ends with ctx, or the gateway.
	var watch sync.WaitGroup
	watch.Go(func() {
		defer forget()
		var how error
		select {
		case exit := <-exits.Result:
			if exit.StatusCode != 0 {
				how = &EndError{Code: int(exit.StatusCode)}
			}
		case err := <-exits.Error:
			how = t.books.Explain(err)
		}
		ended <- errors.Join(how, lock.Unlock())
	})
	_, err = t.books.API.ContainerStart(lasting, created.ID, client.ContainerStartOptions{})
	if err = cmp.Or(err, ctx.Err()); err == nil {
		return ended, nil
	}
	undoing, end := context.WithTimeout(context.WithoutCancel(ctx), owner.UndoTime)
	defer end()
	err = errors.Join(t.books.Explain(err), t.books.Remove(undoing, created.ID))
	forget()
	watch.Wait() // it has unlocked
	return nil, err
}

// A StrangerError says that the engine does not run the container that this
// process is in.
type StrangerError struct{ Host string }

// Error names the engine.
func (e *StrangerError) Error() string {
	return "the engine at " + e.Host + " does not run this container, so it cannot run a shared gateway beside it"
}

// Hint says what can be done.
func (e *StrangerError) Hint() string {
	return "mount the socket of the engine that runs it; or serve without --share"
}

// A FleetingError says that the state folder is this container's own.
type FleetingError struct{ Dir string }

// Error names the folder.
func (e *FleetingError) Error() string {
	return "the state folder " + e.Dir + " is on no volume with a name, so a shared gateway cannot have it"
}

// Hint says what to add.
func (e *FleetingError) Hint() string {
	return `add "-v", "dockgate:` + e.Dir + `" to the docker run line of the client's configuration`
}

// An EndError is how a gateway in a container of its own has ended.
type EndError struct{ Code int }

// Error names the exit code.
func (e *EndError) Error() string {
	return fmt.Sprintf("its container has ended with code %d", e.Code)
}

// ExitCode returns the exit code.
func (e *EndError) ExitCode() int { return e.Code }
