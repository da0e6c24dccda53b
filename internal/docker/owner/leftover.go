package owner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Standing is what can be known of the gateway that made an object.
type Standing string

// The standings of a [Leftover].
const (
	// Gone is a gateway of this state folder that has ended.
	Gone Standing = "gone"
	// Expired is a gateway of any other state folder whose object has passed
	// its time.
	Expired Standing = "expired"
	// Unknown is a gateway of another state folder whose object has time left:
	// its lock cannot be seen from here, so that it may live.
	Unknown Standing = "unknown"
)

// A Leftover is an object on the engine whose gateway is not known to live.
type Leftover struct {
	Swept
	Standing Standing
	// Created and Expires are zero if the engine or the labels do not say.
	Created, Expires time.Time
}

// Leftovers returns the objects of all gateways of all state folders but those
// whose gateway is seen to live. [Objects.Sweep] removes all of them but the
// Unknown.
func (o *Objects) Leftovers(ctx context.Context) ([]Leftover, error) {
	found, err := o.labelled(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var all []Leftover
	for _, object := range found {
		left := Leftover{Swept: object.Swept, Created: object.created, Expires: object.expires}
		switch {
		case object.State == o.books.state:
			lives, err := living(o.books.dir, object.Owner)
			if err != nil {
				return nil, err
			}
			if lives {
				continue
			}
			left.Standing = Gone
		case object.expired(now):
			left.Standing = Expired
		default:
			left.Standing = Unknown
		}
		all = append(all, left)
	}
	return all, nil
}

// living reports whether an owner of a state folder lives. One that cannot be
// told apart from the living is taken to live.
func living(dir, id string) (bool, error) {
	lease, err := takeOver(dir, id)
	if err != nil {
		return false, err
	}
	if lease == nil {
		return true, nil
	}
	return false, lease.Release()
}

// Discard removes leftovers whatever their standing, because somebody has said
// so. It returns those that it has removed, also if some of it failed. One
// that is gone meanwhile counts as removed.
func (o *Objects) Discard(ctx context.Context, leftovers []Leftover) ([]Leftover, error) {
	var (
		removed []Leftover
		errs    []error
	)
	for _, left := range leftovers {
		if err := o.removeObject(ctx, object{Swept: left.Swept}); err != nil {
			errs = append(errs, fmt.Errorf("remove %s %s: %w", left.Kind, left.ID, err))
			continue
		}
		removed = append(removed, left)
	}
	return removed, errors.Join(errs...)
}
