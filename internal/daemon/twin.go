package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/store"
)

// A Twin makes gateways in containers like the one that this process runs in.
type Twin struct {
	*docker.Twin
	engine *docker.Engine
}

// OpenTwin takes the container that this process runs in as the model. It
// makes the state folder. Close the Twin when done.
func OpenTwin(ctx context.Context, o Options) (_ *Twin, err error) {
	db, err := store.Open(ctx, o.State)
	if err != nil {
		return nil, err
	}
	options := o.Engine
	options.State, options.Dir, options.Logger = db.StateID(), db.Dir(), o.Logger
	if err := db.Close(); err != nil {
		return nil, err
	}
	engine, err := docker.Connect(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, engine.Close()) //nolint:contextcheck // it ends with its own time
		}
	}()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	twin, err := engine.Twin(ctx, outside.ID(string(mounts)), inherited())
	if err != nil {
		return nil, err
	}
	return &Twin{Twin: twin, engine: engine}, nil
}

// Close closes the connection to the engine; what was started goes on.
func (t *Twin) Close() error { return t.engine.Close() }

// inherited are the variables of a process, not of a client: how it gets to
// the network, and to the certificates there.
func inherited() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "DOCKGATE_KEYCHAIN",
	}
}
