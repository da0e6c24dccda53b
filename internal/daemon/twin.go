package daemon

import (
	"context"
	"os"

	"github.com/dockgate/dockgate/internal/docker/twin"
	"github.com/dockgate/dockgate/internal/outside"
	"github.com/dockgate/dockgate/internal/store"
)

// OpenTwin takes the container that this process runs in as the model of those
// in which shared gateways run. It makes the state folder. Close the Twin when
// done.
func OpenTwin(ctx context.Context, o Options) (*twin.Twin, error) {
	db, err := store.Open(ctx, o.State)
	if err != nil {
		return nil, err
	}
	options := o.EngineOptions(db.StateID())
	options.Dir = db.Dir()
	if err := db.Close(); err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return twin.Open(ctx, options, outside.ID(string(mounts)), inherited())
}

// inherited are the variables of a process, not of a client: how it gets to
// the network, and to the certificates there.
func inherited() []string {
	return []string{
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "DOCKGATE_KEYCHAIN",
	}
}
