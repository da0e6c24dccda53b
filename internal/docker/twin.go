package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// The limits of a gateway's container, where its model has none.
const (
	twinMemory = 1 * units.GiB
	twinPIDs   = 512
	// twinStop is how long it has to stop its servers, in seconds.
	twinStop = 30
)

// A Twin is the model of containers in which gateways run: the one that this
// process is in.
type Twin struct {
	// Key tells what its containers are: those with the same key have the same
	// image, user, mounts, network and limits.
	Key string

	engine *Engine
	model  client.ContainerCreateOptions
}

// Twin takes a container as the model of others. It must have the state folder
// where others can have it too. The variables are those of its environment
// that they get.
//
// The errors are [*StrangerError], [*FleetingError] and [*EngineError].
func (e *Engine) Twin(ctx context.Context, id string, variables []string) (*Twin, error) {
	if id == "" {
		return nil, &StrangerError{Host: e.host}
	}
	found, err := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, &StrangerError{Host: e.host}
	case err != nil:
		return nil, e.said(err)
	case found.Container.Config == nil || found.Container.HostConfig == nil:
		return nil, &StrangerError{Host: e.host}
	}
	if !lasts(found.Container.Mounts, e.dir) {
		return nil, &FleetingError{Dir: e.dir}
	}
	model := likeness(found.Container, variables)
	text, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &Twin{Key: hex.EncodeToString(sum[:6]), engine: e, model: model}, nil
}

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
		Memory: cmp.Or(host.Memory, twinMemory), CPUShares: host.CPUShares, NanoCPUs: host.NanoCPUs,
		CPUPeriod: host.CPUPeriod, CPUQuota: host.CPUQuota, PidsLimit: host.PidsLimit,
	}
	resources.MemorySwap = resources.Memory
	if most := int64(twinPIDs); host.PidsLimit == nil || *host.PidsLimit <= 0 {
		resources.PidsLimit = &most
	}
	seconds := twinStop
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
// [Hold]. Until ctx ends it is protected from sweeps; then it must have shown
// that it lives. What is returned gets how it ended, if that is before.
func (t *Twin) Start(ctx context.Context, program string, args ...string) (ended <-chan error, err error) {
	e := t.engine
	lock, err := takeLease(e.dir, shared)
	if err != nil {
		return nil, err
	}
	options, config := t.model, *t.model.Config
	options.Name = "dockgate-gateway-" + strings.ToLower(rand.Text()[:10])
	config.Entrypoint, config.Cmd = []string{program}, append(slices.Clone(args), "--owner", lock.id)
	config.Labels = e.labels(lock.id, "", time.Now())
	delete(config.Labels, labelServer)
	config.Labels[labelRole] = roleGateway
	options.Config = &config
	if ended, err = e.startTwin(ctx, options, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("start a container for the gateway: %w", err), lock.release())
	}
	return ended, nil
}

// startTwin creates and starts a container. If that fails nothing is left of
// it; else the lock is unlocked when ctx ends, or the container.
func (e *Engine) startTwin(ctx context.Context, options client.ContainerCreateOptions, lock *lease) (<-chan error, error) {
	lasting, cancel := outlive(ctx)
	defer cancel()
	created, err := e.client.ContainerCreate(lasting, options)
	if err != nil {
		return nil, e.said(err)
	}
	waiting, forget := context.WithCancel(ctx)
	exits := e.client.ContainerWait(waiting, created.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	ended := make(chan error, 1)
	// If all goes well nothing waits for this: it ends with ctx, or the gateway.
	var watch sync.WaitGroup
	watch.Go(func() {
		defer forget()
		var how error
		select {
		case exit := <-exits.Result:
			if exit.StatusCode != 0 {
				how = &TwinError{Code: int(exit.StatusCode)}
			}
		case err := <-exits.Error:
			how = e.said(err)
		}
		ended <- errors.Join(how, lock.file.Close())
	})
	_, err = e.client.ContainerStart(lasting, created.ID, client.ContainerStartOptions{})
	if err = cmp.Or(err, ctx.Err()); err == nil {
		return ended, nil
	}
	undoing, end := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer end()
	err = errors.Join(e.said(err), e.remove(undoing, created.ID))
	forget()
	watch.Wait() // it has unlocked
	return nil, err
}

// Hold shows that the gateway lives whose container has this owner, until it is
// released. Its own process calls it first of all.
func Hold(dir, owner string) (release func() error, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if !isOwner(owner) {
		return nil, fmt.Errorf("%q is no owner", owner)
	}
	l := leaseOf(dir, owner)
	held, err := l.file.TryRLock()
	if err != nil {
		return nil, fmt.Errorf("lock of this gateway: %w", err)
	}
	if !held || !l.named() {
		return nil, errors.Join(errors.New("this gateway's container is being removed"), l.file.Close())
	}
	return l.release, nil
}

// A Gateway is a container of a gateway that clients share.
type Gateway struct {
	Container
	// Lives is false for what a gateway has left that has ended.
	Lives bool
}

// Gateways returns the containers of shared gateways of this state folder, the
// oldest first.
func (e *Engine) Gateways(ctx context.Context) ([]Gateway, error) {
	all, err := e.containers(ctx, roleGateway)
	if err != nil {
		return nil, err
	}
	gateways := make([]Gateway, len(all))
	for i, c := range all {
		gateways[i].Container = c
		if gateways[i].Lives, err = living(e.dir, c.Owner); err != nil {
			return nil, err
		}
	}
	return gateways, nil
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

// A TwinError is how a gateway in a container of its own has ended.
type TwinError struct{ Code int }

// Error names the exit code.
func (e *TwinError) Error() string {
	return fmt.Sprintf("its container has ended with code %d", e.Code)
}

// ExitCode returns the exit code.
func (e *TwinError) ExitCode() int { return e.Code }
