package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

const (
	// sweepEvery is the pause between two sweeps of Keep.
	sweepEvery = 5 * time.Second
	// skew is how far the clocks of two machines that use one engine may
	// differ: a gateway ends its containers at their time by its own clock.
	skew = 10 * time.Minute
)

// A Kind is a kind of object on an engine.
type Kind string

// The kinds of object that are swept.
const (
	ContainerObject Kind = "container"
	// GatewayObject is the container of a gateway that clients share.
	GatewayObject Kind = "gateway"
	NetworkObject Kind = "network"
	VolumeObject  Kind = "volume"
)

// A Swept is an object that a sweep has removed.
type Swept struct {
	Kind Kind
	// ID is the engine's; of a volume its name.
	ID string
	// Server is the catalog's name of what it was made for.
	Server string
	// Owner is the gateway that made it.
	Owner string
	// State is the state folder of that gateway.
	State string
}

// Keep sweeps now and every few seconds until the context ends. Failures are
// logged, and tried again.
func (e *Engine) Keep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var failing bool
	for {
		_, err := e.Sweep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			e.log.WarnContext(ctx, "sweep failed", "err", err)
		}
		failing = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep removes containers, networks and volumes that nobody owns any more:
// those of this state folder whose gateway is gone, those of this gateway that
// a failed removal has left, and those of any state folder that have expired.
// It returns what it removed, also if some of it failed.
func (e *Engine) Sweep(ctx context.Context) ([]Swept, error) {
	before := e.books()
	found, err := e.labelled(ctx)
	if err != nil {
		return nil, err
	}
	after := e.books()
	var (
		removed []Swept
		errs    []error
	)
	remove := func(object object) bool {
		if err := e.removeObject(ctx, object); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s %s: %w", object.Kind, object.ID, err))
			return false
		}
		e.log.InfoContext(ctx, "removed what its gateway left", "server", object.Server, "container", object.ID)
		removed = append(removed, object.Swept)
		return true
	}
	dead := make(map[string][]object)
	now := time.Now()
	for _, object := range found {
		switch {
		case object.State != e.state:
			if object.expired(now) {
				remove(object)
			}
		case object.Owner == after.owner:
			if object.Kind == ContainerObject && stray(object.ID, before, after) {
				remove(object)
			}
		default:
			dead[object.Owner] = append(dead[object.Owner], object)
		}
	}
	ids, err := known(e.dir)
	if err != nil {
		errs = append(errs, err)
	}
	for _, id := range ids {
		if _, ok := dead[id]; !ok && id != after.owner {
			dead[id] = nil // a lock file without anything else
		}
	}
	for id, objects := range dead {
		errs = append(errs, e.sweepOwner(id, objects, remove))
	}
	return removed, errors.Join(errs...)
}

// sweepOwner removes what an owner has left, unless it lives.
func (e *Engine) sweepOwner(id string, objects []object, remove func(object) bool) error {
	lease, err := takeOver(e.dir, id)
	if err != nil || lease == nil {
		return err
	}
	all := true
	for _, object := range objects {
		all = remove(object) && all
	}
	if !all {
		return lease.file.Close()
	}
	return lease.release()
}

// books is what an engine knows of its own containers at one time.
type books struct {
	owner        string // "" before the first start
	begun, ended int
	live         map[string]bool
}

func (e *Engine) books() books {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := books{begun: e.begun, ended: e.ended, live: make(map[string]bool, len(e.live))}
	if e.lease != nil {
		b.owner = e.lease.id
	}
	for id := range e.live {
		b.live[id] = true
	}
	return b
}

// stray reports whether a container of this gateway, listed by the engine
// between two looks at the books, is one that a failed removal has left: while
// nothing was being started, those that are not live are.
func stray(id string, before, after books) bool {
	quiet := before.begun == before.ended && before.begun == after.begun
	return quiet && !before.live[id] && !after.live[id]
}

// An object is something on the engine that carries our labels.
type object struct {
	Swept
	created, expires time.Time // zero if not known
}

// expired reports that gateways of other state folders may remove the object.
func (o object) expired(now time.Time) bool {
	return !o.expires.IsZero() && now.After(o.expires.Add(skew))
}

func labelledObject(kind Kind, id string, created time.Time, labels map[string]string) object {
	o := object{created: created, Swept: Swept{
		Kind: kind, ID: id,
		State: labels[labelState], Owner: labels[labelOwner], Server: labels[labelServer],
	}}
	if expires, err := time.Parse(time.RFC3339, labels[labelExpires]); err == nil {
		o.expires = expires
	}
	return o
}

// labelled returns everything of any gateway: containers first, because
// networks and volumes go only when nothing uses them.
func (e *Engine) labelled(ctx context.Context) ([]object, error) {
	ours := make(client.Filters).Add("label", labelState)
	var found []object
	containers, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, e.said(err)
	}
	for _, c := range containers.Items {
		o := labelledObject(ContainerObject, c.ID, time.Unix(c.Created, 0), c.Labels)
		if c.Labels[labelRole] == roleGateway {
			o.Kind = GatewayObject
			if c.State == container.StateRunning {
				o.expires = time.Time{} // it ends by itself once nobody uses it
			}
		}
		found = append(found, o)
	}
	networks, err := e.client.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return nil, e.said(err)
	}
	for _, n := range networks.Items {
		found = append(found, labelledObject(NetworkObject, n.ID, n.Created, n.Labels))
	}
	volumes, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: ours})
	if err != nil {
		return nil, e.said(err)
	}
	for _, v := range volumes.Items {
		created, _ := time.Parse(time.RFC3339, v.CreatedAt) // else it stays the zero time
		found = append(found, labelledObject(VolumeObject, v.Name, created, v.Labels))
	}
	return found, nil
}

func (e *Engine) removeObject(ctx context.Context, o object) error {
	ctx, cancel := context.WithTimeout(ctx, undoTime)
	defer cancel()
	var err error
	switch o.Kind {
	case ContainerObject, GatewayObject:
		return e.remove(ctx, o.ID)
	case NetworkObject:
		_, err = e.client.NetworkRemove(ctx, o.ID, client.NetworkRemoveOptions{})
	case VolumeObject:
		_, err = e.client.VolumeRemove(ctx, o.ID, client.VolumeRemoveOptions{})
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return e.said(err)
}
