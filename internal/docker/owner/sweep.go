package owner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// sweepEvery is the pause between two sweeps of Keep.
	sweepEvery = 5 * time.Second
	// skew is how far the clocks of two machines that use one engine may
	// differ: a gateway ends its containers at their time by its own clock.
	skew = 10 * time.Minute
)

// Keep sweeps now and every few seconds until the context ends. Failures are
// logged, and tried again.
func (o *Objects) Keep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var failing bool
	for {
		_, err := o.Sweep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			o.books.Logger.WarnContext(ctx, "sweep failed", "err", err)
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
func (o *Objects) Sweep(ctx context.Context) ([]Swept, error) {
	before := o.books.page()
	found, err := o.labelled(ctx)
	if err != nil {
		return nil, err
	}
	after := o.books.page()
	var (
		removed []Swept
		errs    []error
	)
	remove := func(object object) bool {
		if err := o.removeObject(ctx, object); err != nil {
			errs = append(errs, fmt.Errorf("sweep %s %s: %w", object.Kind, object.ID, err))
			return false
		}
		o.books.Logger.InfoContext(ctx, "removed what its gateway left", "server", object.Server, "container", object.ID)
		removed = append(removed, object.Swept)
		return true
	}
	dead := make(map[string][]object)
	now := time.Now()
	for _, object := range found {
		switch {
		case object.State != o.books.state:
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
	ids, err := known(o.books.dir)
	if err != nil {
		errs = append(errs, err)
	}
	for _, id := range ids {
		if _, ok := dead[id]; !ok && id != after.owner {
			dead[id] = nil // a lock file without anything else
		}
	}
	for id, objects := range dead {
		errs = append(errs, o.sweepOwner(id, objects, remove))
	}
	return removed, errors.Join(errs...)
}

// sweepOwner removes what an owner has left, unless it lives.
func (o *Objects) sweepOwner(id string, objects []object, remove func(object) bool) error {
	lease, err := takeOver(o.books.dir, id)
	if err != nil || lease == nil {
		return err
	}
	all := true
	for _, object := range objects {
		all = remove(object) && all
	}
	if !all {
		return lease.Unlock()
	}
	return lease.Release()
}
