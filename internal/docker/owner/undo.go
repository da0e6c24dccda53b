package owner

import (
	"context"
	"errors"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/reach"
)

const (
	// grace is how long a request that makes something may go on after its
	// context has ended, so that it is known what has to be undone.
	grace = 10 * time.Second
	// removePause is the pause before a removal is tried again; it doubles.
	removePause = 100 * time.Millisecond
	// removePauses is the longest such pause, in the first: 100, 200 and 400 ms.
	removePauses = 4
)

// UndoTime bounds the removal of one object.
const UndoTime = 20 * time.Second

// Outlive returns a context that ends a little after ctx, for a request that
// makes something: an engine does not undo what it began for a request that
// went away.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-lasting.Done():
		}
	})
	return lasting, func() {
		stop()
		cancel()
	}
}

// Remove removes a container, whatever its state, and waits until it is gone.
// That it is already gone, or going, is success. A connection that breaks is
// tried again: the engine may have come back, and a removal can be repeated.
func (b *Books) Remove(ctx context.Context, id string) error {
	pause := removePause
	for {
		err := b.removeOnce(ctx, id)
		var down *reach.EngineError
		if !errors.As(err, &down) || pause > removePauses*removePause {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (b *Books) removeOnce(ctx context.Context, id string) error {
	_, err := b.API.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	switch {
	case err == nil, cerrdefs.IsNotFound(err):
		return nil
	case !cerrdefs.IsConflict(err):
		return b.Explain(err)
	}
	removed := b.API.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-removed.Result:
		return nil
	case err := <-removed.Error:
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return b.Explain(err)
	}
}
