package owner

import (
	"context"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Objects are what gateways have made on an engine. All methods may be called
// from any goroutine.
type Objects struct{ books *Books }

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
		State: labels[labelState], Owner: labels[Label], Server: labels[labelServer],
	}}
	if expires, err := time.Parse(time.RFC3339, labels[labelExpires]); err == nil {
		o.expires = expires
	}
	return o
}

// labelled returns everything of any gateway: containers first, because
// networks and volumes go only when nothing uses them.
func (o *Objects) labelled(ctx context.Context) ([]object, error) {
	ours := make(client.Filters).Add("label", labelState)
	var found []object
	containers, err := o.books.API.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, o.books.Explain(err)
	}
	for _, c := range containers.Items {
		what := labelledObject(ContainerObject, c.ID, time.Unix(c.Created, 0), c.Labels)
		if c.Labels[labelRole] == roleGateway {
			what.Kind = GatewayObject
			if c.State == container.StateRunning {
				what.expires = time.Time{} // it ends by itself once nobody uses it
			}
		}
		found = append(found, what)
	}
	networks, err := o.books.API.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return nil, o.books.Explain(err)
	}
	for _, n := range networks.Items {
		found = append(found, labelledObject(NetworkObject, n.ID, n.Created, n.Labels))
	}
	volumes, err := o.books.API.VolumeList(ctx, client.VolumeListOptions{Filters: ours})
	if err != nil {
		return nil, o.books.Explain(err)
	}
	for _, v := range volumes.Items {
		created, _ := time.Parse(time.RFC3339, v.CreatedAt) // else it stays the zero time
		found = append(found, labelledObject(VolumeObject, v.Name, created, v.Labels))
	}
	return found, nil
}

func (o *Objects) removeObject(ctx context.Context, what object) error {
	ctx, cancel := context.WithTimeout(ctx, UndoTime)
	defer cancel()
	var err error
	switch what.Kind {
	case ContainerObject, GatewayObject:
		return o.books.Remove(ctx, what.ID)
	case NetworkObject:
		_, err = o.books.API.NetworkRemove(ctx, what.ID, client.NetworkRemoveOptions{})
	case VolumeObject:
		_, err = o.books.API.VolumeRemove(ctx, what.ID, client.VolumeRemoveOptions{})
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return o.books.Explain(err)
}
